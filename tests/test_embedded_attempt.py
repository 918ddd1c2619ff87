"""What no property of a state or a step can say about the embedded attempt."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import attrs
import pytest

from turnproof.checkers.graph import Graph, explore
from turnproof.machines import attempt_terminal as terminal
from turnproof.machines.attempt_terminal import ABORTED_EXTERNAL, FAILED, OK, AttemptTerminal, During, Joined
from turnproof.machines.embedded_attempt import DONE, LIVE, MACHINE, PREPARING, SETTLING
from turnproof.machines.embedded_attempt_events import (
    CancelRequested,
    ClearRun,
    DetachFromReply,
    LoopReturned,
    Prepared,
    ReportOutcome,
    ToolRequested,
    Unsubscribe,
)
from turnproof.machines.embedded_attempt_words import EmbeddedAttempt, Side
from turnproof.machines.kernel import TIMER_EFFECTS, Taken
from turnproof.machines.reply_operation_words import CancelReason
from turnproof.machines.reply_operation_words import Effect as ReplyEffect
from turnproof.shell import Failure, Runner, VirtualClock, virtual_time
from turnproof.specs.embedded_attempt import SPEC

CLEAN_UP = (Unsubscribe, DetachFromReply, ClearRun, ReportOutcome)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return explore(attrs.evolve(SPEC, histories=()))


# ── clean-up ──


def performed(failing: type | None, clock: VirtualClock) -> tuple[list[type], list[Failure]]:
    """Every effect of an attempt that is cancelled and comes back; the handler of one of them raises."""
    done: list[type] = []
    failures: list[Failure] = []

    def handle(effect: object) -> None:
        done.append(type(effect))
        if type(effect) is failing:
            raise RuntimeError("on purpose")

    handlers: Mapping[type, object] = {cls: handle for cls in MACHINE.effects if cls not in TIMER_EFFECTS}

    async def main() -> None:
        runner: Runner[EmbeddedAttempt, object, object] = Runner(MACHINE, handlers, on_error=failures.append)  # type: ignore[arg-type]
        for event in (Prepared(True), CancelRequested(CancelReason.USER_ABORT), LoopReturned()):
            await runner.send(event)
        assert runner.state.phase is DONE
        await runner.aclose()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    clock.run(main())
    return done, failures


@pytest.mark.parametrize("failing", [*CLEAN_UP, None])
def test_every_step_of_the_clean_up_runs_whatever_an_earlier_one_does(failing: type | None) -> None:
    """R-ATT-19: a handler that raises is reported, and the rest of the clean-up is performed in its order."""
    with virtual_time() as clock:
        done, failures = performed(failing, clock)
    assert tuple(cls for cls in done if cls in CLEAN_UP) == CLEAN_UP
    assert len(failures) == (failing is not None)


def test_the_attempt_has_no_effect_on_the_reply_but_to_attach_and_to_report() -> None:
    """R-ATT-19: no effect of an attempt is an effect of a reply; its slot is not the attempt's business."""
    from typing import get_args

    assert not set(MACHINE.effects) & (set(get_args(ReplyEffect)) - set(TIMER_EFFECTS))


# ── the ending is the join ──


def value(state: EmbeddedAttempt) -> AttemptTerminal:
    return AttemptTerminal(state.ending, state.during, state.also_aborted)


def values() -> list[Joined]:
    """Every ending there is, as something to join."""
    return [e for e in terminal.MACHINE.all_events() if isinstance(terminal.step(AttemptTerminal(), e), Taken) or e == OK_VALUE]


OK_VALUE = Joined(OK, During.NONE, False)


def joined(state: AttemptTerminal, other: Joined) -> AttemptTerminal:
    answer = terminal.step(state, other)
    return answer.state if isinstance(answer, Taken) else state


def test_every_ending_of_an_attempt_is_a_join_of_what_happened(graph: Graph) -> None:
    """R-ATT-15: each step changes the ending as some join does, so nothing that is learned late makes it look milder."""
    known = values()
    assert len(known) == 39
    reachable = {start: {joined(start, other) for other in known} for start in {value(s) for s in graph.states}}
    checked = 0
    for node in range(graph.explored):
        before = value(graph.states[node])
        for after in {value(graph.states[n]) for n in graph.successor[:, node].tolist()} - {before}:
            assert after in reachable[before], (before, after)
            checked += 1
    assert checked > 1_000


def test_a_milder_ending_would_be_seen() -> None:
    assert AttemptTerminal(FAILED) not in {joined(AttemptTerminal(ABORTED_EXTERNAL), other) for other in values()}


def test_an_identity_is_asked_of_every_call() -> None:
    live = attrs.evolve(MACHINE.initial, phase=LIVE)
    assert not isinstance(MACHINE.step(live, ToolRequested("", Side.SAFE)), Taken)
    assert isinstance(MACHINE.step(live, ToolRequested("exec-1", Side.SAFE)), Taken)


def test_any_number_of_calls_is_counted() -> None:
    """Counters have no bound in production: a thousand calls, each ended once."""
    state = attrs.evolve(MACHINE.initial, phase=LIVE)
    for n in range(1_000):
        answer = MACHINE.step(state, ToolRequested(f"call-{n}", Side.POTENTIAL))
        assert isinstance(answer, Taken)
        state = answer.state
    assert state.risky_tools == 1_000
    assert {PREPARING, LIVE, SETTLING, DONE} == set(type(state.phase))
