"""A real shell on a virtual clock, driven by actions, with every handler and caller in our hands, and compared with the table after each.

What is compared, and with what it is independent of: the trace, with the table interpreted step by step; the state, with the fold of the
events in the order they were sent; the effects, as the handlers saw them; failures, as ``on_error`` was told them; timers, as the event
loop itself has them scheduled, not as the shell says; tasks, as asyncio counts them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from enum import Enum
from typing import Any

from turnproof.checkers.stateful.actions import (
    PATIENCE,
    PLAIN,
    START_MS,
    WAITING,
    Action,
    Advance,
    Caller,
    Close,
    Crowd,
    Doing,
    Fault,
    Jump,
    LateHandlersEnd,
    Plan,
    Send,
    SendTaken,
)
from turnproof.checkers.stateful.guide import taken_event
from turnproof.checkers.stateful.model import AnyAnswer, Complaint, Judge, Model, apart, differing, dues, running, same
from turnproof.checkers.stateful.tally import Broken, Planted, Tally, Ticket
from turnproof.checkers.written import show_event
from turnproof.machines.kernel import TIMER_EFFECTS
from turnproof.shell import Failure, Runner, RunnerClosed, TraceStep, VirtualClock
from turnproof.specs.language import Spec

AnyRunner = Runner[Any, Any, Any]
MakeRunner = Callable[..., AnyRunner]

TURNS_MAX, JUMPS_MAX = 2_000, 10_000
"""Bounds of the clock: a shell that turns in place is found out soon."""
AFTERLIFE = 6
"""Events a released instance still gets before a new one begins."""
LIFE = 400
"""Events after which a new instance begins in any case, so that a story stays readable."""


class Rig:
    """Plays actions. Raises :class:`Broken` at the first difference between shell and table, and at the first broken property."""

    def __init__(self, judge: Judge, *, runner: MakeRunner = Runner, tally: Tally | None = None) -> None:
        self.judge, self.make_runner = judge, runner
        self.tally = Tally() if tally is None else tally
        self.clock = VirtualClock(start_ms=START_MS, turns_max=TURNS_MAX, jumps_max=JUMPS_MAX)
        self.script: list[Action] = []
        self.complaint: Complaint | None = None
        self.clock.loop.set_exception_handler(self._escaped)
        self.clock.run(self._begin())

    def play(self, *actions: Action) -> None:
        """Play actions, and compare after each."""
        try:
            self.clock.run(self._play_all(actions))
        except Exception as error:
            self._complain(f"the shell let {type(error).__name__} out: {error}")
        if self.complaint is not None:
            raise Broken(self.complaint, self.script, self.model.history)

    def finish(self) -> None:
        """Close the shell, compare a last time, and give everything back."""
        try:
            if self.complaint is None:
                self.play(Close())
        finally:
            self.clock.close()

    # ── an instance ──

    async def _begin(self) -> None:
        machine = self.judge.spec.machine
        self.model = Model(self.judge)
        self.tickets: deque[Ticket] = deque()
        self.plan: deque[Doing] = deque()
        self.performed = 0
        self.owed: list[Planted] = []
        """Raised by handlers, and not reported yet."""
        self.cancellations_owed = 0
        self.running = 0
        """Coroutine handlers that have not ended."""
        self.gates: deque[asyncio.Future[None]] = deque()
        self.jumped_ms = -1
        """Where the clock last leapt to."""
        self.tally.instances += 1
        handlers = {effect: self._perform for effect in machine.effects if effect not in TIMER_EFFECTS}
        self.runner = self.make_runner(
            machine, handlers, key="sampled", on_error=self._reported, trace=self._traced, timestamp=self.clock.loop.time
        )
        broken = self.model.broken_now()
        if broken is not None:
            self.complaint = broken

    async def _play_all(self, actions: Sequence[Action]) -> None:
        for action in actions:
            if self.complaint is not None:
                return
            chosen = self._chosen(action) if isinstance(action, SendTaken) else action
            if chosen is not None:
                self.script.append(chosen)
                await self._play(chosen)

    def _chosen(self, action: SendTaken) -> Send | None:
        event = taken_event(self.judge.spec.machine, self.model.state, action.seed)
        return None if event is None else Send(event, action.caller, action.plan)

    async def _play(self, action: Action) -> None:
        self.plan.extend(action.plan)
        match action:
            case Send(event, caller):
                await self._send(event, caller)
            case SendTaken():
                raise AssertionError("an event is chosen before it is played")
            case Crowd(events):
                await self._together(self._callers(events))
            case Advance(ms, to_next):
                await self.clock.advance(max(0, ms + (self._until_next() if to_next else 0)))
            case Jump(ms, over_next=over_next):
                self._jump(ms + (self._until_next() if over_next else 0))
            case LateHandlersEnd(count):
                for _ in range(min(count, len(self.gates))):
                    gate = self.gates.popleft()
                    if not gate.done():
                        gate.set_result(None)
            case Close(events, turns, leaves=leaves):
                await self._close(events, turns, leaves)
                return
        await self.clock.settle()
        self._compare()
        self.plan.clear()
        if self.complaint is None and (self.model.afterlife >= AFTERLIFE or len(self.model.history) >= LIFE):
            await self._close((), 0, -1)

    def _until_next(self) -> int:
        """Milliseconds until the next timer is due; 0 if none runs."""
        return max(0, min(self.model.armed.values(), default=self.clock.now_ms) - self.clock.now_ms)

    def _jump(self, ms: int) -> None:
        self.tally.jumps += 1
        self.clock.jump(ms)
        self.jumped_ms = self.clock.now_ms

    # ── callers ──

    async def _send(self, event: object, caller: Caller) -> None:
        self.tally.callers[caller] += 1
        if caller is Caller.POSTS:
            self._post(event)
            return
        task = asyncio.create_task(self._call(event))
        if caller in PATIENCE:
            await self._turns(PATIENCE[caller])
            task.cancel()
        await self._together([task])

    async def _call(self, event: object) -> None:
        """Send an event and await its answer."""
        if self.runner.closed:
            try:
                await self.runner.send(event)
            except RunnerClosed:
                return
            self._complain(f"{show_event(event)} was accepted after the shell was closed")
        elif self.model.accepts(event):
            ticket = self._hand_over(event)
            self._compare_answer(ticket, await self.runner.send(event))

    def _post(self, event: object) -> None:
        if not self.runner.closed and self.model.accepts(event):
            ticket = self._hand_over(event)
            self._compare_answer(ticket, self.runner.post(event))

    def _callers(self, events: Iterable[object]) -> list[asyncio.Task[None]]:
        return [asyncio.create_task(self._call(event)) for event in events]

    async def _together(self, tasks: Sequence[asyncio.Task[None]], awaited: str = "send()") -> None:
        """Wait for callers, without letting the time pass: an answer is due at once, whatever the handlers do."""
        await self.clock.settle()
        for task in tasks:
            if not task.done():
                self._complain(f"a caller that awaits {awaited} waits for ever")
                task.cancel()
            elif not task.cancelled() and task.exception() is not None:
                self._complain(f"{awaited} raised {task.exception()!r}")

    def _hand_over(self, event: object) -> Ticket:
        ticket = Ticket(event)
        self.tickets.append(ticket)
        return ticket

    def _compare_answer(self, ticket: Ticket, answer: AnyAnswer) -> None:
        if ticket.answer is None:
            self._complain(f"{show_event(ticket.event)} was answered before it was applied")
        elif not same(answer, ticket.answer):
            self._complain(f"{show_event(ticket.event)} {differing(answer, ticket.answer)}")

    @staticmethod
    async def _turns(count: int) -> None:
        for _ in range(count):
            await asyncio.sleep(0)

    # ── what the shell tells ──

    def _traced(self, step: TraceStep[Any, Any, Any]) -> None:
        if self.complaint is not None:
            return
        ticket = self.tickets.popleft() if self.tickets and self.tickets[0].event == step.event else None
        if ticket is None:
            self._expect_expiry(step.event)
        answer, broken = self.model.step(step.event, self.clock.now_ms)
        self.tally.steps += 1
        self.tally.rows.add(answer.row.name)
        if ticket is not None:
            ticket.answer = answer
        if not same(step.answer, answer):
            self._complain(f"{show_event(step.event)} {differing(step.answer, answer)}")
        elif step.post != self.model.state:
            self._complain(f"after {show_event(step.event)} the shell traced a state where {apart(step.post, self.model.state)}")
        elif broken is not None and self.complaint is None:
            self.complaint = broken

    def _expect_expiry(self, event: object) -> None:
        if self.runner.closed:
            self._complain(f"{show_event(event)} was applied after the shell was closed")
        timer = self.judge.expiries.get(type(event))
        due = None if timer is None else self.model.armed.get(timer)
        if timer is None or due is None:
            self._complain(f"{show_event(event)} was applied, which nobody sent at this point")
            return
        if due < self.clock.now_ms == self.jumped_ms:
            self.tally.late += 1
        elif due != self.clock.now_ms:
            self._complain(f"timer {timer.name.lower()} fired at {self.clock.now_ms - due:+,} ms from when it is due")
        self.tally.expiries += 1
        del self.model.armed[timer]

    def _reported(self, failure: Failure) -> None:
        if isinstance(failure.error, Planted) and failure.error in self.owed:
            self.owed.remove(failure.error)
        elif isinstance(failure.error, asyncio.CancelledError) and self.cancellations_owed:
            self.cancellations_owed -= 1
        else:
            of = "the trace hook" if failure.effect is None else show_event(failure.effect)
            self._complain(f"on_error was told {failure.error!r} of {of}, which was told before or never happened")

    def _escaped(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._complain(f"an exception escaped to the event loop: {context.get('exception', context.get('message'))!r}")

    # ── handlers ──

    def _perform(self, effect: object) -> Coroutine[Any, Any, None] | None:
        doing = self.plan.popleft() if self.plan else Doing(Fault.NOTHING)
        self.tally.faults[doing.fault] += 1
        if doing.fault not in PLAIN:
            return self._perform_awaiting(effect, doing)
        self._note(effect)
        if doing.fault is Fault.RAISES:
            raise self._owe()
        if doing.fault is Fault.POSTS:
            self._post(doing.event)
        elif doing.fault is Fault.BLOCKS:
            self._jump(doing.ms)
        return None

    async def _perform_awaiting(self, effect: object, doing: Doing) -> None:
        self._note(effect)
        self.running += 1
        try:
            await self._misbehave(doing)
        finally:
            self.running -= 1

    async def _misbehave(self, doing: Doing) -> None:
        if doing.fault in WAITING:
            gate: asyncio.Future[None] = self.clock.loop.create_future()
            self.gates.append(gate)
            await gate
        elif doing.fault in (Fault.AWAITS, Fault.FAILS_AWAITING):
            await self._turns(2)
        if doing.fault in (Fault.SENDS, Fault.SENDS_LATE):
            await self._call(doing.event)
        elif doing.fault in (Fault.FAILS_AWAITING, Fault.FAILS_LATE):
            raise self._owe()
        elif doing.fault is Fault.CANCELS_ITSELF:
            self.cancellations_owed += 1
            raise asyncio.CancelledError
        elif doing.fault is Fault.HANGS:
            await self.clock.loop.create_future()

    def _note(self, effect: object) -> None:
        due = self.model.effects[self.performed] if self.performed < len(self.model.effects) else None
        if effect != due:
            self._complain(f"{show_event(effect)} was performed where {'no effect' if due is None else show_event(due)} is due")
        self.performed += 1

    def _owe(self) -> Planted:
        self.owed.append(Planted(f"planted failure {len(self.owed)}"))
        return self.owed[-1]

    # ── comparing ──

    def _complain(self, sentence: str) -> None:
        """Only the first complaint counts: what follows may be its consequence."""
        if self.complaint is None:
            self.complaint = Complaint(sentence)

    def _compare(self) -> None:
        self._compare_effects()
        if self.runner.state != self.model.state:
            self._complain(f"the shell is in a state where {apart(self.runner.state, self.model.state)}")
        self._compare_timers(self.model.armed, self.model.held)
        by_state, by_effects = self.model.timers_by_state(), (set(self.model.armed), set(self.model.held))
        if by_state != by_effects:
            self._complain(f"by the state {running(by_state)}; by the effects {running(by_effects)}")
        self._compare_tasks(self.running)

    def _compare_effects(self) -> None:
        if self.tickets:
            self._complain(f"{show_event(self.tickets[0].event)} was sent and never applied")
        if self.performed < len(self.model.effects):
            self._complain(f"{show_event(self.model.effects[self.performed])} was never performed")
        if self.owed or self.cancellations_owed:
            what = repr(self.owed[0]) if self.owed else "a cancellation"
            self._complain(f"a handler ended with {what}, and on_error was not told")

    def _compare_timers(self, armed: dict[Enum, int], held: dict[Enum, int]) -> None:
        scheduled = self.clock.scheduled_ms()
        if scheduled != sorted(armed.values()):
            self._complain(f"the event loop has callbacks due at {scheduled} ms; the timers that run are {dues(armed)}")
        elif self.runner.due_ms() != armed:
            self._complain(f"the shell says that {dues(self.runner.due_ms())} run; by the table {dues(armed)}")
        elif self.runner.held_ms() != held:
            self._complain(f"the shell says that {dues(self.runner.held_ms())} are held; by the table {dues(held)}")

    def _compare_tasks(self, expected: int) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        if len(tasks) != expected:
            left = ", ".join(sorted(task.get_name() for task in tasks)) or "none"
            self._complain(f"{len(tasks)} tasks are left where {expected} handlers still run: {left}")

    # ── closing ──

    async def _close(self, events: Sequence[object], turns: int, leaves: int) -> None:
        callers = self._callers(events)
        await self._turns(turns)
        closing = asyncio.create_task(self.runner.aclose())
        if leaves > 0:  # before its first step it would be somebody who never closed anything
            await self._turns(leaves)
            closing.cancel()
            await self._together([closing], "aclose()")
            closing = asyncio.create_task(self.runner.aclose())
        await self._together([closing], "aclose()")
        await self._together(callers)
        # Who ends by a cancellation while everybody is cancelled need not be reported.
        self.cancellations_owed = 0
        self._compare_effects()
        if self.runner.state != self.model.state:
            self._complain(f"closed, the shell is in a state where {apart(self.runner.state, self.model.state)}")
        self._compare_timers({}, {})
        self._compare_tasks(0)
        await self._together([asyncio.create_task(self._call(event)) for event in self.model.history[-1:]])
        self.tally.closes += 1
        if self.complaint is None:
            await self._begin()


def play(spec: Spec, script: Sequence[Action], *, runner: MakeRunner = Runner, judge: Judge | None = None) -> None:
    """Play a whole script against the shell, close, and compare to the last. Raises :class:`Broken` if it goes wrong."""
    rig = Rig(Judge(spec) if judge is None else judge, runner=runner)
    try:
        rig.play(*script)
    finally:
        rig.finish()


__all__ = ["Broken", "MakeRunner", "Plan", "Planted", "Rig", "Tally", "play"]
