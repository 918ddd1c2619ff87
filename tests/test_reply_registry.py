"""The registry's regression sequences, played through the parts of the system as its wires connect them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from turnproof.checkers.network.run import Occurrence, Runner, World
from turnproof.checkers.network.triggers import Kind, triggers
from turnproof.machines.kernel import Taken
from turnproof.machines.reply_operation_words import (
    AbortReason,
    AbortRequested,
    Completed,
    ExpiryReason,
    ExpiryRequested,
    Phase,
    PhaseEntered,
    Result,
    SessionRotationRequested,
    SettleExpired,
)
from turnproof.machines.reply_slot import MACHINE as SLOT
from turnproof.machines.reply_slot import BeginRequested, FenceEnded, ReleaseReported, TurnKind
from turnproof.machines.reply_waiter import KeyReleased, Resolve, WaitStarted
from turnproof.machines.session_id import MACHINE as SESSION_ID
from turnproof.machines.session_id import IdBound, SessionId, WaitByIdRequested
from turnproof.specs.reply_registry import SPEC
from turnproof.specs.reply_registry_environment import AttemptWanted, BeginWanted, Finished

RUNNER = Runner(SPEC.system, counter=SPEC.counter)
TRIGGERS = triggers(SPEC.system, tokens=SPEC.tokens, counter=SPEC.counter)


def play(*script: tuple[str, object]) -> list[Occurrence]:
    """Perform the steps in order; each must be one that the environment may take there."""
    world, steps = RUNNER.initial(), []
    for where, event in script:
        if event is SettleExpired:
            (trigger,) = [
                t for t in TRIGGERS if t.kind is Kind.EXPIRE and t.where == where and t.timer is not None and t.timer.name == "SETTLE"
            ]
        else:
            (trigger,) = [t for t in TRIGGERS if t.where == where and t.event == event]
        assert RUNNER.enabled(world, trigger), f"{trigger} is not possible there"
        steps.append(RUNNER.perform(world, trigger))
        world = steps[-1].after
    return steps


def of(world: World, part: str) -> Any:
    return world.parts[RUNNER.index[part]]


def made(step: Occurrence, kind: type) -> Sequence[object]:
    return [effect for delivery in step.deliveries for effect in delivery.effects if type(effect) is kind]


BEGIN_A = (("owner_a", BeginWanted()), ("a", PhaseEntered(Phase.RUNNING)))
ROTATE = ("a", SessionRotationRequested(False, False))


@pytest.mark.parametrize("rotations", [0, 1, 2])
def test_r_reply_7_a_caller_that_waits_by_an_old_id_wakes_when_the_operation_completes(rotations: int) -> None:
    steps = play(*BEGIN_A, *[ROTATE] * rotations, ("by_id", WaitStarted(0)), ("a", Completed(False)))
    assert made(steps[-2], Resolve) == []
    assert made(steps[-1], Resolve) == [Resolve(True)]
    assert of(steps[-1].after, "id_1") == SessionId()


def test_r_reply_25_an_id_that_another_operation_owns_is_refused_and_nothing_changes() -> None:
    owned = SESSION_ID.step(SESSION_ID.initial, IdBound("b"))
    assert hasattr(owned, "state")
    refused = SESSION_ID.step(owned.state, IdBound("a"))
    assert type(refused).__name__ == "Refused"
    assert type(SESSION_ID.step(owned.state, WaitByIdRequested())).__name__ == "Taken"


def test_r_reply_24_an_expired_operation_that_completes_late_leaves_its_successor_alone() -> None:
    steps = play(
        *BEGIN_A, ("a", ExpiryRequested(ExpiryReason.NO_ACTIVITY)), ("a", SettleExpired), ("owner_b", BeginWanted()),
        ("b", PhaseEntered(Phase.RUNNING)), ("by_key", WaitStarted(0)), ("a", Completed(False)),
    )  # fmt: skip
    before, after = steps[-1].before, steps[-1].after
    assert of(before, "slot").holder == of(after, "slot").holder == "b"
    assert of(after, "b") == of(before, "b")
    assert of(after, "id_1").owner == "b"
    assert made(steps[-1], Resolve) == []
    assert of(after, "a").result is Result.RUN_STALLED


def test_r_reply_2_a_second_begin_is_refused_until_the_slot_is_free() -> None:
    steps = play(*BEGIN_A, ("owner_b", BeginWanted()), ("a", Completed(False)), ("owner_b", BeginWanted()))
    assert of(steps[2].after, "slot").holder == "a"
    assert of(steps[-1].after, "slot").holder == "b"


def test_r_reply_26_the_attempt_of_a_new_operation_waits_for_the_one_before() -> None:
    """openclaw/openclaw#120833: the successor is admitted, and its work starts only when the earlier attempt has let go."""
    steps = play(
        *BEGIN_A, ("attempt_a", AttemptWanted()), ("a", AbortRequested(AbortReason.USER)), ("a", SettleExpired),
        ("owner_b", BeginWanted()), ("b", PhaseEntered(Phase.RUNNING)), ("attempt_b", AttemptWanted()), ("attempt_a", Finished()),
        ("attempt_b", AttemptWanted()),
    )  # fmt: skip
    assert of(steps[-3].after, "attempt_b").phase.value == "wanted"
    assert of(steps[-1].after, "attempt_b").phase.value == "running"
    assert of(steps[-1].after, "b").backend == "b"


def admitted(*events: object) -> list[bool]:
    """Which of the begins among the events the slot takes."""
    state, taken = SLOT.initial, []
    for event in events:
        answer = SLOT.step(state, event)  # type: ignore[arg-type]
        if isinstance(event, BeginRequested):
            taken.append(isinstance(answer, Taken))
        if isinstance(answer, Taken):
            state = answer.state
    return taken


def test_ro_11_a_cleanup_that_fails_lets_the_successor_in() -> None:
    """openclaw/openclaw#126507: however the cleanup of A ends, its fence ends with it, and B begins while A's cleanup goes on alone."""
    begin_a, begin_b = BeginRequested("a", TurnKind.VISIBLE), BeginRequested("b", TurnKind.VISIBLE)
    assert admitted(begin_a, ReleaseReported("a", False, True), FenceEnded(), begin_b, ReleaseReported("a", False, False)) == [True, True]


def test_ro_29_the_successor_waits_for_the_owner_before_it() -> None:
    """openclaw/openclaw#120833: while A's owner has not settled, its fence keeps B out."""
    begin_a, begin_b = BeginRequested("a", TurnKind.VISIBLE), BeginRequested("b", TurnKind.VISIBLE)
    assert admitted(begin_a, ReleaseReported("a", False, True), begin_b, FenceEnded(), begin_b) == [True, False, True]


def test_a_caller_that_asks_for_an_idle_key_is_answered_at_once() -> None:
    (step,) = play(("by_key", WaitStarted(0)))
    assert made(step, Resolve) == [Resolve(True)]
    assert [type(d.event) for d in step.deliveries][-1] is KeyReleased
