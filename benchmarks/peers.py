"""The same machine in other hands: what a step costs there.

``transitions`` and ``python-statemachine`` are built mechanically from the rows of a table, one transition a row and phase, each
guard compiled to a Python function first, so that they pay for their own machinery and for nothing of ours. The ``match``
functions are written by hand, as a person would who has no table.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import transitions
from statemachine import State, StateMachine

from benchmarks import gate
from turnproof.machines import reply_slot as slot
from turnproof.machines.kernel import NOBODY, Machine, Row, StartTimer, StopTimer
from turnproof.machines.kernel.source import Writer

AnyMachine = Machine[Any, Any, Any]
Apply = Callable[[Any], object]

logging.getLogger("transitions").setLevel(logging.ERROR)


def compiled(machine: AnyMachine, row: Row[Any, Any]) -> tuple[Callable[[Any, Any], bool], Callable[[Any, Any], Any]]:
    """A row as two functions of (state, event): does its guard hold, and what is the answer."""
    writer = Writer(machine.name, machine.state, machine.phase, machine.rows)
    test = "True" if row.guard is None else writer.expression(row.guard)
    fields = "; ".join(f"{f.name} = s.{f.name}" for f in attrs.fields(machine.state))
    text = f"def guard(s, e):\n    {fields}\n    return {test}\n\ndef answer(s, e):\n    {fields}\n    return {writer.result(row)}\n"
    space: dict[str, Any] = dict(writer.names.table)
    exec(text, space)
    return space["guard"], space["answer"]


class Held:
    """What a library's callbacks work on: the state beside the library's own notion of a phase, and the last effects."""

    def __init__(self, initial: Any) -> None:
        self.data = initial
        self.effects: Sequence[object] = ()

    def take(self, answer: Any) -> None:
        """Apply an answer of a row."""
        if hasattr(answer, "effects"):
            self.data, self.effects = answer.state, answer.effects


def trigger_of(event: type) -> str:
    """The method name of an event class."""
    return f"on_{event.__name__.lower()}"


def with_transitions(machine: AnyMachine) -> tuple[Held, Apply]:
    """The table driven by ``transitions``."""
    model = Held(machine.initial)
    rules = []
    for row in machine.rows:
        guard, answer = compiled(machine, row)
        for phase in row.phases or machine.phases:
            rules.append({
                "trigger": trigger_of(row.event), "source": phase.value, "dest": row.to.value if row.to is not None else None,
                "conditions": lambda e, guard=guard: guard(model.data, e),
                "before": lambda e, answer=answer: model.take(answer(model.data, e)),
            })  # fmt: skip
    transitions.Machine(
        model, states=[p.value for p in machine.phases], transitions=rules, initial=getattr(machine.initial, machine.phase).value,
        auto_transitions=False, ignore_invalid_triggers=True,
    )  # fmt: skip

    def apply(event: Any) -> object:
        return getattr(model, trigger_of(type(event)))(event)

    return model, apply


def with_statemachine(machine: AnyMachine) -> tuple[Held, Apply]:
    """The table driven by ``python-statemachine``."""
    held = Held(machine.initial)
    states = {p: State(name=p.value, value=p.value, initial=p is getattr(machine.initial, machine.phase)) for p in machine.phases}
    events: dict[str, Any] = {}
    for row in machine.rows:
        guard, answer = compiled(machine, row)
        for phase in row.phases or machine.phases:
            move = states[phase].to(
                states[row.to or phase], internal=row.to is None,
                cond=lambda e, guard=guard: guard(held.data, e), on=lambda e, answer=answer: held.take(answer(held.data, e)),
            )  # fmt: skip
            name = trigger_of(row.event)
            events[name] = move if name not in events else events[name] | move
    body = {"__module__": __name__, **{f"state_{p.name.lower()}": s for p, s in states.items()}, **events}
    kind: Any = type(StateMachine)
    chart: Any = kind("Peer", (StateMachine,), body)()

    def apply(event: Any) -> object:
        return chart.send(trigger_of(type(event)), event)

    return held, apply


def match_gate(s: gate.Gate, e: object) -> tuple[gate.Gate, tuple[object, ...]]:
    """``gate`` as a person writes it without a table."""
    match e:
        case gate.CoinInserted() if s.phase is gate.LOCKED:
            if s.coins == 1:
                return attrs.evolve(s, phase=gate.OPEN, coins=2, armed=True), (gate.Unlock(), StartTimer(gate.Timer.CLOSE))
            return attrs.evolve(s, coins=s.coins + 1), ()
        case gate.Pushed() if s.phase is gate.OPEN:
            return attrs.evolve(s, phase=gate.LOCKED, coins=0, armed=False), (StopTimer(gate.Timer.CLOSE), gate.Lock())
        case gate.Pushed(hard) if s.phase is gate.LOCKED and hard:
            return attrs.evolve(s, phase=gate.ALARM, coins=0), (gate.Ring(),)
        case gate.CloseExpired() if s.armed:
            return attrs.evolve(s, phase=gate.LOCKED, coins=0, armed=False), (gate.Lock(),)
        case gate.Reset() if s.phase is gate.ALARM:
            return attrs.evolve(s, phase=gate.LOCKED), ()
    return s, ()


def match_slot(s: slot.ReplySlot, e: object) -> tuple[slot.ReplySlot, tuple[object, ...]]:
    """The part of ``reply_slot`` that the benchmark plays, as a person writes it without a table."""
    clear = s.attempt == NOBODY and not s.barriers and not s.fences
    match e:
        case slot.BeginRequested(operation, kind):
            if operation == NOBODY or (kind is not slot.TurnKind.VISIBLE and s.barriers) or s.phase is slot.HELD or s.fences:
                return s, ()
            if (s.phase is slot.OFFERED) != (kind is slot.TurnKind.QUEUED):
                return s, ()
            return attrs.evolve(s, phase=slot.HELD, holder=operation), (slot.Admit(operation),)
        case slot.ReleaseReported(operation, barrier, fence):
            if operation in (NOBODY, s.holder) and operation != s.holder:
                return s, ()
            wake = (slot.WakeWaiters(),) if s.waiting else ()
            freed = attrs.evolve(s, holder=NOBODY, waiting=0, barriers=s.barriers + barrier, fences=s.fences + fence)
            if clear and s.queued and not barrier and not fence:
                return attrs.evolve(freed, phase=slot.OFFERED, queued=s.queued - 1), (*wake, slot.StartQueuedTurn())
            return attrs.evolve(freed, phase=slot.FREE), wake
        case slot.AttemptRequested(operation):
            if operation == NOBODY or operation != s.holder or s.attempt not in (NOBODY, operation):
                return s, ()
            return attrs.evolve(s, attempt=operation), (slot.StartAttempt(operation),)
        case slot.AttemptEnded(operation):
            if operation != s.attempt:
                return s, ()
            if s.phase is slot.FREE and s.queued and not s.barriers and not s.fences:
                return attrs.evolve(s, phase=slot.OFFERED, attempt=NOBODY, queued=s.queued - 1), (slot.StartQueuedTurn(),)
            return attrs.evolve(s, attempt=NOBODY), ()
        case slot.TurnQueued():
            if s.phase is slot.FREE and clear:
                return attrs.evolve(s, phase=slot.OFFERED), (slot.StartQueuedTurn(),)
            return attrs.evolve(s, queued=s.queued + 1), ()
        case slot.WaitRequested():
            return (attrs.evolve(s, waiting=s.waiting + 1), ()) if s.phase is slot.HELD else (s, (slot.AnswerIdle(),))
        case _:
            pass
    return s, ()
