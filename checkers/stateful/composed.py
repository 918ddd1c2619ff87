"""Random runs of a shell that is composed of several machines: Hypothesis drives its public calls, the tables judge each of its steps.

A :class:`Stage` builds the shell, and has one method ``do_NAME`` for each thing that may be done to it; each draws what it needs from the
random numbers it is given. :func:`check` makes a Hypothesis rule of each, and rules that play many for one draw. After each action every
runner of the shell is compared with its table (:mod:`~turnproof.checkers.stateful.shadow`); once the shell is closed, nobody waits any
more, and no task and no timer is left.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from enum import Enum
from functools import partial
from typing import Any, cast

from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from turnproof.checkers.stateful.actions import START_MS
from turnproof.checkers.stateful.engine import BURST_RULES, away_from_here
from turnproof.checkers.stateful.shadow import Shadow
from turnproof.checkers.stateful.tally import Planted
from turnproof.checkers.verdict import Engine, Outcome, Verdict
from turnproof.shell import Failure, RunnerClosed, VirtualClock
from turnproof.shell.clock import ClockStalled
from turnproof.specs.language import AnyMachine

Act = tuple[str, int]
"""An action of a stage, and the seed of its random numbers."""
Script = tuple[Act, ...]

ACTIONS, BURST_MAX = 30, 20
"""Rules of a run, and actions of a burst, at most."""
POLLS_MAX = 5_000
"""Turns of the loop at one instant before it counts as turning in place."""
RUNS = 4
"""Runs that Hypothesis is asked for at a time; the first is a trivial one."""
ROUNDS = 2_000
TURNS_MAX = 3
"""Turns of the loop until a caller is cancelled, or a shell closed in the middle, at most."""
END_MS = 3_600_000
"""What the clock runs on after closing: nothing may happen in it."""
SMALLER_S = 5.0
"""How long a failing run is made smaller."""
CHECK = "the composed shell does what its tables say, whatever is called and whoever fails"


class Broken(AssertionError):
    """A run went wrong. ``script``: what was done until then."""

    def __init__(self, sentence: str, script: Sequence[Act]) -> None:
        super().__init__(sentence)
        self.sentence, self.script = sentence, tuple(script)


class Stage:
    """One shell on a virtual clock, what surrounds it, and the accounts of both. Subclass it for each composed class."""

    machines: tuple[AnyMachine, ...] = ()
    """Whose durations the clock is moved by."""
    refusals: tuple[type[BaseException], ...] = ()
    """What a call of the shell may raise."""

    def __init__(self) -> None:
        self.clock = VirtualClock(start_ms=START_MS, turns_max=POLLS_MAX)
        self.shadow = Shadow()
        self.calls: list[asyncio.Task[Any]] = []
        self.late: list[asyncio.Future[None]] = []
        self.done: Counter[str] = Counter()
        """How often what surrounds the shell was asked for something that must happen once."""
        self.faults: Counter[str] = Counter()
        self.script: list[Act] = []
        self.rng = random.Random(0)
        durations = sorted({rule.duration.milliseconds for machine in self.machines for rule in machine.timers})
        self.times = (0, 1, 100, *(d + off for d in durations for off in (-1, 0, 1)))
        self.clock.loop.set_exception_handler(lambda loop, context: self.shadow.wrong.append(f"escaped: {context!r}"))

    # ── for subclasses ──

    def durations_ms(self, *machines: AnyMachine) -> dict[Enum, int]:
        """Other durations than the machines' own: none on a virtual clock."""
        return {}

    async def open(self) -> None:
        """Build the shell; called again after it was closed."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close the shell."""
        raise NotImplementedError

    def judge(self) -> None:
        """Compare what was done with what the tables gave (:meth:`once`). Called after every action."""

    def judge_end(self) -> None:
        """As :meth:`judge`, once the shell is closed."""

    def reenter(self, rng: random.Random) -> None:
        """Call the shell from inside something that it called."""

    def once(self, what: str, effect: type, *, exactly: bool = True) -> None:
        """``what`` was done as often as the tables gave ``effect``; or, not ``exactly``, not oftener."""
        done, owed = self.done[what], self.shadow.effects[effect]
        if done > owed or (exactly and done < owed):
            self.shadow.wrong.append(f"{what}: done {done} times, {effect.__name__} was given {owed} times")

    # ── faults ──

    def trouble(self, rng: random.Random) -> None:
        """What a plain function of the user's may do: nothing, raise, or call the shell again."""
        kind = rng.random()
        if kind < 0.2:
            self.faults["raises"] += 1
            raise Planted
        if kind < 0.4:
            self.faults["re-enters"] += 1
            self.reenter(rng)

    async def delay(self, rng: random.Random) -> None:
        """What a coroutine function of the user's may do: as :meth:`trouble`, or answer late, hang, or obey late."""
        self.trouble(rng)
        kind = rng.random()
        if kind < 0.2:
            await asyncio.sleep(rng.choice(self.times) / 1000)
        elif kind < 0.5:
            self.faults["late"] += 1
            waits = asyncio.get_running_loop().create_future()
            self.late.append(waits)
            try:
                await waits
            except asyncio.CancelledError:
                if rng.random() < 0.3:
                    self.faults["obeys late"] += 1
                    await asyncio.sleep(1)
                raise
        elif kind < 0.6:
            self.faults["hangs"] += 1
            await asyncio.Event().wait()
        self.trouble(rng)

    def failed(self, failure: Failure) -> None:
        """``on_error`` of the shell: only what was planted may be reported."""
        if not isinstance(failure.error, (Planted, asyncio.CancelledError, RunnerClosed, *self.refusals)):
            group = failure.error
            planted = isinstance(group, ExceptionGroup) and all(isinstance(error, Planted) for error in group.exceptions)
            if not planted:
                self.shadow.wrong.append(f"reported: {failure!r}")

    def call(self, work: Coroutine[Any, Any, Any]) -> None:
        """Somebody calls the shell and waits."""
        self.calls.append(asyncio.get_running_loop().create_task(work, name=f"caller {len(self.calls)}"))

    # ── what is done to any shell ──

    async def do_clock_moves(self, rng: random.Random) -> None:
        """By a duration of some timer, or to a moment near the next."""
        due = self.clock.scheduled_ms()
        ms = max(0, due[0] - self.clock.now_ms + rng.choice((-1, 0, 1))) if due and rng.random() < 0.6 else rng.choice(self.times)
        await self.clock.advance(ms)

    async def do_clock_jumps(self, rng: random.Random) -> None:
        """Everything due meanwhile is late."""
        self.faults["jumps"] += 1
        self.clock.jump(rng.choice(self.times))

    async def do_caller_leaves(self, rng: random.Random) -> None:
        """Somebody who waits is cancelled."""
        waiting = [task for task in self.calls if not task.done()]
        if waiting:
            self.faults["cancelled"] += 1
            rng.choice(waiting).cancel()

    async def do_late_ends(self, rng: random.Random) -> None:
        """Something late answers, in time or not."""
        waiting = [future for future in self.late if not future.done()]
        if waiting:
            future = rng.choice(waiting)
            if rng.random() < 0.3:
                future.set_exception(Planted())
                future.exception()
            else:
                future.set_result(None)

    async def do_shell_closes(self, rng: random.Random) -> None:
        """In the middle of whatever happens, by a caller who may leave; then another begins."""
        if rng.random() < 0.8:  # else most runs would be short ones
            return
        self.faults["closes"] += 1
        closer = asyncio.get_running_loop().create_task(self.close(), name="closer")
        if rng.random() < 0.3:
            await asyncio.sleep(0)
            closer.cancel()
        await asyncio.wait((closer,))
        await self.end()
        await self.open()

    # ── playing ──

    def play(self, *script: Act) -> None:
        """Do these, one after another. Raises :class:`Broken` at the first difference."""
        for name, seed in script:
            self.script.append((name, seed))
            self._run(self._act(name, random.Random(seed)))

    def finish(self) -> None:
        """Close the shell and compare a last time."""
        try:
            self._run(self.end())
        finally:
            self.clock.close()

    def begin(self) -> None:
        """Build the shell."""
        self._run(self.open())

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            with self.shadow.watching():
                self.clock.run(work)
        except ClockStalled as error:
            raise Broken(str(error), self.script) from error
        except Exception as error:
            raise Broken(f"{type(error).__name__}: {error}", self.script) from error
        if self.shadow.wrong:
            raise Broken(self.shadow.wrong[0], self.script)

    async def _act(self, name: str, rng: random.Random) -> None:
        self.rng = rng
        turns = rng.choice((-1, -1, 0, 1, 2, TURNS_MAX))
        await getattr(self, f"do_{name}")(rng)
        for _ in range(turns):
            await asyncio.sleep(0)
        if turns < 0:
            await self.clock.settle()
        self.shadow.compare()
        self.judge()

    async def end(self) -> None:
        """Close; then nobody waits, and nothing is left."""
        await self.close()
        await self.clock.settle()
        self.shadow.compare()
        wrong = self.shadow.wrong
        wrong += [f"closed, and a task runs on: {task.get_name()}" for task in self._others() if ": " in task.get_name()]
        await self.clock.advance(END_MS)
        self.shadow.compare()
        self.judge()
        self.judge_end()
        wrong += [f"closed, and {task.get_name()} still waits: {task.get_coro()!r}" for task in self.calls if not task.done()]
        for task in self.calls:
            error = None if not task.done() or task.cancelled() else task.exception()
            if error is not None and not isinstance(error, (Planted, *self.refusals)):
                wrong.append(f"{task.get_name()} got {error!r}")
        wrong += [f"closed, and a task is left: {task.get_name()}" for task in self._others()]
        wrong += [f"closed, and timers are left: {self.clock.scheduled_ms()}"] if self.clock.scheduled_ms() else []
        self.calls, self.late, self.shadow.watched = [], [], []

    def _others(self) -> set[asyncio.Task[Any]]:
        """Every task but this one and the callers; those of a shell have a colon in their names."""
        return asyncio.all_tasks() - {cast("asyncio.Task[Any]", asyncio.current_task()), *self.calls}


def actions(kind: type[Stage]) -> tuple[str, ...]:
    """What may be done to the shell of a stage, by name."""
    return tuple(sorted(name.removeprefix("do_") for name in dir(kind) if name.startswith("do_")))


def play(kind: type[Stage], script: Sequence[Act]) -> Stage:
    """Play a script on a stage of its own, and close. Raises :class:`Broken`."""
    stage = kind()
    try:
        stage.begin()
        stage.play(*script)
    except Broken:
        stage.clock.close()
        raise
    stage.finish()
    return stage


def check(kind: type[Stage], *, steps: int, seed: int = 0, watch: Callable[[Stage], object] = lambda stage: None) -> Verdict:
    """Play the stage until its machines made ``steps`` steps. ``watch``: told of each stage that ended well."""
    started, made = time.perf_counter(), Counter[str]()
    rows: set[tuple[str, str]] = set()

    class Run(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.stage = kind()
            self.broken = False
            self.guarded(self.stage.begin)

        def guarded(self, what: Callable[..., None], *args: Any) -> None:
            try:
                what(*args)
            except Broken:
                self.broken = True
                self.stage.clock.close()
                raise

        def teardown(self) -> None:
            if not self.broken:
                self.guarded(self.stage.finish)
                made.update(steps=self.stage.shadow.steps, runs=1, faults=sum(self.stage.faults.values()))
                rows.update(self.stage.shadow.rows)
                watch(self.stage)

    names = actions(kind)
    rules = {name: _rule(name, partial(_alone, name)) for name in names}
    rules |= {f"burst_{n}": _rule(f"burst_{n}", partial(burst, names)) for n in range(BURST_RULES)}
    machine = cast("type[RuleBasedStateMachine]", type(kind.__name__, (Run,), dict(rules)))

    def verdict(outcome: Outcome, detail: str = "") -> Verdict:
        how = f"sampled ({made['steps']:,} steps, {made['runs']:,} runs, seed {seed}; {len(rows)} rows, {made['faults']:,} faults)"
        name = kind.__name__
        seconds = time.perf_counter() - started
        return Verdict(machine=name, check=CHECK, engine=Engine.STATEFUL, outcome=outcome, how=how, detail=detail, seconds=seconds)

    for turn in range(ROUNDS):
        if made["steps"] >= steps:
            return verdict(Outcome.HOLDS)
        try:
            _ask_for(machine, seed + turn)
        except Broken as broken:
            return verdict(Outcome.VIOLATED, _told(kind, broken))
    return verdict(Outcome.UNDETERMINED, f"only {made['steps']:,} of {steps:,} steps were made")


def _alone(name: str, seed: int) -> Script:
    return ((name, seed),)


def burst(names: Sequence[str], seed: int) -> Script:
    """Many actions for one draw. Each burst does without some of them, so that some get past what ends others."""
    rng = random.Random(seed)
    chosen = rng.sample(names, rng.randint(1, len(names)))
    return tuple((rng.choice(chosen), rng.randrange(2**16)) for _ in range(rng.randint(1, BURST_MAX)))


def smallest(kind: type[Stage], script: Script) -> Script:
    """A script that still fails, made smaller for :data:`SMALLER_S` seconds at most."""
    deadline, size = time.monotonic() + SMALLER_S, len(script) // 2 or 1
    while time.monotonic() < deadline:
        end, smaller = len(script), False
        while end > 0 and time.monotonic() < deadline:
            candidate = script[: max(0, end - size)] + script[end:]
            if _fails(kind, candidate):
                script, smaller = candidate, True
            end -= size
        if size == 1 and not smaller:
            break
        size = size if smaller else size // 2 or 1
    return script


def _fails(kind: type[Stage], script: Script) -> bool:
    try:
        play(kind, script)
    except Broken:
        return True
    return False


def _told(kind: type[Stage], broken: Broken) -> str:
    script = smallest(kind, broken.script) if _fails(kind, broken.script) else broken.script
    try:
        play(kind, script)
    except Broken as again:
        return f"{again.sentence}. Actions: {script!r}"
    return f"{broken.sentence}. Actions, which did not fail again: {script!r}"


def _rule(name: str, script: Callable[[int], Script]) -> Any:
    def play_it(self: Any, number: int) -> None:
        self.guarded(self.stage.play, *script(number))

    play_it.__name__ = f"do_{name}"
    return rule(number=st.integers(0, 2**16 - 1))(play_it)


def _ask_for(machine: type[RuleBasedStateMachine], seed: int) -> None:
    options = settings(
        max_examples=RUNS, stateful_step_count=ACTIONS, deadline=None, database=None, derandomize=False, print_blob=False,
        report_multiple_bugs=False, verbosity=Verbosity.quiet, phases=(Phase.generate,), suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    with away_from_here():
        run_state_machine_as_test(seeded(seed)(machine), settings=options)
