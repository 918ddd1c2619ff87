"""The stateful engine finds every kind of broken shell, and nothing in the real one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import attrs
import pytest
from broken_shells import BROKEN, AnyRunner
from shell_toys import FORGETFUL, MACHINE, SPEC, UNTIMED, Started

from turnproof.checkers.engines import STEPS as STEPS_MAX
from turnproof.checkers.engines import STEPS_A_ROW
from turnproof.checkers.progress import SILENT, Progress
from turnproof.checkers.stateful import PROPERTIES, SHELL, check, engine, play
from turnproof.checkers.stateful.actions import (
    Action,
    Advance,
    Caller,
    Close,
    Crowd,
    Doing,
    Fault,
    Jump,
    LateHandlersEnd,
    Send,
    classes,
    script_source,
)
from turnproof.checkers.stateful.engine import Sampling, rules
from turnproof.checkers.stateful.guide import taken_event
from turnproof.checkers.stateful.model import Complaint
from turnproof.checkers.stateful.rig import Broken
from turnproof.checkers.stateful.shrink import smallest
from turnproof.checkers.verdict import Outcome
from turnproof.machines.kernel import Taken, not_
from turnproof.machines.turn_loop import MACHINE as LOOP
from turnproof.shell import Runner
from turnproof.specs.catalog import specifications
from turnproof.specs.language import Variant, on
from turnproof.specs.reply_operation import SPEC as REPLY

STEPS = 3_000


# ── the real shell ──


def test_the_real_shell_passes_and_the_verdict_counts_what_was_done() -> None:
    told: list[tuple[str, int, int | None]] = []

    class Told(Progress):
        def say(self, what: str, done: int, total: int | None = None) -> None:
            told.append((what, done, total))

    shell, properties = check(SPEC, steps=STEPS, progress=Told())
    assert (shell.check, properties.check) == (SHELL, PROPERTIES)
    assert {v.outcome for v in (shell, properties)} == {Outcome.HOLDS}
    counted = int(shell.how.removeprefix("sampled (").partition(" steps")[0].replace(",", ""))
    assert counted >= STEPS
    assert "seed 0" in shell.how
    assert "16 of 16 rows" in shell.how
    assert told[-1] == ("steps", STEPS, STEPS)


def test_a_seed_chooses_the_runs() -> None:
    first, again, other = (check(SPEC, steps=100, seed=seed, actions=20)[0].how for seed in (7, 7, 8))
    assert first == again
    assert first.replace("seed 7", "") != other.replace("seed 8", "")


def test_the_sampled_steps_of_a_whole_verification_are_twenty_thousand_and_more_in_proportion() -> None:
    rows = {name: len(spec.machine.rows) for name, spec in specifications().items()}
    steps = {name: min(STEPS_MAX, STEPS_A_ROW * count) for name, count in rows.items()}
    assert sum(steps.values()) >= 20_000
    assert all(steps[name] >= 50 * rows[name] for name in rows), "a table of many rows is sampled longer"


def test_an_event_that_is_taken_is_found_where_blind_chance_finds_none() -> None:
    state, found = LOOP.initial, set[str]()
    for seed in range(300):
        event: Any = taken_event(LOOP, state, seed)
        if event is not None:
            answer = LOOP.step(state, event)
            assert isinstance(answer, Taken)
            state = answer.state
            found.add(answer.row.name)
    assert len(found) > 25


def test_there_is_one_rule_for_each_event() -> None:
    made = rules(MACHINE)
    assert {"started", "renewed", "paused", "resumed", "finished", "collected", "deadline_expired", "linger_expired"} <= set(made)


# ── broken shells ──


@pytest.mark.parametrize(("runner", "sentence"), BROKEN, ids=[runner.__name__ for runner, _ in BROKEN])
def test_a_broken_shell_is_caught_and_its_story_replayed(runner: type[AnyRunner], sentence: str) -> None:
    (verdict,) = check(SPEC, steps=STEPS, runner=runner)
    assert (verdict.check, verdict.outcome) == (SHELL, Outcome.VIOLATED)
    assert re.match(sentence, verdict.detail), verdict.detail
    assert ". Actions: 1. " in verdict.detail
    story = verdict.story
    assert story is not None
    assert verdict.detail.startswith(story.broken)
    assert story.length <= 4, "not the smallest script"
    # The line that a person pastes breaks with this shell and passes with the real one.
    names: dict[str, Any] = {}
    exec("\n".join(story.setup[:-1]), names)
    names["run"] = type("Run", (), {"spec": SPEC})
    exec(story.claim, names)
    with pytest.raises(Broken):
        exec(story.claim.removesuffix(")") + ", runner=runner)", {**names, "runner": runner})


# ── broken tables, short runs, and shells that fail once ──


def test_a_broken_property_is_violated_with_its_shortest_story() -> None:
    violated, shell = check(attrs.evolve(SPEC, machine=FORGETFUL), steps=STEPS)
    assert (violated.check, violated.outcome) == ("whoever works is busy", Outcome.VIOLATED)
    assert violated.requirements == ("J-2",)
    assert violated.story is not None
    assert [step.event.partition("(")[0] for step in violated.story.steps] == ["Started", "Finished"]
    assert violated.story.claim == "run.expect('whoever works is busy')"
    assert (shell.check, shell.outcome) == (SHELL, Outcome.UNDETERMINED)


def test_a_table_whose_timers_and_states_part_is_violated() -> None:
    (verdict,) = check(attrs.evolve(SPEC, machine=UNTIMED), steps=STEPS)
    assert (verdict.check, verdict.outcome) == (SHELL, Outcome.VIOLATED)
    assert verdict.detail.startswith("by the state linger run and none are held; by the effects none run and none are held. Actions: 1. ")


def test_too_few_steps_are_undetermined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "ROUNDS", 1)
    verdicts = check(SPEC, steps=1_000_000)
    assert {v.outcome for v in verdicts} == {Outcome.UNDETERMINED}
    assert all(re.match(r"only [\d,]+ of 1,000,000 steps were made in \d+ runs", v.detail) for v in verdicts)


class FailsOnce(AnyRunner):
    """Goes wrong the first time only."""

    failed = False

    def _perform(self, item: Any) -> bool:
        if not FailsOnce.failed:
            FailsOnce.failed = True
            return False
        return super()._perform(item)


def test_a_failure_that_does_not_come_again_is_undetermined() -> None:
    verdicts = check(SPEC, steps=300, runner=FailsOnce)
    assert {v.outcome for v in verdicts} == {Outcome.UNDETERMINED}
    assert all("did not come again" in v.detail for v in verdicts)


def test_a_failure_that_its_own_script_does_not_repeat_is_undetermined() -> None:
    once = Broken(Complaint("the moon was full"), SCRIPT, ())
    verdicts = Sampling(SPEC, steps=1, seed=0, progress=SILENT, runner=Runner, actions=1).violated(once)
    assert [(v.check, v.outcome) for v in verdicts] == [(SHELL, Outcome.UNDETERMINED), (PROPERTIES, Outcome.UNDETERMINED)]
    assert verdicts[0].detail == "a failure did not come again when it was played once more: the moon was full"


def test_a_machine_without_promises_gets_no_verdict_about_them() -> None:
    sometimes = tuple(p for p in SPEC.properties if type(p).__name__ == "Sometimes")
    (shell,) = check(attrs.evolve(SPEC, properties=sometimes), steps=300)
    assert (shell.check, shell.outcome) == (SHELL, Outcome.HOLDS)


def test_an_assumption_is_kept() -> None:
    nobody_starts = attrs.evolve(SPEC, assume=not_(on(Started)))
    shell, properties = check(nobody_starts, steps=500)
    assert "0 faulty handlers" in shell.how
    assert " 7 of 16 rows" in shell.how
    # ... and what then never happened is no evidence.
    assert shell.outcome is properties.outcome is Outcome.UNDETERMINED
    assert shell.detail == "the runs show too little: no handler of an effect was faulty; no timer ran out; no timer ran out late"


# ── the reply operation ──


def test_the_reply_operation_keeps_its_promises_on_the_real_shell() -> None:
    shell, properties = check(REPLY, steps=1_500)
    assert (shell.outcome, properties.outcome) == (Outcome.HOLDS, Outcome.HOLDS), (shell.detail, properties.detail)


@pytest.mark.parametrize("variant", REPLY.variants[:3], ids=lambda variant: variant.machine.name)
def test_a_historic_variant_breaks_on_the_real_shell_what_it_breaks_on_paper(variant: Variant) -> None:
    violated, _ = check(attrs.evolve(REPLY, machine=variant.machine), steps=1_500)
    assert violated.outcome is Outcome.VIOLATED
    assert violated.check in {prop.name for prop in REPLY.properties}
    assert violated.story is not None
    assert violated.story.length <= 4


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", specifications())
def test_soak(name: str, seed: int) -> None:
    verdicts = check(specifications()[name], steps=200_000, seed=seed, actions=400)
    assert {v.outcome for v in verdicts} == {Outcome.HOLDS}, [v.detail for v in verdicts]


# ── scripts ──

SCRIPT: tuple[Action, ...] = (
    Send(Started("w"), Caller.LEAVES_2, (Doing(Fault.HANGS), Doing(Fault.POSTS, Started("x")))),
    Crowd((Started("a"), Started("b"))),
    Advance(-1, to_next=True),
    Advance(5_000),
    Jump(7_000, (Doing(Fault.BLOCKS, ms=40),)),
    LateHandlersEnd(2),
    Close((Started("c"),), 3, (Doing(Fault.RAISES),), leaves=2),
)


def test_a_script_is_python_that_gives_it_back() -> None:
    names: dict[str, Any] = {cls.__name__: cls for cls in classes(SCRIPT)}
    assert eval(script_source(SCRIPT), names) == SCRIPT
    play(SPEC, SCRIPT)


def test_the_smallest_script_has_nothing_to_leave_out() -> None:
    def fails(script: tuple[Action, ...]) -> bool:
        """Needs the two named starts in this order, the first from a caller that leaves."""
        events = [(s.event, s.caller) for s in script if isinstance(s, Send)]
        return (Started("w"), Caller.LEAVES_2) in events and (Started("v"), Caller.AWAITS) in events

    first, second = Send(Started("w"), Caller.LEAVES_2), Send(Started("v"))
    script = (*SCRIPT, *SCRIPT, Send(Started("v")), *SCRIPT)
    assert smallest(script, fails) in ((first, second), (second, first))


def test_hypothesis_leaves_nothing_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check(SPEC, steps=10, actions=5)
    assert list(tmp_path.iterdir()) == []
