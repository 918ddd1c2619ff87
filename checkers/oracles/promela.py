"""A system in Promela, for SPIN.

One process, which takes one step after the other: it chooses how the step begins, which puts the first event into a queue, and works
the queue off. Nothing that happens within a step is stored as a state. The queue is scratch, hidden from the state.

``apart`` writes a way to begin as a ``d_step`` of its own that includes everything that may follow. SPIN searches that faster, and
can do so breadth first, where it allows no hidden variables and the queue is cleared after each step; but every handler stands in
every step that may lead to it, and SPIN takes no ``d_step`` that is too long: those that may lead to more than ``apart`` rows are
not written so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import cast

from turnproof.checkers.network.run import Fault
from turnproof.checkers.network.triggers import Kind, Trigger
from turnproof.checkers.oracles.folding import fold
from turnproof.checkers.oracles.model import (
    Action,
    Branch,
    Clear,
    Clock,
    Handler,
    Key,
    Model,
    Push,
    Put,
    Wrong,
    constant_args,
    content,
    params,
)
from turnproof.checkers.oracles.names import Names, bounds, state_fields, words
from turnproof.checkers.oracles.text import Layout, Notation, comment, first_matches, in_order
from turnproof.machines.kernel import Field, PauseTimer, ResumeTimer, StartTimer, Variable
from turnproof.machines.kernel.domain import Kind as FieldKind
from turnproof.specs.system import Channel
from turnproof.specs.system_words import Ledger, Pending, TimerIs

RESERVED = words("""
    active assert atomic bit bool break byte c_code c_decl c_expr c_state c_track chan d_step D_proctype do else empty enabled end
    eval false fi for full get_priority goto hidden if in init inline int len local ltl mtype nempty never nfull notrace np_ nr_pr
    od of pc_value pid printf priority proctype provided return run select set_priority short show skip timeout trace true typedef
    unless unsigned xr xs finish fail why what arg head tail wrong undo save put settle report reported property system _ _last _pid
    _nr_pr STDIN define auto case char const continue default double enum extern float long register signed sizeof static struct
    switch union void volatile while now held event before memcpy vsize n
""") | {f"{name}{n}" for name in ("a", "arg", "given", "got") for n in range(1, 10)}


NOTATION = Notation(
    signs={"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and": "&&", "or": "||", "add": "+", "sub": "-"},
    no="!", choose="({} -> {} : {})", latest="({0} > {1} -> {0} : {1})",
)  # fmt: skip

FAULTS = {fault: 200 + n for n, fault in enumerate(Fault)}
"""Number under which a fault is reported; properties count from 1."""
CUT = 199
WHOLE = 1_000_000
"""More rows than any step leads to."""
GROUPED = "    :: "
"""How an option begins that leaves what follows to the loop after the choice."""


class Promela:
    """Writes one model. ``undo``: a step that goes wrong leaves the state as it was; else it is reported, and the rest means nothing."""

    def __init__(self, model: Model, *, undo: bool | None = None, breadth_first: bool = False, apart: int = 0) -> None:
        self.model, self.breadth_first, self.apart = model, breadth_first, WHOLE if breadth_first and not apart else apart
        self.names = Names(RESERVED)
        self.undo = model.may_go_wrong() if undo is None else undo
        self.limit = model.longest() + (0 if self.apart else 1)
        self.most = max((len(params(key[1])) for key in model.handlers), default=0)
        self.settles: dict[tuple[tuple[Key, ...], bool, bool], str] = {}
        self.scope: Handler | None = None

    # ── formulas ──

    def text(self, node: object) -> str:
        """A formula or constant."""
        return NOTATION.write(node, self.variable, lambda value: self.names.constant(value, "true", "false"))

    def variable(self, variable: Variable) -> str:
        """A variable of a part, of the part at hand, or a field of the event at hand."""
        if isinstance(variable, Pending):
            return f"len({self.names.of(('channel', variable.scope), variable.scope)})"
        if isinstance(variable, TimerIs):
            return f"({self.names.timer(variable.scope, cast(Enum, variable.timer))} == {self.names.ledger(variable.ledger)})"
        if variable.scope:
            return self.names.field(variable.scope, variable.name)
        handler = cast(Handler, self.scope)
        if variable.owner is handler.part.machine.state:
            return self.names.field(handler.part.name, variable.name)
        return self.param(variable.name)

    def param(self, field: str) -> str:
        """The name of a parameter of a handler."""
        return self.names.of(("param", field), f"its_{field}")

    # ── the whole text ──

    def write(self) -> str:
        """The text."""
        model, system = self.model, self.model.system
        for key in model.handlers:
            self.names.handler(key)
        handlers = [self.handler(h) for h in model.handlers.values()]
        options = [option for t in model.triggers for option in self.options(t)]
        whole = [option for option in options if not option.startswith(GROUPED)]
        options = [*whole, *self.chosen([option for option in options if option.startswith(GROUPED)])]
        claims = list(self.claims())
        settles = [self.settle(kind, name) for kind, name in self.settles.items()]
        state, scratch = list(self.state()), list(self.scratch())
        pieces = [
            f"/* {system.name}: one step is one event from outside, one expiry, one delivery or one loss, run to completion. */",
            "\n\n".join(
                "\n".join([f"/* {group} */", *(f"#define {name} {number}" for name, number in values)])
                for group, values in self.names.grouped()
            ),
            "\n".join(state),
            "\n".join(scratch),
            "\n\n".join([*handlers, *settles, *(["\n".join(self.finish())] if model.may_go_wrong() else [])]),
            "active proctype system() {\n  do\n" + "\n".join([*options, *claims]) + "\n  od\n}",
        ]
        return "\n\n".join(p for p in pieces if p) + "\n"

    def state(self) -> Iterator[str]:
        """The variables that make up the state."""
        for part in self.model.system.everyone:
            yield f"/* {part.name}: {part.machine.name} */"
            for field, value in ((f, v) for owner, f, v in state_fields(self.model) if owner == part.name):
                before, after = self.type_of(field)
                yield f"{before} {self.names.field(part.name, field.name)}{after} = {self.text(value)};"
            for rule in part.machine.timers:
                yield f"unsigned {self.names.timer(part.name, rule.timer)} : 2 = {self.names.ledger(Ledger.OFF)};"
        for budget in self.model.system.budgets:
            yield f"byte {self.names.of(('budget', budget), budget.name + '_left')} = {budget.limit};  /* how often it may still happen */"
        for channel in self.model.system.channels:
            name = self.names.of(("channel", channel.name), channel.name)
            yield f"chan {name} = [{channel.capacity}] of {{ {', '.join(['byte'] * (1 + self.arity(channel)))} }};"

    def type_of(self, field: Field) -> tuple[str, str]:
        """What stands before and after the name."""
        if field.kind is FieldKind.BOOL:
            return "bool", ""
        low, high = bounds(field, self.model, len(self.names.tokens))
        if low < 0 or high > 255:
            return "int", ""
        return "unsigned", f" : {max(1, high.bit_length())}"

    def scratch(self) -> Iterator[str]:
        """The variables of a step under way."""
        hidden = "" if self.breadth_first else "hidden "
        if not self.breadth_first:
            yield "hidden byte reported[256];  /* faults and properties are reported once */"
        yield f"{hidden}byte property;"
        if self.model.may_go_wrong():
            yield f"{hidden}byte wrong;  /* why the step is not allowed: the first reason */"
            yield "inline fail(why) { wrong = (wrong == 0 -> why : wrong) }"
        if self.limit:
            yield f"{hidden}byte what[{self.limit}];  /* the queue of the step: events to be handled, first in first out */"
            yield from (f"{hidden}byte arg{n}[{self.limit}];" for n in range(1, self.most + 1))
            yield from (f"{hidden}byte given{n};" for n in range(1, self.most + 1))
            yield f"{hidden}byte head;\n{hidden}byte tail;"
            into = [f"arg{n}[tail] = a{n};" for n in range(1, self.most + 1)]
            yield f"inline put({', '.join(['event', *(f'a{n}' for n in range(1, self.most + 1))])}) {{"
            yield f"  if\n  :: tail < {self.limit} -> what[tail] = event; {' '.join(into)}\n  :: else -> skip\n  fi;\n  tail++\n}}"
        if any(self.model.system.channels):
            yield f"{hidden}byte event;\n" + "\n".join(f"{hidden}byte got{n};" for n in range(1, self.most + 1))
        if any(self.swaps(b) for h in self.model.handlers.values() for b in h.branches):
            yield f"{hidden}int held[8];"
        if self.undo:
            yield "c_decl { static char before[4096]; }"
            yield "inline save() { c_code { memcpy(before, (char *) &now, vsize); } }"
            yield "inline undo() { c_code { memcpy((char *) &now, before, vsize); } }"
        yield "inline report(n) { property = n; assert(property != n); property = 0 }"

    # ── handlers ──

    def handler(self, handler: Handler) -> str:
        """The rows of one part about one class of event."""
        self.scope = handler
        names = [self.param(f.name) for f in handler.params]
        body = first_matches(handler, self.text, self.branch, LAYOUT, self.wrong(Fault.HOLE) if not handler.total else "")
        self.scope = None
        return f"inline {self.names.handler((handler.part.name, handler.event))}({', '.join(names)}) {{\n{body}\n}}"

    def branch(self, branch: Branch) -> list[str]:
        """The statements of one row."""
        lines = [self.guarded(c.condition, self.wrong(c.fault)) for c in branch.checks]
        lines += [self.guarded(a.condition, self.action(a)) for a in branch.actions]
        part = cast(Handler, self.scope).part
        updates, held = in_order(branch.updates, part.machine.state)
        fields = [f"held[{n}] = {self.text(node)}" for n, (_, node) in enumerate(held)]
        fields += [f"{self.names.field(part.name, name)} = {self.text(node)}" for name, node in updates]
        fields += [f"{self.names.field(part.name, name)} = held[{n}]; held[{n}] = 0" for n, (name, _) in enumerate(held)]
        return [*lines, *fields]

    def swaps(self, branch: Branch) -> bool:
        """Whether a row exchanges fields, so that no order of assignments will do."""
        return any(
            in_order(branch.updates, h.part.machine.state)[1] for h in self.model.handlers.values() if any(b is branch for b in h.branches)
        )

    def guarded(self, condition: object, statement: str) -> str:
        """The statement, where the condition holds."""
        if condition is True:
            return statement
        return f"if :: {self.text(condition)} -> {statement} :: else -> skip fi"

    def wrong(self, fault: Fault | None) -> str:
        """The step is not allowed; the first reason counts."""
        number = CUT if fault is None else FAULTS[fault]
        name = "CUT" if fault is None else fault.name
        self.names.constants.setdefault(self.names.of(("wrong", number), name), number)
        self.names.groups[self.names.known["wrong", number]] = "why a step is not allowed"
        return f"fail({self.names.known['wrong', number]})"

    def action(self, action: Action) -> str:
        """One statement."""
        if isinstance(action, Put):
            return self.put(self.names.message(action.key), [self.text(arg) for arg in action.args])
        if isinstance(action, Push):
            return self.push(action)
        if isinstance(action, Clear):
            return self.clear(action.channel)
        if isinstance(action, Clock):
            return self.clock(action)
        return self.wrong(cast(Wrong, action).fault)

    def push(self, action: Push) -> str:
        """Into a channel, if it has room."""
        name = self.names.of(("channel", action.channel.name), action.channel.name)
        args = [self.text(arg) for arg in action.args]
        message = ", ".join([self.names.message(action.key), *args, *["0"] * (self.arity(action.channel) - len(args))])
        send = f"{name}{'!!' if action.channel.reordered else '!'}{message}"
        return f"if :: len({name}) < {action.channel.capacity} -> {send} :: else -> {self.wrong(Fault.OVERFLOW)} fi"

    def clear(self, channel: Channel) -> str:
        """Everything under way is lost."""
        name = self.names.of(("channel", channel.name), channel.name)
        return f"do :: len({name}) > 0 -> {name}?{', '.join(['_'] * (1 + self.arity(channel)))} :: else -> break od"

    def clock(self, action: Clock) -> str:
        """A timer starts, stops, is held or goes on."""
        name = self.names.timer(action.part, action.timer)
        if action.kind is PauseTimer:
            return f"{name} = ({name} == {self.names.ledger(Ledger.RUNNING)} -> {self.names.ledger(Ledger.PAUSED)} : {name})"
        if action.kind is ResumeTimer:
            return f"{name} = ({name} == {self.names.ledger(Ledger.PAUSED)} -> {self.names.ledger(Ledger.RUNNING)} : {name})"
        return f"{name} = {self.names.ledger(Ledger.RUNNING if action.kind is StartTimer else Ledger.OFF)}"

    def arity(self, channel: Channel) -> int:
        """How many fields the events in a channel have at most."""
        return max((len(params(key[1])) for key in self.model.messages(channel)), default=0)

    # ── the queue ──

    def settling(self, first: Iterable[Key]) -> str:
        """The call that works off the queue after ``first`` were handled; empty where nothing can be in it."""
        start = tuple(first)
        keys = self.model.reached(start)
        if not keys:
            return ""
        kind = (keys, self.model.risky(start), self.model.endless(start))
        return self.settles.setdefault(kind, self.names.of(("settle", kind), f"settle_{len(self.settles) + 1}")) + "()"

    def settle(self, kind: tuple[tuple[Key, ...], bool, bool], name: str) -> str:
        """Works off a queue that can hold nothing but these keys, where a step may go wrong, or never end."""
        keys, risky, endless = kind
        wipe = ["what[head] = 0;", *(f"arg{n}[head] = 0;" for n in range(1, self.most + 1))] if self.breadth_first else []
        cases = [f"    :: what[head] == {self.names.message(key)} -> {self.called(key, 'arg{}[head]')}" for key in keys]
        going, more = "wrong == 0 && " if risky else "", f"head < {self.limit} && " if endless else ""
        return "\n".join([
            f"inline {name}() {{", "  do",
            *(["  :: wrong != 0 -> break"] if risky else []),
            *([f"  :: {going}head < tail && head == {self.limit} -> {self.wrong(Fault.ENDLESS)}"] if endless else []),
            f"  :: {going}{more}head < tail ->", "    if", *cases, "    fi;", f"    {' '.join([*wipe, 'head++'])}",
            f"  :: {going}head == tail -> break", "  od;", *(self.wiped() if risky else []), "  head = 0; tail = 0", "}",
        ])  # fmt: skip

    def wiped(self) -> list[str]:
        """What is left of the queue of a step that went wrong is cleared as well."""
        if not self.breadth_first:
            return []
        clear = " ".join(["what[head] = 0;", *(f"arg{n}[head] = 0;" for n in range(1, self.most + 1))])
        return [f"  do :: head < {self.limit} && head < tail -> {clear} head++ :: else -> break od;"]

    def called(self, key: Key, argument: str) -> str:
        """The call of a handler with the arguments of a message."""
        return f"{self.names.handler(key)}({', '.join(argument.format(n) for n in range(1, len(params(key[1])) + 1))})"

    # ── steps ──

    def options(self, trigger: Trigger) -> Iterator[str]:
        """The options of the loop for one way to begin a step."""
        guards = [] if trigger.guard is None else [self.guard(trigger)]
        first: list[str] = []
        if trigger.budget >= 0:
            budget = self.model.system.budgets[trigger.budget]
            left = self.names.of(("budget", budget), budget.name + "_left")
            guards.append(f"{left} > 0")
            first.append(f"{left}--")
        if trigger.kind in (Kind.SEND, Kind.EXPIRE):
            key = (trigger.where, type(trigger.event))
            if trigger.kind is Kind.EXPIRE:
                timer = self.names.timer(trigger.where, cast(Enum, trigger.timer))
                guards.append(f"{timer} == {self.names.ledger(Ledger.RUNNING)}")
                first.append(f"{timer} = {self.names.ledger(Ledger.OFF)}")
            args = [self.names.constant(value, "true", "false") for value in constant_args(trigger.event)]
            yield self.option(trigger, guards, [*first, self.begun(key, args)], [key])
            return
        channel = next(c for c in self.model.system.channels if c.name == trigger.where)
        yield from self.channel_options(trigger, channel, guards, first)

    def guard(self, trigger: Trigger) -> str:
        """The condition of a way to begin a step."""
        return self.text(fold(trigger.guard))

    def channel_options(self, trigger: Trigger, channel: Channel, guards: list[str], first: list[str]) -> Iterator[str]:
        """What a channel may do."""
        name, keys = self.names.of(("channel", channel.name), channel.name), self.model.messages(channel)
        if not keys:
            return
        if trigger.kind is Kind.DROP:
            yield self.option(trigger, [*guards, f"len({name}) > 0"], [*first, self.clear(channel)], [])
        elif not channel.reordered:
            into = ["event", *(f"got{n}" for n in range(1, self.arity(channel) + 1))]
            forget = "; ".join(f"{name} = 0" for name in into)
            take = f"{name}?{', '.join(into)}"
            if trigger.kind is Kind.LOSE:
                yield self.option(trigger, [*guards, f"len({name}) > 0"], [*first, take, forget], [])
                return
            handle = self.put("event", into[1:])
            if self.apart:
                cases = " ".join(f":: event == {self.names.message(key)} -> {self.called(key, 'got{}')}" for key in keys)
                handle = f"if {cases} fi"
            yield self.option(trigger, [*guards, f"len({name}) > 0"], [*first, take, handle, forget], keys)
        elif trigger.position == 0:
            for key, values in content(self.model, channel):
                message = [self.names.message(key), *(self.names.constant(v, "true", "false") for v in values)]
                pattern = ", ".join([*message, *["0"] * (1 + self.arity(channel) - len(message))])
                call = [self.begun(key, message[1:])] if trigger.kind is Kind.DELIVER else []
                yield self.option(trigger, [*guards, f"{name}??[{pattern}]"], [*first, f"{name}??{pattern}", *call], [key] if call else [])

    def begun(self, key: Key, args: list[str]) -> str:
        """The first event of a step is handled, or put into the queue to be handled."""
        return f"{self.names.handler(key)}({', '.join(args)})" if self.apart else self.put(self.names.message(key), args)

    def put(self, message: str, args: list[str]) -> str:
        """An event is put into the queue of the step. In ``(a -> b : c)`` as argument of an inline, SPIN takes ``b`` for a label."""
        given = [f"given{n}" if "->" in arg else arg for n, arg in enumerate(args, 1)]
        first = [f"{name} = {arg}; " for name, arg in zip(given, args, strict=True) if name != arg]
        last = [f"; {name} = 0" for name, arg in zip(given, args, strict=True) if name != arg]
        return "".join([*first, f"put({', '.join([message, *given, *['0'] * (self.most - len(args))])})", *last])

    def chosen(self, options: Sequence[str]) -> Iterator[str]:
        """A step: the choice of how it begins, then what follows from it."""
        if not options:
            return
        keys = tuple(self.model.handlers)
        risky, endless = self.model.may_go_wrong(), self.model.endless(keys)
        going = "wrong == 0 && " if risky else ""
        yield "  :: atomic {\n    if  /* how the step begins */"
        yield from options
        yield "    fi;\n    do  /* what follows from it */"
        if endless:
            yield f"    :: {going}head < tail && head == {self.limit} -> {self.wrong(Fault.ENDLESS)}"
            going += f"head < {self.limit} && "
        for key in keys:
            call = self.called(key, "arg{}[head]")
            yield f"    :: d_step {{ {going}head < tail && what[head] == {self.names.message(key)} -> {call}; head++ }}"
        yield f"    :: else -> break\n    od;\n    d_step {{ head = 0; tail = 0; {'finish()' if risky else 'skip'} }}\n    }}"

    def option(self, trigger: Trigger, guards: list[str], statements: list[str], keys: Sequence[Key]) -> str:
        """One option of the loop."""
        guard = " && ".join(f"({g})" if " || " in g else g for g in guards) or "true"
        if len([b for key in (*keys, *self.model.reached(keys)) for b in self.model.handlers[key].branches]) > self.apart:
            begins = "; ".join([*(["save()"] if self.undo else []), *statements])
            return f"{GROUPED}d_step {{ {guard} ->  /* {comment(str(trigger))} */\n         {begins} }}"
        settle = self.settling(keys)
        risky = self.model.risky(keys)
        body = [*(["save()"] if self.undo and risky else []), *statements, *([settle] if settle else []), *(["finish()"] if risky else [])]
        if not risky:
            body.append("skip")  # a d_step whose last statement leaves a loop is compiled wrongly by SPIN 6.5.2
        return f"  :: d_step {{ /* {comment(str(trigger))} */\n    {guard} ->\n      " + ";\n      ".join(body) + "\n    }"

    def finish(self) -> Iterator[str]:
        """What ends a step that may have gone wrong: a report of each fault, once."""
        yield "inline finish() {\n  if\n  :: wrong == 0 -> skip"
        for fault, number in FAULTS.items():
            if ("wrong", number) in self.names.known:
                once = f"reported[{number}] -> skip :: else -> reported[{number}] = 1; " if not self.breadth_first else "else -> "
                yield f"  :: wrong == {fault.name} -> if :: {once}report({number}) fi{'; undo()' if self.undo else ''}; wrong = 0"
        if ("wrong", CUT) in self.names.known:
            yield f"  :: wrong == CUT -> {'undo(); ' if self.undo else ''}wrong = 0"
        yield "  fi\n}"

    def claims(self) -> Iterator[str]:
        """One option for each property: it is reported, once, where it is broken (or reached)."""
        for claim in self.model.claims:
            if self.breadth_first and claim.reach:
                continue
            said = comment(f"{'reached' if claim.reach else 'broken'}: {claim.prop.name}")
            guard, note = f"({self.text(claim.formula)})", ""
            if not self.breadth_first:
                guard, note = f"!reported[{claim.number}] && {guard}", f"reported[{claim.number}] = 1; "
            yield f"  :: d_step {{ /* {said} */\n    {guard} -> {note}report({claim.number}) }}"


LAYOUT = Layout(first="  if\n  :: {} ->", other="  :: else -> if\n  :: {} ->", last="  :: else ->", end="fi", join=";", skip="skip",
                remark="/* {} */")  # fmt: skip


__all__ = ["CUT", "FAULTS", "Promela"]
