"""A system in Murphi, for Rumur.

One rule is one way to begin a step; what a part does with an event is a procedure; the queue of the step is a local variable of the
rule. A step that leaves the bounds is taken back by ``assume``. With ``strict`` the properties are invariants and a fault of the
system is an error, either of which ends the search; without, they are only counted (``cover``), and a step that is not allowed is
not taken, so that the states can be compared all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import cast

from turnproof.checkers.network.run import Fault
from turnproof.checkers.network.triggers import Kind, Trigger
from turnproof.checkers.oracles.folding import fold, negation
from turnproof.checkers.oracles.model import Action, Branch, Clear, Clock, Handler, Key, Model, Push, Put, Wrong, constant_args, params
from turnproof.checkers.oracles.names import Names, bounds, state_fields, words
from turnproof.checkers.oracles.text import Layout, Notation, comment, first_matches, in_order
from turnproof.machines.kernel import Field, PauseTimer, ResumeTimer, StartTimer, Variable
from turnproof.machines.kernel.domain import Kind as FieldKind
from turnproof.specs.system import Channel
from turnproof.specs.system_words import Ledger, Pending, TimerIs

RESERVED = words("""
    alias array as assert assume begin boolean by case clear const cover do else elsif end enum error exists false for forall
    function if in interleaved invariant isundefined liveness multiset of procedure process program property put record return rule
    ruleset scalarset startstate startrule switch then to traceuntil true type undefine union var while endalias endenum endexists
    endfor endforall endfunction endif endprocedure endrecord endrule endruleset endstartstate endswitch endwhile queue Queue
    Message enqueue settle size what arg item place event got held i
""") | {f"{name}{n}" for name in ("a", "arg") for n in range(1, 10)}

NOTATION = Notation(
    signs={"eq": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and": "&", "or": "|", "add": "+", "sub": "-"},
    no="!", choose="({} ? {} : {})", latest="({0} > {1} ? {0} : {1})",
)  # fmt: skip

LAYOUT = Layout(
    first="  if {} then", other="  elsif {} then", last="  else", end="endif;", join=";", skip="", remark="  -- {}", ends=";", once=True
)


class Murphi:
    """Writes one model."""

    def __init__(self, model: Model, *, strict: bool = True) -> None:
        self.model, self.strict = model, strict
        self.names = Names(RESERVED)
        self.limit = model.longest()
        """Most events in the queue; where it is 0 there is none."""
        self.queue = ["queue"] if self.limit else []
        self.most = max((len(params(key[1])) for key in model.handlers), default=0)
        spans = [bounds(f, model, 0, carried=True) for key in model.handlers for f in params(key[1])]
        self.argument = f"{min((low for low, _ in spans), default=0)}..{max((high for _, high in spans), default=0)}"
        self.what = f"0..{len(model.handlers)}"
        self.scope: Handler | None = None

    # ── formulas ──

    def text(self, node: object) -> str:
        """A formula or constant."""
        return NOTATION.write(node, self.variable, self.constant)

    def constant(self, value: object) -> str:
        """A constant."""
        return self.names.constant(value, "true", "false")

    def variable(self, variable: Variable) -> str:
        """A variable of a part, of the part at hand, or a field of the event at hand."""
        if isinstance(variable, Pending):
            return f"{self.channel(variable.scope)}.size"
        if isinstance(variable, TimerIs):
            return f"({self.names.timer(variable.scope, cast(Enum, variable.timer))} = {self.names.ledger(variable.ledger)})"
        if variable.scope:
            return self.names.field(variable.scope, variable.name)
        handler = cast(Handler, self.scope)
        if variable.owner is handler.part.machine.state:
            return self.names.field(handler.part.name, variable.name)
        return self.param(variable.name)

    def param(self, field: str) -> str:
        """The name of a parameter of a handler."""
        return self.names.of(("param", field), f"its_{field}")

    def held(self, field: str) -> str:
        """The local variable that holds a new value until the old one is no longer read."""
        return self.names.of(("held", field), f"held_{field}")

    def channel(self, name: str) -> str:
        """The variable of a channel."""
        return self.names.of(("channel", name), name)

    # ── the whole text ──

    def write(self) -> str:
        """The text."""
        model = self.model
        for key in model.handlers:
            self.names.handler(key)
        handlers = [self.handler(h) for h in model.handlers.values()]
        rules = [rule for t in model.triggers for rule in self.rules(t)]
        claims = list(self.claims())
        settles = [self.settle()] if self.limit else []
        channels = [text for c in model.system.channels for text in self.channel_tools(c)]
        start, state = self.start(), self.state()
        constants = [
            line
            for group, values in self.names.grouped()
            for line in (f"  -- {group}", *(f"  {name}: {number};" for name, number in values))
        ]
        pieces = [
            f"-- {model.system.name}: one rule is one event from outside, one expiry, one delivery or one loss, run to completion.",
            "\n".join(["const", *constants]) if constants else "",
            "\n".join(self.types()), "\n".join(["var", *state]), "\n".join(self.tools()),
            *channels, *handlers, *settles, start, *rules, *claims,
        ]  # fmt: skip
        return "\n\n".join(p for p in pieces if p) + "\n"

    def types(self) -> Iterator[str]:
        """The queue of a step: what is to be handled, with up to so many arguments."""
        if self.limit or self.model.system.channels:
            args = [f" arg{n}: {self.argument};" for n in range(1, self.most + 1)]
            yield f"type\n  Message: record what: {self.what};{''.join(args)} end;"
        if self.limit:
            yield f"  Queue: record size: 0..{self.limit + 1}; item: array [1..{self.limit}] of Message; end;"

    def state(self) -> list[str]:
        """The variables."""
        lines: list[str] = []
        for part in self.model.system.everyone:
            lines.append(f"  -- {part.name}: {part.machine.name}")
            fields = [field for owner, field, _ in state_fields(self.model) if owner == part.name]
            lines += [f"  {self.names.field(part.name, field.name)}: {self.type_of(field)};" for field in fields]
            lines += [f"  {self.names.timer(part.name, r.timer)}: 0..2;" for r in part.machine.timers]
        for budget in self.model.system.budgets:
            lines.append(f"  {self.names.of(('budget', budget), budget.name + '_left')}: 0..{budget.limit};")
        for channel in self.model.system.channels:
            lines.append(
                f"  {self.channel(channel.name)}: record size: 0..{channel.capacity}; item: array [1..{channel.capacity}] of Message; end;"
            )
        return lines

    def type_of(self, field: Field, *, carried: bool = False) -> str:
        """The type of a field."""
        if field.kind is FieldKind.BOOL:
            return "boolean"
        low, high = bounds(field, self.model, len(self.names.tokens), carried=carried)
        return f"{low}..{high}"

    def start(self) -> str:
        """The initial state."""
        lines = [f"  {self.names.field(part, field.name)} := {self.constant(value)};" for part, field, value in state_fields(self.model)]
        for part in self.model.system.everyone:
            lines += [f"  {self.names.timer(part.name, rule.timer)} := {self.names.ledger(Ledger.OFF)};" for rule in part.machine.timers]
        for budget in self.model.system.budgets:
            lines.append(f"  {self.names.of(('budget', budget), budget.name + '_left')} := {budget.limit};")
        lines += [f"  clear {self.channel(c.name)};" for c in self.model.system.channels]
        return "\n".join(['startstate "everything begins"', "begin", *lines, "end;"])

    def tools(self) -> Iterator[str]:
        """Putting an event into the queue, and working it off."""
        if self.limit:
            args = "".join(f"; a{n}: {self.argument}" for n in range(1, self.most + 1))
            into = [f"    queue.item[queue.size].arg{n} := a{n};" for n in range(1, self.most + 1)]
            yield f"procedure enqueue(var queue: Queue; event: {self.what}{args});\nbegin"
            yield f"  if queue.size < {self.limit + 1} then\n    queue.size := queue.size + 1;\n  endif;"
            yield f"  if queue.size <= {self.limit} then"
            yield "\n".join(["    queue.item[queue.size].what := event;", *into, "  endif;\nend;"])

    def settle(self) -> str:
        """Works off the queue, first in first out."""
        keys = self.model.reached(self.model.handlers)
        calls = [f"    case {self.names.message(key)}: {self.called(key, 'queue.item[place].arg{}')};" for key in keys]
        return "\n".join([
            "procedure settle(var queue: Queue);", f"var place: 1..{self.limit + 2};", "begin", "  place := 1;",
            "  while place <= queue.size do",
            f"    if place > {self.limit} then {self.wrong(Fault.ENDLESS)}; endif;" if self.model.endless(self.model.handlers) else "",
            "    switch queue.item[place].what", *calls, "    endswitch;", "    place := place + 1;", "  endwhile;", "end;",
        ]).replace("\n\n", "\n")  # fmt: skip

    def called(self, key: Key, argument: str) -> str:
        """The call of a handler with the arguments of a message."""
        args = [
            f"{argument.format(n)} = 1" if field.kind is FieldKind.BOOL else argument.format(n) for n, field in enumerate(params(key[1]), 1)
        ]
        return f"{self.names.handler(key)}({', '.join([*self.queue, *args])})"

    def channel_tools(self, channel: Channel) -> Iterator[str]:
        """Taking an event out of a channel; and, where it keeps no order of its own, putting the last one where it belongs."""
        name, cap = self.channel(channel.name), channel.capacity
        yield (
            f"procedure {self.names.of(('remove', name), 'remove_from_' + name)}(place: 1..{cap});\nbegin\n"
            f"  for i: 1..{cap} do\n    if i >= place & i < {name}.size then {name}.item[i] := {name}.item[i + 1]; endif;\n  endfor;\n"
            f"  clear {name}.item[{name}.size];\n  {name}.size := {name}.size - 1;\nend;"
        )
        if channel.reordered:
            later = self.after(f"{name}.item[{cap + 1} - i]", f"{name}.item[{cap} - i]")
            swap = (
                f"held := {name}.item[{cap} - i]; {name}.item[{cap} - i] := {name}.item[{cap + 1} - i]; {name}.item[{cap + 1} - i] := held;"
            )
            yield (
                f"procedure {self.names.of(('sort', name), 'sort_' + name)}();\nvar held: Message;\nbegin\n  for i: 1..{cap - 1} do\n"
                f"    if {cap + 1} - i <= {name}.size & !({later}) then {swap} endif;\n  endfor;\nend;"
                if cap > 1 else f"procedure {self.names.of(('sort', name), 'sort_' + name)}();\nbegin\nend;"
            )  # fmt: skip

    def after(self, one: str, other: str) -> str:
        """Whether a message comes after, or equals, another in the order of messages."""
        keys = ["what", *(f"arg{n}" for n in range(1, self.most + 1))]
        text = "true"
        for key in reversed(keys):
            text = f"({one}.{key} > {other}.{key} | ({one}.{key} = {other}.{key} & {text}))"
        return text

    def equal(self, one: str, other: str) -> str:
        """Whether two messages are the same."""
        return " & ".join(f"{one}.{key} = {other}.{key}" for key in ["what", *(f"arg{n}" for n in range(1, self.most + 1))])

    # ── handlers ──

    def handler(self, handler: Handler) -> str:
        """The rows of one part about one class of event."""
        self.scope = handler
        types = [f"{self.param(f.name)}: {self.type_of(f, carried=True)}" for f in handler.params]
        body = first_matches(handler, self.text, self.branch, LAYOUT, self.wrong(Fault.HOLE) if not handler.total else "")
        held = sorted({n for b in handler.branches for n, _ in in_order(b.updates, handler.part.machine.state)[1]})
        kinds = {f.name: f for p, f, _ in state_fields(self.model) if p == handler.part.name}
        local = "".join(f"\nvar {self.held(n)}: {self.type_of(kinds[n])};" for n in held)
        self.scope = None
        name = self.names.handler((handler.part.name, handler.event))
        return f"procedure {name}({'; '.join([*(['var queue: Queue'] if self.queue else []), *types])});{local}\nbegin\n{body}\nend;"

    def branch(self, branch: Branch) -> list[str]:
        """The statements of one row."""
        lines = [self.guarded(c.condition, self.wrong(c.fault)) for c in branch.checks]
        lines += [self.guarded(a.condition, self.action(a)) for a in branch.actions]
        part = cast(Handler, self.scope).part
        updates, held = in_order(branch.updates, part.machine.state)
        lines += [f"{self.held(name)} := {self.text(node)}" for name, node in held]
        lines += [f"{self.names.field(part.name, name)} := {self.text(node)}" for name, node in updates]
        return [*lines, *(f"{self.names.field(part.name, name)} := {self.held(name)}" for name, _ in held)]

    def guarded(self, condition: object, statement: str) -> str:
        """The statement, where the condition holds."""
        return statement if condition is True else f"if {self.text(condition)} then {statement}; endif"

    def wrong(self, fault: Fault | None) -> str:
        """The step is not allowed."""
        if fault is None:
            return 'assume "the bounds are kept" false'
        return f'error "fault: {fault.name}"' if self.strict else 'assume "no fault" false'

    def action(self, action: Action) -> str:
        """One statement."""
        if isinstance(action, Put):
            args = self.arguments(action.key, action.args, self.most)
            return f"enqueue({', '.join([*self.queue, self.names.message(action.key), *args])})"
        if isinstance(action, Push):
            return self.push(action)
        if isinstance(action, Clear):
            return f"clear {self.channel(action.channel.name)}"
        if isinstance(action, Clock):
            name = self.names.timer(action.part, action.timer)
            if action.kind in (PauseTimer, ResumeTimer):
                before, now = (Ledger.RUNNING, Ledger.PAUSED) if action.kind is PauseTimer else (Ledger.PAUSED, Ledger.RUNNING)
                return f"if {name} = {self.names.ledger(before)} then {name} := {self.names.ledger(now)}; endif"
            return f"{name} := {self.names.ledger(Ledger.RUNNING if action.kind is StartTimer else Ledger.OFF)}"
        return self.wrong(cast(Wrong, action).fault)

    def arguments(self, key: Key, args: Iterable[object], arity: int) -> list[str]:
        """The arguments of a message, as numbers."""
        texts = [
            f"({self.text(arg)} ? 1 : 0)" if field.kind is FieldKind.BOOL and not isinstance(arg, bool) else
            str(int(arg)) if isinstance(arg, bool) else self.text(arg)
            for field, arg in zip(params(key[1]), args, strict=True)
        ]  # fmt: skip
        return [*texts, *["0"] * (arity - len(texts))]

    def push(self, action: Push) -> str:
        """Into a channel: at the end, or where the order of messages says if it keeps none."""
        name = self.channel(action.channel.name)
        args = self.arguments(action.key, action.args, self.most)
        message = [f"{name}.item[{name}.size].what := {self.names.message(action.key)}"]
        message += [f"{name}.item[{name}.size].arg{n} := {arg}" for n, arg in enumerate(args, 1)]
        lines = [f"if {name}.size = {action.channel.capacity} then {self.wrong(Fault.OVERFLOW)}; endif"]
        lines += [f"{name}.size := {name}.size + 1", *message]
        if action.channel.reordered:
            lines.append(f"{self.names.of(('sort', name), 'sort_' + name)}()")
        return ";\n    ".join(lines)

    # ── steps ──

    def rules(self, trigger: Trigger) -> Iterator[str]:
        """The rules for one way to begin a step."""
        guards = [] if trigger.guard is None else [self.text(fold(trigger.guard))]
        first: list[str] = []
        if trigger.budget >= 0:
            budget = self.model.system.budgets[trigger.budget]
            left = self.names.of(("budget", budget), budget.name + "_left")
            guards.append(f"{left} > 0")
            first.append(f"{left} := {left} - 1")
        if trigger.kind in (Kind.SEND, Kind.EXPIRE):
            key = (trigger.where, type(trigger.event))
            if trigger.kind is Kind.EXPIRE:
                timer = self.names.timer(trigger.where, cast(Enum, trigger.timer))
                guards.append(f"{timer} = {self.names.ledger(Ledger.RUNNING)}")
                first.append(f"{timer} := {self.names.ledger(Ledger.OFF)}")
            args = [self.constant(value) for value in constant_args(trigger.event)]
            yield self.rule(trigger, guards, [*first, f"{self.names.handler(key)}({', '.join([*self.queue, *args])})"], [key])
            return
        channel = next(c for c in self.model.system.channels if c.name == trigger.where)
        if self.model.messages(channel):
            yield self.channel_rule(trigger, channel, guards, first)

    def channel_rule(self, trigger: Trigger, channel: Channel, guards: list[str], first: list[str]) -> str:
        """What a channel may do."""
        name, place = self.channel(channel.name), trigger.position + 1
        keys = self.model.messages(channel)
        guards = [*guards, f"{name}.size >= {place}"]
        if trigger.kind is Kind.DROP:
            return self.rule(trigger, guards, [*first, f"clear {name}"], [])
        if place > 1:
            guards.append(f"!({self.equal(f'{name}.item[{place}]', f'{name}.item[{place - 1}]')})")
        remove = f"{self.names.of(('remove', name), 'remove_from_' + name)}({place})"
        if trigger.kind is Kind.LOSE:
            return self.rule(trigger, guards, [*first, remove], [])
        calls = [f"  case {self.names.message(key)}: {self.called(key, 'got.arg{}')};" for key in keys]
        take = [f"got := {name}.item[{place}]", remove, "\n".join(["switch got.what", *calls, "  endswitch"])]
        return self.rule(trigger, guards, [*first, *take], keys, "got: Message")

    def rule(self, trigger: Trigger, guards: list[str], statements: list[str], keys: Iterable[Key], local: str = "") -> str:
        """One rule."""
        start = tuple(keys)
        queue = ["queue: Queue"] if self.limit and start else []
        names = "".join(f"\nvar {what};" for what in (*queue, *([local] if local else [])))
        body = [*(["clear queue"] if queue else []), *statements, *(["settle(queue)"] if self.model.reached(start) else [])]
        guard = " & ".join(f"({g})" if " | " in g else g for g in guards) or "true"
        title = comment(str(trigger)).replace('"', "'")
        return f'rule "{title}"\n  {guard}\n==>{names}\nbegin\n  ' + ";\n  ".join(body) + ";\nend;"

    def claims(self) -> Iterator[str]:
        """One invariant, or one count of states, for each property."""
        for claim in self.model.claims:
            word = f"{claim.number} {comment(claim.prop.name)}".replace('"', "'")
            if claim.reach or not self.strict:
                yield f'cover "{word}"\n  {self.text(claim.formula)};'
            else:
                yield f'invariant "{word}"\n  {self.text(fold(negation(claim.formula)))};'


__all__ = ["Murphi"]
