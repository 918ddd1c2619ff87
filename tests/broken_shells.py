"""Shells with one thing wrong each, and what the stateful engine says of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from enum import Enum
from typing import Any

import attrs
from shell_toys import FORGETFUL

from turnproof.machines.kernel import Ignored, Refused, StartTimer, StopTimer, Taken
from turnproof.shell import Failure, Runner
from turnproof.shell.timers import TimerEffect, Timers

AnyRunner = Runner[Any, Any, Any]


class DropsAnEffect(AnyRunner):
    """Now and then an effect is not performed."""

    performed = 0

    def _perform(self, item: Any) -> bool:
        self.performed += not isinstance(item, asyncio.Future)
        return self.performed % 5 != 0 and super()._perform(item)


class PerformsTwice(AnyRunner):
    """A handler that raised is asked again."""

    def _report(self, effect: Any, error: BaseException) -> None:
        super()._report(effect, error)
        if effect is not None and not self._queue:
            self._enqueue(effect)


class LastEffectFirst(AnyRunner):
    """Effects that wait are performed in the wrong order."""

    def _perform_queue(self) -> None:
        self._queue.reverse()
        super()._perform_queue()


class StopsAtAFailure(AnyRunner):
    """After a handler raised, the other effects of the step are forgotten."""

    def _report(self, effect: Any, error: BaseException) -> None:
        super()._report(effect, error)
        self._queue.clear()


class AwaitsEachHandler(AnyRunner):
    """The next effect waits for the end of a handler, so one that hangs stops everything."""

    def _perform_queue(self) -> None:
        if self._tasks:
            self._performing = True
            next(iter(self._tasks)).add_done_callback(lambda task: self._perform_queue())
        else:
            super()._perform_queue()


class LosesAQueuedEvent(AnyRunner):
    """An event from inside a handler is answered, and forgotten."""

    def post(self, event: Any) -> Any:
        return self.machine.step(self.state, event) if self._performing else super().post(event)


class SwallowsAnException(AnyRunner):
    """on_error is not told."""

    def _report(self, effect: Any, error: BaseException) -> None: ...


class SwallowsALateException(AnyRunner):
    """on_error is not told of what a coroutine handler raises."""

    def _ended(self, effect: Any, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        _ = task.cancelled() or task.exception()


class ReportsTwice(AnyRunner):
    """on_error is told of a failure once more."""

    def _report(self, effect: Any, error: BaseException) -> None:
        super()._report(effect, error)
        super()._report(effect, error)


class AwaitsBetweenReadAndStore(AnyRunner):
    """Two callers read the same state, and the second overwrites what the first did."""

    async def send(self, event: Any) -> Any:
        before = self.state
        await asyncio.sleep(0)
        self.state = before
        return await super().send(event)


class PerformsInTheCaller(AnyRunner):
    """Handlers run in the task of whoever sent the event, and end when it is cancelled."""

    async def send(self, event: Any) -> Any:
        self._performing = True
        answer = self.post(event)
        self._performing = False
        while self._queue:
            item: Any = self._queue.popleft()
            result = self._handler(type(item))(item)
            if result is not None:
                await result
        return answer


class TellsWhoeverLeft(AnyRunner):
    """A caller that was cancelled is answered all the same, which asyncio takes for an error."""

    def _perform(self, item: Any) -> bool:
        if isinstance(item, asyncio.Future):
            item.set_result(None)
            return False
        return super()._perform(item)


class AnswersLate(AnyRunner):
    """send() returns when every handler has ended."""

    async def send(self, event: Any) -> Any:
        answer = await super().send(event)
        await self.idle()
        return answer


class WithTimers(AnyRunner):
    """Base of the runners with broken timers."""

    kind: type[Timers]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._timers = self.kind(self._loop, self._timers._durations_ms, self._expired)


def with_timers(name: str, kind: type[Timers]) -> type[AnyRunner]:
    """A runner that uses these timers."""
    return type(name, (WithTimers,), {"kind": kind, "__doc__": kind.__doc__})


class NeverArms(Timers):
    """A timer that is started never fires."""

    def perform(self, effect: TimerEffect) -> None:
        if not isinstance(effect, StartTimer):
            super().perform(effect)


class NeverStops(Timers):
    """A timer that is stopped fires all the same, though it is no longer listed."""

    def perform(self, effect: TimerEffect) -> None:
        if isinstance(effect, StopTimer):
            self._armed.pop(effect.timer, None)
            self._held.pop(effect.timer, None)
        else:
            super().perform(effect)


class OneMillisecondLate(Timers):
    """Durations are off by one."""

    def __init__(self, loop: asyncio.AbstractEventLoop, durations_ms: Mapping[Enum, int], expired: Any) -> None:
        super().__init__(loop, {timer: ms + 1 for timer, ms in durations_ms.items()}, expired)


class ForgetsDeadlines(Timers):
    """not_before_ms is not read."""

    def perform(self, effect: TimerEffect) -> None:
        super().perform(StartTimer(effect.timer) if isinstance(effect, StartTimer) else effect)


class ResumesInFull(Timers):
    """A resumed timer starts from the beginning."""

    def _disarm(self, timer: Enum) -> float:
        super()._disarm(timer)
        return self._durations_ms[timer] / 1000


class NeverFires(Timers):
    """The expiry is lost."""

    def _fire(self, timer: Enum, start: int) -> None:
        self._armed.pop(timer, None)


class DropsWhatIsLate(Timers):
    """A timer that the clock leapt over never fires."""

    def _fire(self, timer: Enum, start: int) -> None:
        if timer in self._armed and self._loop.time() - self._armed[timer][1].when() > 0.0005:
            self._armed.pop(timer)
            return
        super()._fire(timer, start)


class OutlivesClosing(Timers):
    """Timers run on after the shell was closed."""

    def clear(self) -> None: ...


class LeavesItsTasks(AnyRunner):
    """Closing cancels no handler."""

    async def _close(self, caller: Any, grace_ms: int) -> None:
        await self._queue_passed()


class ClosesInTheCaller(AnyRunner):
    """Whoever closes does it all; if that one is cancelled, nobody does."""

    async def aclose(self, *, grace_ms: int = 5_000) -> None:
        if not self.closed:
            self.closed = True
            self._timers.clear()
            await asyncio.sleep(0)
            await self._close(asyncio.current_task(), grace_ms)


class ForgetsWhatIsQueuedWhenClosed(AnyRunner):
    """Closing drops the effects of steps already answered."""

    async def aclose(self, *, grace_ms: int = 5_000) -> None:
        self._queue.clear()
        await super().aclose(grace_ms=grace_ms)


class AcceptsAfterClosing(AnyRunner):
    """Events are applied to a closed shell."""

    def _check(self, event: Any) -> None: ...


class StoresNothingWhenAHandlerRaises(AnyRunner):
    """The state is rolled back, though effects were performed."""

    def post(self, event: Any) -> Any:
        failed: list[Failure] = []
        before, told = self.state, self._on_error
        self._on_error = failed.append
        try:
            return super().post(event)
        finally:
            self._on_error = told
            for failure in failed:
                told(failure)
                self.state = before


class DropsTheLast(AnyRunner):
    """The last effect of a step is not performed."""

    def _perform(self, item: Any) -> bool:
        return (bool(self._queue) or isinstance(item, asyncio.Future)) and super()._perform(item)


class HasAnotherTable(AnyRunner):
    """A row answers that is not in the table."""

    def __init__(self, machine: Any, *args: Any, **options: Any) -> None:
        super().__init__(FORGETFUL, *args, **options)


class TracesTheStateBefore(AnyRunner):
    """The log says that nothing changed."""

    def __init__(self, *args: Any, trace: Any, **options: Any) -> None:
        super().__init__(*args, trace=lambda step: trace(attrs.evolve(step, post=step.before)), **options)


class FiresEarly(AnyRunner):
    """An event that changes nothing makes the running timer fire."""

    def post(self, event: Any) -> Any:
        answer = super().post(event)
        for timer in () if isinstance(answer, Taken) else tuple(self.due_ms()):
            self._timers.perform(StopTimer(timer))
            self._expired(timer)
        return answer


class ForgetsItsState(AnyRunner):
    """After an event that is ignored the instance is as new."""

    def post(self, event: Any) -> Any:
        answer = super().post(event)
        if isinstance(answer, Ignored):
            self.state = self.machine.initial
        return answer


class BeginsAnewWhenClosed(AnyRunner):
    """A closed instance is as new."""

    async def aclose(self, *, grace_ms: int = 5_000) -> None:
        await super().aclose(grace_ms=grace_ms)
        self.state = self.machine.initial


class SaysThatNothingRuns(AnyRunner):
    """due_ms() is empty."""

    def due_ms(self) -> Mapping[Enum, int]:
        return {}


class SaysThatNothingIsHeld(AnyRunner):
    """held_ms() is empty."""

    def held_ms(self) -> Mapping[Enum, int]:
        return {}


class RaisesARefusal(AnyRunner):
    """send() raises where the machine refuses."""

    async def send(self, event: Any) -> Any:
        answer = await super().send(event)
        if isinstance(answer, Refused):
            raise PermissionError(answer.why)
        return answer


class AnswersTwice(AnyRunner):
    """The answer is the one to a second event of the same kind."""

    async def send(self, event: Any) -> Any:
        await super().send(event)
        return self.machine.step(self.state, event)


class AnswersWhenClosed(AnyRunner):
    """A closed instance still answers, though it does nothing."""

    async def send(self, event: Any) -> Any:
        return self.machine.step(self.state, event) if self.closed else await super().send(event)


LOOP = "the event loop has callbacks due at"

BROKEN: list[tuple[type[AnyRunner], str]] = [
    (DropsAnEffect, r"[\w(), =]+ was (performed where|never performed)"),
    (DropsTheLast, r"[\w(), =]+ was never performed"),
    (PerformsTwice, r"[\w(), =]+ was performed where"),
    (LastEffectFirst, r"Notify\(renewals=0\) was performed where Fetch\(worker=\w\) is due"),
    (StopsAtAFailure, r"[\w(), =]+ was never performed|a caller that awaits send\(\) waits for ever"),
    (AwaitsEachHandler, r"a caller that awaits send\(\) waits for ever"),
    (LosesAQueuedEvent, r"[\w(), =]+ was answered before it was applied"),
    (HasAnotherTable, r"Finished\(worker=\w+\) was answered taken by row bad; the table answers \w+ by row Finished/"),
    (
        TracesTheStateBefore,
        r"after Started\(worker=\w\) the shell traced a state where phase is idle, by the table busy, worker is none",
    ),
    (SwallowsAnException, "a handler ended with .*, and on_error was not told"),
    (SwallowsALateException, "a handler ended with .*, and on_error was not told"),
    (ReportsTwice, "on_error was told .*, which was told before or never happened"),
    (AwaitsBetweenReadAndStore, r"[\w(), =]+ was sent and never applied"),
    (PerformsInTheCaller, r"a caller that awaits send\(\) waits for ever|[\w(), =]+ was never performed|send\(\) raised Planted"),
    (TellsWhoeverLeft, "an exception escaped to the event loop: InvalidStateError"),
    (AnswersLate, r"a caller that awaits send\(\) waits for ever"),
    (RaisesARefusal, r"send\(\) raised PermissionError"),
    (AnswersTwice, r"Started\(worker=\w\) was answered refused by row Started/refused; the table answers taken by row"),
    (
        StoresNothingWhenAHandlerRaises,
        r"the shell is in a state where (phase is (idle, by the table \w+|busy, by the table done)|lingers is yes, by the table no)",
    ),
    (ForgetsItsState, r"the shell is in a state where phase is idle, by the table \w+"),
    (BeginsAnewWhenClosed, r"closed, the shell is in a state where phase is idle, by the table \w+"),
    (with_timers("ArmsNoTimer", NeverArms), rf"{LOOP} \[\] ms; the timers that run are deadline at"),
    (with_timers("StopsNoTimer", NeverStops), LOOP),
    (with_timers("TimersOffByOne", OneMillisecondLate), rf"{LOOP} \[1005001\] ms; the timers that run are deadline at 1005000"),
    (with_timers("NoDeadlines", ForgetsDeadlines), rf"{LOOP} \[1005000\] ms"),
    (with_timers("FullResume", ResumesInFull), f"the shell says that deadline at 5000 are held|{LOOP}"),
    (with_timers("LosesAnExpiry", NeverFires), rf"{LOOP} \[\] ms; the timers that run are"),
    (with_timers("NeverLate", DropsWhatIsLate), rf"{LOOP} \[\] ms; the timers that run are .*Jump\(ms=|{LOOP} \[\] .*Fault.BLOCKS"),
    (ClosesInTheCaller, r"\d tasks are left where 0 handlers still run: .*Close\(|a caller that awaits .*Close\(|.* was never performed"),
    (with_timers("LeaksATimer", OutlivesClosing), rf"{LOOP} \[\d+\] ms; the timers that run are none\..*Close\(\)$"),
    (FiresEarly, r"timer \w+ fired at -[\d,]+ ms from when it is due"),
    (SaysThatNothingRuns, "the shell says that none run; by the table deadline at"),
    (SaysThatNothingIsHeld, "the shell says that none are held; by the table deadline at"),
    (LeavesItsTasks, r"1 tasks are left where 0 handlers still run: .*Close\(\)$"),
    (ForgetsWhatIsQueuedWhenClosed, r"a caller that awaits \w+\(\) waits for ever|[\w(), =]+ was never performed"),
    (AcceptsAfterClosing, r"[\w(), =]+ was applied after the shell was closed"),
    (AnswersWhenClosed, r"[\w(), =]+ was accepted after the shell was closed"),
]
"""A shell, and how the complaint about it begins."""
