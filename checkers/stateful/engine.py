"""Random runs of the real shell, chosen by Hypothesis: one rule for each event of a machine, generated from its table."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import attrs
from hypothesis import HealthCheck, Phase, Verbosity, configuration, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.errors import Flaky
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from turnproof.checkers.progress import SILENT, Progress
from turnproof.checkers.replay import Run
from turnproof.checkers.stateful.actions import (
    Action,
    Advance,
    Caller,
    Close,
    Crowd,
    Fault,
    Jump,
    LateHandlersEnd,
    Send,
    SendTaken,
    classes,
    script_source,
)
from turnproof.checkers.stateful.chance import CROWD_MAX, TURNS_MAX, Chance, Manner
from turnproof.checkers.stateful.model import Judge
from turnproof.checkers.stateful.rig import Broken, MakeRunner, Rig, Tally, play
from turnproof.checkers.stateful.shrink import Fails, smallest
from turnproof.checkers.story import tell
from turnproof.checkers.verdict import Engine, Outcome, Story, Verdict
from turnproof.machines.kernel import TIMER_EFFECTS
from turnproof.shell import Runner
from turnproof.specs.language import AnyMachine, Property, Spec

SEED = 0
"""The seed unless one is given: the same runs every time, so that a red check is red again. Hypothesis also tries constants that it
reads in the modules of the program, so another program may see other runs of one seed."""
ACTIONS = 100
"""Actions a run, at most: long runs, for a machine with counters and timers shows little in a short one."""
FIRST_RUNS = 3
"""Runs that Hypothesis is asked for at first; then as many as the steps a run say are missing."""
ROUNDS = 20
"""Times Hypothesis is asked for more runs until there are steps enough."""
PATIENCE = 4
"""Times the steps asked for that runs go on while they do not show a late timer, a fault or a close."""
BURST_RULES = 12
"""Rules that play a burst, beside one rule for each event: with them most steps are cheap."""
BURST_MAX = 40
"""Most actions of a burst."""

T = TypeVar("T")

SHELL = "the shell does what the table says, whatever its handlers and callers do"
PROPERTIES = "every property of states and steps holds in the sampled runs"


# ── one rule an event ──


class Sampled(RuleBasedStateMachine):
    """Base of the generated classes: one run of a rig."""

    judge: Judge
    make_runner: MakeRunner
    tally: Tally
    progress: Progress
    wanted: int

    def __init__(self) -> None:
        super().__init__()
        self.rig = Rig(self.judge, runner=self.make_runner, tally=self.tally)
        self.tally.runs += 1

    def teardown(self) -> None:
        """Close the shell and compare a last time."""
        self.rig.finish()
        self.progress.say("steps", min(self.tally.steps, self.wanted), self.wanted)


def rules(machine: AnyMachine) -> dict[str, Any]:
    """The rules of a machine by name: one an event class, then crowds, the clock, late handlers, closing, and bursts of all of these."""
    chance = Chance(machine)
    events = {cls: one_of(instances) for cls, instances in chance.events.items()}
    plan = one_of([plan for _, plan in chance.manners])
    crowd = st.lists(st.one_of(*events.values()), min_size=2, max_size=CROWD_MAX).map(tuple)
    made: dict[str, st.SearchStrategy[tuple[Action, ...]]] = {
        snake(cls.__name__): st.builds(_send, event, one_of(chance.manners)) for cls, event in events.items()
    }
    made |= {
        "taken": st.builds(lambda seed, manner: (SendTaken(seed, *manner),), st.integers(0, 2**32 - 1), one_of(chance.manners)),
        "crowd": alone(st.builds(Crowd, crowd, plan)),
        "clock_moves": alone(st.builds(Advance, one_of(chance.times), st.just(False), plan)),
        "clock_moves_to_a_timer": alone(st.builds(Advance, one_of([0, -1, 1]), st.just(True), plan)),
        "clock_jumps": alone(st.builds(Jump, one_of(chance.times), plan)),
        "clock_leaps_over_a_timer": alone(st.builds(Jump, one_of([1, *chance.times]), plan, st.just(True))),
        "late_handlers_end": alone(st.builds(LateHandlersEnd, st.integers(1, 3), plan)),
        "shell_closes": alone(
            st.builds(
                Close,
                st.lists(st.one_of(*events.values()), max_size=3).map(tuple),
                st.integers(0, TURNS_MAX),
                plan,
                st.integers(-1, TURNS_MAX),
            )
        ),
    }
    for n in range(BURST_RULES):
        made[f"burst_{n}"] = st.builds(
            lambda length, seed: chance.burst(seed, length), st.integers(1, BURST_MAX), st.integers(0, 2**16 - 1)
        )
    return {name: as_rule(name, strategy) for name, strategy in made.items()}


def _send(event: object, manner: Manner) -> tuple[Action, ...]:
    return (Send(event, *manner),)


def one_of(things: Sequence[T]) -> st.SearchStrategy[T]:
    """As ``sampled_from``, which would put all of a long list into its name."""
    return st.integers(0, len(things) - 1).map(lambda n: things[n])


def alone(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Action, ...]]:
    """One action at a time."""
    return strategy.map(lambda action: (action,))


def as_rule(name: str, actions: st.SearchStrategy[tuple[Action, ...]]) -> Any:
    """A rule that plays what it draws."""

    def play_them(self: Sampled, actions: tuple[Action, ...]) -> None:
        self.rig.play(*actions)

    play_them.__name__ = name
    return rule(actions=actions)(play_them)


def snake(name: str) -> str:
    """``AbortRequested`` -> ``abort_requested``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


# ── the check ──


def check(
    spec: Spec,
    *,
    steps: int = 20_000,
    seed: int | None = None,
    progress: Progress = SILENT,
    runner: MakeRunner = Runner,
    actions: int = ACTIONS,
) -> list[Verdict]:
    """Drive the shell with at least ``steps`` events and compare it with the table after each action.

    ``seed``: chooses the runs; :data:`SEED` if None. ``runner``: the class under test. ``actions``: how many a run has at most.
    """
    sampling = Sampling(spec, steps, SEED if seed is None else seed, progress, runner, actions)
    return sampling.verdicts()


@attrs.define
class Sampling:
    """One check: its runs, and what they come to."""

    spec: Spec
    steps: int
    seed: int
    progress: Progress
    runner: MakeRunner
    actions: int
    judge: Judge = attrs.field(init=False)
    tally: Tally = attrs.field(factory=Tally)
    started: float = attrs.field(factory=time.perf_counter)

    def __attrs_post_init__(self) -> None:
        self.judge = Judge(self.spec)

    def verdicts(self) -> list[Verdict]:
        """Run until there are steps enough, or something breaks."""
        kind = self.state_machine()
        try:
            for turn in range(ROUNDS):
                missing = self.steps - self.tally.steps
                if missing <= 0 and self.shown_enough():
                    break
                missing = missing if missing > 0 else self.steps // 2
                done = self.tally.runs
                # The first run of a search is a trivial one, so the first estimates are far too low.
                runs = min(-(-missing * done // (self.tally.steps or 1)), 3 * done) if done else FIRST_RUNS
                self.ask_for(kind, max(FIRST_RUNS, runs), self.seed + turn)
        except Broken as broken:
            return self.violated(broken)
        except Flaky as error:
            return self.both(Outcome.UNDETERMINED, f"a failure did not come again: {str(error).splitlines()[0]}")
        if self.tally.steps < self.steps:
            return self.both(
                Outcome.UNDETERMINED, f"only {self.tally.steps:,} of {self.steps:,} steps were made in {self.tally.runs:,} runs"
            )
        gaps = "; ".join(self.gaps())
        return self.both(Outcome.UNDETERMINED, f"the runs show too little: {gaps}") if gaps else self.both(Outcome.HOLDS, "")

    def shown_enough(self) -> bool:
        """Whether the runs showed what the machine gives occasion to, or went on for it long enough."""
        return self.tally.steps >= PATIENCE * self.steps or not any(self.gaps())

    def gaps(self) -> Iterator[str]:
        """What the runs never did, though the machine gives occasion to."""
        tally, machine = self.tally, self.spec.machine
        if any(effect not in TIMER_EFFECTS for effect in machine.effects) and not set(tally.faults) > {Fault.NOTHING}:
            yield "no handler of an effect was faulty"
        if machine.timers and not tally.expiries:
            yield "no timer ran out"
        if machine.timers and not tally.late:
            yield "no timer ran out late"
        if not tally.closes:
            yield "no shell was closed"

    def state_machine(self) -> type[Sampled]:
        """The class that Hypothesis runs."""
        fields = {
            "judge": self.judge,
            "make_runner": staticmethod(self.runner),
            "tally": self.tally,
            "progress": self.progress,
            "wanted": self.steps,
        }
        return cast("type[Sampled]", type(f"Sampled_{self.spec.machine.name}", (Sampled,), {**fields, **rules(self.spec.machine)}))

    def ask_for(self, kind: type[Sampled], runs: int, seed: int) -> None:
        """So many runs. Raises :class:`Broken` at the first that goes wrong, as it was found."""
        options = settings(
            max_examples=runs, stateful_step_count=self.actions, deadline=None, database=None, derandomize=False, print_blob=False,
            report_multiple_bugs=False, verbosity=Verbosity.quiet, phases=(Phase.generate,), suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        with away_from_here():
            run_state_machine_as_test(seeded(seed)(kind), settings=options)

    # ── saying it ──

    def how(self) -> str:
        """What was done, for the report."""
        t = self.tally
        faults = sum(count for fault, count in t.faults.items() if fault is not Fault.NOTHING)
        left = sum(count for caller, count in t.callers.items() if caller not in (Caller.AWAITS, Caller.POSTS))
        rows = f"{len(t.rows)} of {len(self.spec.machine.rows)} rows"
        return (
            f"sampled ({t.steps:,} steps, {t.runs:,} runs, seed {self.seed}; {rows}, {faults:,} faulty handlers, "
            f"{left:,} callers cancelled, {t.expiries:,} expiries, {t.jumps:,} jumps of the clock, {t.closes:,} closes)"
        )

    def verdict(self, check: str, outcome: Outcome, detail: str = "", story: Story | None = None, prop: Property | None = None) -> Verdict:
        return Verdict(
            machine=self.spec.machine.name, check=check, engine=Engine.STATEFUL, outcome=outcome, how=self.how(), detail=detail,
            story=story, requirements=() if prop is None else prop.requirements, seconds=time.perf_counter() - self.started,
        )  # fmt: skip

    def both(self, outcome: Outcome, detail: str) -> list[Verdict]:
        """The same verdict on shell and properties; none on properties where there are none."""
        made = [self.verdict(SHELL, outcome, detail)]
        return [*made, self.verdict(PROPERTIES, outcome, detail)] if self.judge.promises else made

    def violated(self, first: Broken) -> list[Verdict]:
        """The smallest run that fails as ``first`` did, once it has failed again."""
        again = self.again(first.script)
        if again is None or again.complaint.broken is not first.complaint.broken:
            return self.both(Outcome.UNDETERMINED, f"a failure did not come again when it was played once more: {first.complaint.sentence}")
        broken = self.again(smallest(again.script, self.fails_like(again))) or again
        prop = broken.complaint.broken
        if prop is None:
            return [self.verdict(SHELL, Outcome.VIOLATED, self.detail(broken), self.story(broken))]
        rest = self.verdict(SHELL, Outcome.UNDETERMINED, f"the runs ended early, at the violation of: {prop.name}")
        return [self.verdict(prop.name, Outcome.VIOLATED, self.detail(broken), self.story(broken), prop), rest]

    def again(self, script: Sequence[Action]) -> Broken | None:
        """Play a script on a shell of its own."""
        try:
            play(self.spec, script, runner=self.runner, judge=self.judge)
        except Broken as broken:
            return broken
        return None

    def fails_like(self, broken: Broken) -> Fails:
        """Whether a script breaks the same property, or, where none broke, parts shell and table."""

        def fails(script: tuple[Action, ...]) -> bool:
            found = self.again(script)
            return found is not None and found.complaint.broken is broken.complaint.broken

        return fails

    def detail(self, broken: Broken) -> str:
        """The sentence, and what was done to make it come true."""
        script = "; ".join(f"{n}. {script_source((action,))[1:-2]}" for n, action in enumerate(broken.script, 1))
        return f"{broken.complaint.sentence}. Actions: {script}"

    def story(self, broken: Broken) -> Story:
        """The events of the last instance, through ``machine.step``, and the script as a line of Python."""
        run = Run(self.spec)
        for event in broken.history:
            run.send(event)
        prop = broken.complaint.broken
        if prop is not None:
            return tell(run, told(prop), f"run.expect({prop.name!r})")
        story = tell(run, broken.complaint.sentence, f"play(run.spec, {script_source(broken.script)})")
        return attrs.evolve(story, setup=(*imports(broken.script), *story.setup))


@contextmanager
def away_from_here() -> Iterator[None]:
    """Hypothesis notes what it finds in a folder of the working directory; whoever runs a check did not ask for one."""
    home = configuration.storage_directory(intent_to_write=False).home_directory
    with tempfile.TemporaryDirectory(prefix="turnproof-") as folder:
        configuration.set_hypothesis_home_dir(folder)
        try:
            yield
        finally:
            configuration.set_hypothesis_home_dir(home)


def told(prop: Property) -> str:
    """The sentence of a property with its requirements and harm."""
    ids = f" ({', '.join(prop.requirements)})" if prop.requirements else ""
    return f"{prop.name}{ids}" + (f": {prop.harm}" if prop.harm else "")


def imports(script: Sequence[Action]) -> tuple[str, ...]:
    """The lines that a script needs before it."""
    by_module: dict[str, set[str]] = {"turnproof.checkers.stateful": {"play"}}
    for cls in classes(tuple(script)):
        by_module.setdefault(cls.__module__, set()).add(cls.__name__)
    return tuple(f"from {module} import {', '.join(sorted(found))}" for module, found in sorted(by_module.items()))


__all__ = ["PROPERTIES", "SEED", "SHELL", "check"]
