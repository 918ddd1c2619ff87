"""A system in TLA+, for TLC.

What a part does with an event is an operator from worlds to worlds, ``part_Event(w, fields)``; a world is the state together with the
queue of the step. An action performs one step: it handles the first event and then, by recursion, the queue. With ``strict`` the
properties are invariants and a fault of the system breaks the invariant ``NoFault``; without, what is met is printed once, and a step
that is not allowed is not taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import cast

from turnproof.checkers.network.run import Fault
from turnproof.checkers.network.triggers import Kind, Trigger
from turnproof.checkers.oracles.folding import fold, negation
from turnproof.checkers.oracles.model import Action, Branch, Clear, Clock, Handler, Key, Model, Push, Put, Wrong, constant_args, params
from turnproof.checkers.oracles.names import Names, words
from turnproof.checkers.oracles.text import Layout, Notation, comment, first_matches
from turnproof.machines.kernel import PauseTimer, ResumeTimer, StartTimer, Variable, fields_of
from turnproof.machines.kernel.domain import Kind as FieldKind
from turnproof.specs.system import Channel
from turnproof.specs.system_words import Pending, TimerIs

RESERVED = words("""
    ASSUME ASSUMPTION AXIOM BY CASE CHOOSE CONSTANT CONSTANTS CONSTRAINT DEF DEFINE DOMAIN ELSE ENABLED EXCEPT EXTENDS HAVE HIDE IF
    IN INIT INSTANCE LAMBDA LEMMA LET LOCAL MODULE NEW OBVIOUS OMITTED OTHER PICK PROOF PROPOSITION PROVE QED RECURSIVE SF_ STATE
    SUBSET SUFFICES TAKE TEMPORAL THEN THEOREM UNCHANGED UNION USE VARIABLE VARIABLES WF_ WITH WITNESS Init Next World Becomes
    Settle Handle NoFault Append Head Tail Len SubSeq Seq BOOLEAN Nat Int TRUE FALSE PrintT TLCGet TLCSet Counted Fault w m queue
    wrong fault Without Sorted Remove Timers Left Fail E n now vars why Bags BagCardinality BagToSet EmptyBag SetToBag BagIn Integers
    Sequences TLC INVARIANT SPECIFICATION NEXT
""") | {f"{name}{n}" for name in ("w", "Met", "Property") for n in range(1, 1_000)}

NOTATION = Notation(
    signs={"eq": "=", "ne": "#", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and": "/\\", "or": "\\/", "add": "+", "sub": "-"},
    no="~", choose="(IF {} THEN {} ELSE {})", latest="(IF {0} > {1} THEN {0} ELSE {1})",
)  # fmt: skip

LAYOUT = Layout(first="  IF {} THEN", other="  ELSE IF {} THEN", last="  ELSE", end="", join="\n    ", skip="w", remark="\\* {}")


CONFIGURATION = "The configuration, model.cfg:"
"""The line after the module; TLC reads what follows it from a file of its own."""


class Tla:
    """Writes one model."""

    def __init__(self, model: Model, *, strict: bool = True) -> None:
        self.model, self.strict = model, strict
        self.names = Names(RESERVED)
        self.scope: Handler | None = None
        self.world = "w."
        self.variables = self._variables()

    def _variables(self) -> dict[str, str]:
        """Every variable of the state, with its first value."""
        made: dict[str, str] = {}
        for part in self.model.system.everyone:
            fields = [
                f"{name} |-> {self.constant(getattr(part.start, name))}"
                for name, field in fields_of(part.machine.state).items()
                if field.kind is not FieldKind.OPAQUE
            ]
            made[self.names.of(("part", part.name), part.name)] = f"[{', '.join(fields)}]"
        for part in self.model.system.everyone:
            for rule in part.machine.timers:
                made[self.names.timer(part.name, rule.timer)] = '"off"'
        for budget in self.model.system.budgets:
            made[self.names.of(("budget", budget), budget.name + "_left")] = str(budget.limit)
        for channel in self.model.system.channels:
            made[self.names.of(("channel", channel.name), channel.name)] = "EmptyBag" if channel.reordered else "<<>>"
        return made

    # ── formulas ──

    def text(self, node: object) -> str:
        """A formula or constant."""
        return NOTATION.write(node, self.variable, self.constant)

    def constant(self, value: object) -> str:
        """Members and identities are strings."""
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, Enum):
            return f'"{value.name.lower()}"'
        return f'"{value}"' if isinstance(value, str) else str(value)

    def variable(self, variable: Variable) -> str:
        """A variable of a part, of the part at hand, or a field of the event at hand."""
        if isinstance(variable, Pending):
            return self.length(self.channel_of(variable.scope), self.world)
        if isinstance(variable, TimerIs):
            timer = self.names.timer(variable.scope, cast(Enum, variable.timer))
            return f'({self.world}{timer} = "{variable.ledger.value}")'
        if variable.scope:
            return f"{self.world}{self.names.of(('part', variable.scope), variable.scope)}.{variable.name}"
        handler = cast(Handler, self.scope)
        if variable.owner is handler.part.machine.state:
            return f"w.{self.names.of(('part', handler.part.name), handler.part.name)}.{variable.name}"
        return self.names.of(("param", variable.name), f"its_{variable.name}")

    def channel_of(self, name: str) -> Channel:
        """The channel of that name."""
        return next(c for c in self.model.system.channels if c.name == name)

    def length(self, channel: Channel, world: str) -> str:
        """How many events are under way. A channel that keeps no order is a bag."""
        return f"{'BagCardinality' if channel.reordered else 'Len'}({world}{self.names.of(('channel', channel.name), channel.name)})"

    # ── the whole text ──

    def write(self) -> str:
        """The text of the module ``model``."""
        model = self.model
        handlers = [self.handler(h) for h in model.handlers.values()]
        self.world = ""
        actions = dict(action for t in model.triggers for action in self.actions(t))
        claims = list(self.claims())
        state = [*self.variables, *(["fault"] if self.strict else [])]
        world = ",\n  ".join([*(f"{v} |-> {v}" for v in self.variables), "queue |-> <<>>", 'wrong |-> ""'])
        becomes = [f"/\\ {v}' = now.{v}" for v in self.variables]
        if self.strict:
            stays = (f'/\\ {v}\' = (IF now.wrong = "" THEN now.{v} ELSE {v})' for v in self.variables)
            becomes = ['/\\ now.wrong # "CUT"', *stays, "/\\ fault' = now.wrong"]
        else:
            becomes = ['/\\ now.wrong = ""', *becomes]
        init = [f"/\\ {v} = {value}" for v, value in self.variables.items()] + (['/\\ fault = ""'] if self.strict else [])
        return "\n".join([
            "------------------------------- MODULE model -------------------------------",
            f"\\* {model.system.name}: one action is one event from outside, one expiry, one delivery or one loss, run to completion.",
            "EXTENDS Integers, Sequences, Bags, TLC", "", f"VARIABLES {', '.join(state)}", "", f"vars == <<{', '.join(state)}>>", "",
            "\\* The state, with the queue of the step, and why the step is not allowed.",
            f"World == [\n  {world}]", "", "Fail(w, why) == IF w.wrong = \"\" THEN [w EXCEPT !.wrong = why] ELSE w", "",
            *(text + "\n" for text in handlers), self.settle(), "", "Becomes(now) ==\n  " + "\n  ".join(becomes), "",
            "Init ==\n  " + "\n  ".join(init), "", *(f"{name} ==\n{text}\n" for name, text in actions.items()),
            "Next ==\n  " + "\n  ".join(f"\\/ {name}" for name in actions), "", *claims, "=" * 77, CONFIGURATION, self.configuration(),
        ])  # fmt: skip

    def settle(self) -> str:
        """Works off the queue, first in first out."""
        keys = tuple(self.model.handlers)
        cases = [f'm[1] = "{self.names.message(key)}" -> {self.called(key, "w", "m[{}]", 2)}' for key in keys]
        body = "\n    [] ".join(cases) or "OTHER -> w"
        limit = self.model.system.cascade
        return (
            f"Handle(w, m) ==\n  CASE {body}\n\nRECURSIVE Settle(_, _)\n\\* n events of this step were handled so far.\nSettle(w, n) ==\n"
            f'  IF w.wrong # "" \\/ w.queue = <<>> THEN w\n  ELSE IF n >= {limit} THEN Fail(w, "{Fault.ENDLESS.name}")\n'
            "  ELSE Settle(Handle([w EXCEPT !.queue = Tail(@)], Head(w.queue)), n + 1)"
        )

    def called(self, key: Key, world: str, argument: str, start: int) -> str:
        """The use of a handler with the fields of a message."""
        return f"{self.names.handler(key)}({', '.join([world, *(argument.format(start + n) for n in range(len(params(key[1]))))])})"

    # ── handlers ──

    def handler(self, handler: Handler) -> str:
        """The rows of one part about one class of event."""
        self.scope = handler
        names = [self.names.of(("param", f.name), f"its_{f.name}") for f in handler.params]
        body = first_matches(handler, self.text, self.branch, LAYOUT, f'Fail(w, "{Fault.HOLE.name}")' if not handler.total else "")
        self.scope = None
        name = self.names.handler((handler.part.name, handler.event))
        return f"{name}({', '.join(['w', *names])}) ==\n{body}"

    def branch(self, branch: Branch) -> list[str]:
        """One row: a chain of worlds, each made from the one before; every value is read from the first."""
        part = cast(Handler, self.scope).part
        steps: list[tuple[object, str]] = [(c.condition, self.failed(c.fault)) for c in branch.checks]
        steps += [(a.condition, self.action(a)) for a in branch.actions]
        if branch.updates:
            name = self.names.of(("part", part.name), part.name)
            fields = ", ".join(f"!.{name}.{field} = {self.text(node)}" for field, node in branch.updates)
            steps.append((True, f"[@@ EXCEPT {fields}]"))
        texts, before = [], "w"
        for number, (condition, made) in enumerate(steps, 1):
            made = made.replace("@@", before)
            texts.append(f"w{number} == {made if condition is True else f'IF {self.text(condition)} THEN {made} ELSE {before}'}")
            before = f"w{number}"
        if len(texts) == 1:
            return [texts[0].removeprefix("w1 == ")]
        return ["LET " + "\n        ".join(texts) + f"\n    IN  {before}"] if texts else []

    def failed(self, fault: Fault | None) -> str:
        """The step is not allowed; the first reason counts."""
        return f'Fail(@@, "{"CUT" if fault is None else fault.name}")'

    def action(self, action: Action) -> str:
        """What becomes of the world ``@@``."""
        if isinstance(action, Put):
            return f"[@@ EXCEPT !.queue = Append(@, {self.message(action.key, [self.text(a) for a in action.args])})]"
        if isinstance(action, Push):
            return self.push(action)
        if isinstance(action, Clear):
            empty = "EmptyBag" if action.channel.reordered else "<<>>"
            return f"[@@ EXCEPT !.{self.names.of(('channel', action.channel.name), action.channel.name)} = {empty}]"
        if isinstance(action, Clock):
            kinds: dict[type, str] = {
                PauseTimer: 'IF @ = "running" THEN "paused" ELSE @',
                ResumeTimer: 'IF @ = "paused" THEN "running" ELSE @',
            }
            plain = '"running"' if action.kind is StartTimer else '"off"'
            return f"[@@ EXCEPT !.{self.names.timer(action.part, action.timer)} = {kinds.get(action.kind, plain)}]"
        return self.failed(cast(Wrong, action).fault)

    def message(self, key: Key, args: Iterable[str]) -> str:
        """An event on its way."""
        return "<<" + ", ".join([f'"{self.names.message(key)}"', *args]) + ">>"

    def push(self, action: Push) -> str:
        """Into a channel."""
        name = self.names.of(("channel", action.channel.name), action.channel.name)
        full = f"{self.length(action.channel, '@@.')} >= {action.channel.capacity}"
        message = self.message(action.key, [self.text(a) for a in action.args])
        more = f"@ (+) SetToBag({{{message}}})" if action.channel.reordered else f"Append(@, {message})"
        return f'IF {full} THEN Fail(@@, "{Fault.OVERFLOW.name}") ELSE [@@ EXCEPT !.{name} = {more}]'

    # ── steps ──

    def actions(self, trigger: Trigger) -> Iterator[tuple[str, str]]:
        """The actions for one way to begin a step."""
        guards = [] if trigger.guard is None else [self.text(fold(trigger.guard))]
        first: list[str] = []
        if trigger.budget >= 0:
            budget = self.model.system.budgets[trigger.budget]
            left = self.names.of(("budget", budget), budget.name + "_left")
            guards.append(f"{left} > 0")
            first.append(f"!.{left} = @ - 1")
        if trigger.kind in (Kind.SEND, Kind.EXPIRE):
            key = (trigger.where, type(trigger.event))
            if trigger.kind is Kind.EXPIRE:
                timer = self.names.timer(trigger.where, cast(Enum, trigger.timer))
                guards.append(f'{timer} = "running"')
                first.append(f'!.{timer} = "off"')
            args = [self.constant(value) for value in constant_args(trigger.event)]
            world = f"[World EXCEPT {', '.join(first)}]" if first else "World"
            yield self.named(trigger, guards, f"Settle({self.names.handler(key)}({', '.join([world, *args])}), 1)")
            return
        channel = self.channel_of(trigger.where)
        if self.model.messages(channel) and trigger.position == 0:
            yield self.channel_action(trigger, channel, guards, first)

    def channel_action(self, trigger: Trigger, channel: Channel, guards: list[str], first: list[str]) -> tuple[str, str]:
        """What a channel may do."""
        name, bag = self.names.of(("channel", channel.name), channel.name), channel.reordered
        guards = [*guards, f"{self.length(channel, '')} > 0"]
        if trigger.kind is Kind.DROP:
            first.append(f"!.{name} = {'EmptyBag' if bag else '<<>>'}")
            return self.named(trigger, guards, f"[World EXCEPT {', '.join(first)}]")
        taken = "@ (-) SetToBag({m})" if bag else "Tail(@)"
        some = "\\E m \\in " + (f"BagToSet({name}) :" if bag else f"{{Head({name})}} :")
        world = f"[World EXCEPT {', '.join([*first, f'!.{name} = {taken}'])}]"
        if trigger.kind is Kind.LOSE:
            return self.named(trigger, guards, world, some)
        return self.named(trigger, guards, f"Settle(Handle({world}, m), 1)", some)

    def named(self, trigger: Trigger, guards: list[str], becomes: str, some: str = "") -> tuple[str, str]:
        """One action."""
        name = self.names.of(trigger, str(trigger).replace(" <- ", "_"))
        lines = [f"  /\\ {g}" if " \\/ " not in g else f"  /\\ ({g})" for g in guards]
        return name, "\n".join(
            [f"  \\* {comment(str(trigger))}", *lines, f"  /\\ {some} Becomes({becomes})".replace("  Becomes", " Becomes")]
        )

    def claims(self) -> Iterator[str]:
        """One invariant, or one remark, for each property; ``Counted`` is a constraint that is always true and prints what it meets."""
        counted: list[str] = []
        for claim in self.model.claims:
            yield f"\\* {comment(claim.prop.name)}"
            if self.strict and not claim.reach:
                yield f"Property{claim.number} == {self.text(fold(negation(claim.formula)))}\n"
            else:
                yield f"Met{claim.number} == {self.text(claim.formula)}\n"
                first = f"Met{claim.number} /\\ TLCGet({claim.number}) = 0"
                tell = f'TLCSet({claim.number}, 1) /\\ PrintT("met {claim.number}")'
                counted.append(f"/\\ IF {first}\n     THEN {tell} ELSE TRUE")
        if self.strict:
            yield 'NoFault == fault = ""\n'
        yield "\n".join(f"ASSUME TLCSet({n + 1}, 0)" for n in range(len(self.model.claims)))
        yield "Counted ==\n  " + ("\n  ".join(counted) or "TRUE")

    def configuration(self) -> str:
        """The text of ``model.cfg``."""
        invariants = [f"INVARIANT Property{c.number}" for c in self.model.claims if self.strict and not c.reach]
        fault = ["INVARIANT NoFault"] if self.strict else []
        return "\n".join(["INIT Init", "NEXT Next", "CONSTRAINT Counted", *invariants, *fault]) + "\n"


__all__ = ["CONFIGURATION", "Tla"]
