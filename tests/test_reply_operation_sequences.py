"""The reply operation against the clock: held at 59 999 ms, free at 60 000 ms, and whatever backends and owners do in between.

Each test names the requirements it shows. The real runner runs on a virtual clock; only the backends and the slot are played.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from reply_on_a_clock import Reply, reply_test

from turnproof.machines.kernel import Ignored, Refused, Taken
from turnproof.machines.reply_operation import MACHINE
from turnproof.machines.reply_operation_words import (
    AbortReason,
    AbortRequested,
    ActivityRecorded,
    BackendAttached,
    BackendDetached,
    CancelBackend,
    CancelReason,
    Completed,
    ConsentReported,
    Event,
    ExpiryReason,
    ExpiryRequested,
    Failed,
    FailureCode,
    LaneWaitBegan,
    LaneWaitEnded,
    MaintenanceWaitBegan,
    MaintenanceWaitEnded,
    OutcomeCommitted,
    Phase,
    PhaseEntered,
    RecoveryRequested,
    Result,
    RetainFailureRequested,
    RetainUntilCompleteRequested,
    SupersedeRequested,
    Timer,
    Window,
    WorkBegan,
    WorkEnded,
)
from turnproof.shell import Performed

USER = AbortRequested(AbortReason.USER)
RUN = (PhaseEntered(Phase.RUNNING), BackendAttached("b"))
STUCK, SUPERSEDED, BY_USER = CancelReason.STUCK_RECOVERY, CancelReason.SUPERSEDED, CancelReason.USER_ABORT


# ── 1 to 3: recovery of a stuck attempt ──


@reply_test
async def test_1_recovery_cancels_the_attempt_by_name_and_the_reply_lives_R_REPLY_11_12(reply: Reply) -> None:
    assert isinstance(await reply.sends(*RUN, RecoveryRequested()), Taken)
    assert reply.cancels == [("b", STUCK)]
    assert (reply.result, reply.signals, reply.releases) == (Result.NONE, 0, [])
    assert reply.runner.state.window is Window.OPEN
    assert reply.timers == {Timer.WINDOW: 60_000}


@reply_test
async def test_2_a_committed_outcome_refuses_recovery_R_REPLY_8_10(reply: Reply) -> None:
    assert isinstance(await reply.sends(*RUN, OutcomeCommitted(), RecoveryRequested()), Refused)
    assert (reply.cancels, reply.result, reply.signals) == ([], Result.NONE, 0)
    assert reply.timers == {Timer.LEASE: 60_000}


@reply_test
async def test_3_a_probe_that_refuses_or_throws_refuses_recovery_R_REPLY_9_13(reply: Reply) -> None:
    assert isinstance(await reply.sends(*RUN, ConsentReported(consents=False), RecoveryRequested()), Refused)
    assert (reply.cancels, reply.result, reply.timers) == ([], Result.NONE, {})


# ── 4 to 8: every end has its bound ──


@pytest.mark.parametrize(
    ("ending", "result", "cancel"),
    [
        (ExpiryRequested(ExpiryReason.STUCK_RECOVERY), Result.RUN_STALLED, SUPERSEDED),
        (ExpiryRequested(ExpiryReason.NO_ACTIVITY), Result.RUN_STALLED, SUPERSEDED),
        (ExpiryRequested(ExpiryReason.TERMINAL_UNRELEASED), Result.RUN_STALLED, SUPERSEDED),
        (USER, Result.ABORTED_BY_USER, BY_USER),
        (AbortRequested(AbortReason.RESTART), Result.ABORTED_FOR_RESTART, CancelReason.RESTART),
        (SupersedeRequested(), Result.ABORTED_FOR_SUPERSESSION, SUPERSEDED),
    ],
    ids=["stuck", "no activity", "unreleased", "user", "restart", "superseded"],
)
@reply_test
async def test_4_held_59_999_ms_and_free_at_60_000_without_its_owner_R_REPLY_4_5_16(
    reply: Reply, ending: Event, result: Result, cancel: CancelReason
) -> None:
    await reply.at(1_234)
    assert isinstance(await reply.sends(*RUN, ending), Taken)
    assert (reply.result, reply.cancels, reply.signals) == (result, [("b", cancel)], 1)
    assert not (await reply.at(1_234 + 59_999)).released
    assert (await reply.at(1_234 + 60_000)).released
    assert (reply.releases, reply.result, reply.timers) == ([61_234], result, {})


@reply_test
async def test_5_a_queued_reply_is_released_by_its_abort_at_once_R_REPLY_23(reply: Reply) -> None:
    assert isinstance(await reply.sends(USER), Taken)
    assert (reply.releases, reply.timers, reply.cancels) == ([0], {}, [])
    assert reply.result is Result.ABORTED_BY_USER


@reply_test
async def test_6_a_retained_queued_reply_is_held_with_its_settle_timer_R_REPLY_23(reply: Reply) -> None:
    await reply.sends(RetainUntilCompleteRequested(), USER)
    assert (reply.releases, reply.timers) == ([], {Timer.SETTLE: 60_000})
    assert not (await reply.at(59_999)).released
    assert (await reply.at(60_000)).released


@reply_test
async def test_7_a_late_completion_changes_no_result_and_releases_once_R_REPLY_1_3(reply: Reply) -> None:
    await reply.sends(*RUN, USER)
    await reply.at(500)
    await reply.sends(Completed(barrier=False), Completed(barrier=False))
    assert (reply.result, reply.releases, reply.timers) == (Result.ABORTED_BY_USER, [500], {})
    await reply.at(200_000)
    assert reply.releases == [500]


@reply_test
async def test_8_a_second_abort_is_refused_without_a_second_cancel_R_REPLY_22(reply: Reply) -> None:
    await reply.sends(*RUN, USER)
    assert isinstance(await reply.sends(USER), Refused)
    assert (reply.cancels, reply.signals, reply.timers) == ([("b", BY_USER)], 1, {Timer.SETTLE: 60_000})


# ── 9: re-entry (10 to 12 are about the registry) ──


def abort_from_inside(reply: Reply) -> None:
    reply.inner.append(reply.runner.post(USER))


async def abort_from_inside_awaiting(reply: Reply) -> None:
    reply.inner.append(await reply.runner.send(USER))


async def abort_from_inside_late(reply: Reply) -> None:
    await asyncio.sleep(1)
    reply.inner.append(await reply.runner.send(USER))


@pytest.mark.parametrize("on_cancel", [abort_from_inside, abort_from_inside_awaiting, abort_from_inside_late])
@reply_test
async def test_9_an_abort_from_inside_cancel_finds_the_result_and_is_refused_R_REPLY_16_20(
    reply: Reply, on_cancel: Callable[[Reply], Performed]
) -> None:
    reply.on_cancel = on_cancel
    await reply.sends(*RUN, ExpiryRequested(ExpiryReason.NO_ACTIVITY))
    await reply.runner.idle()
    assert [type(answer) for answer in reply.inner] == [Refused]
    assert (reply.result, reply.cancels, reply.timers) == (Result.RUN_STALLED, [("b", SUPERSEDED)], {Timer.SETTLE: 60_000})


@reply_test
async def test_9_an_owner_that_completes_inside_cancel_frees_the_slot_R_REPLY_16(reply: Reply) -> None:
    reply.on_cancel = lambda self: reply.inner.append(self.runner.post(Completed(barrier=False)))
    await reply.sends(*RUN, ExpiryRequested(ExpiryReason.NO_ACTIVITY))
    assert (reply.result, reply.releases, reply.timers) == (Result.RUN_STALLED, [0], {})


# ── 13 to 15: the recovery window ──


@reply_test
async def test_13_the_next_attempt_attaches_in_the_window_and_the_reply_completes_R_REPLY_14(reply: Reply) -> None:
    await reply.sends(*RUN, RecoveryRequested(), BackendDetached("b"))
    await reply.at(59_999)
    await reply.sends(BackendAttached("c"))
    assert (reply.runner.state.window, reply.timers) == (Window.CLOSED, {})
    assert (await reply.at(500_000)).result is Result.NONE
    await reply.sends(Completed(barrier=False))
    assert (reply.result, reply.releases, reply.cancels) == (Result.COMPLETED, [500_000], [("b", STUCK)])


@reply_test
async def test_14_a_window_in_which_nothing_attaches_ends_the_reply_R_REPLY_15(reply: Reply) -> None:
    await reply.sends(*RUN, RecoveryRequested(), BackendDetached("b"))
    assert (await reply.at(59_999)).result is Result.NONE
    assert (await reply.at(60_000)).result is Result.RUN_STALLED
    assert reply.timers == {Timer.SETTLE: 120_000}
    assert not (await reply.at(119_999)).released
    assert (await reply.at(120_000)).released
    assert (reply.result, reply.releases) == (Result.RUN_STALLED, [120_000])


@reply_test
async def test_15_a_second_recovery_of_one_attempt_is_refused_R_REPLY_11_13(reply: Reply) -> None:
    await reply.sends(*RUN, RecoveryRequested())
    await reply.at(10_000)
    assert isinstance(await reply.sends(RecoveryRequested()), Refused)
    assert (reply.cancels, reply.timers) == ([("b", STUCK)], {Timer.WINDOW: 60_000})


@pytest.mark.parametrize(
    ("begin", "end"),
    [(LaneWaitBegan(), LaneWaitEnded()), (LaneWaitBegan(), PhaseEntered(Phase.RUNNING))],
    ids=["lane", "left by another way"],
)
@reply_test
async def test_the_window_stands_still_in_a_healthy_wait_R_REPLY_15_19(reply: Reply, begin: Event, end: Event) -> None:
    await reply.sends(*RUN, RecoveryRequested())
    await reply.at(20_000)
    await reply.sends(begin)
    assert (reply.runner.state.window, reply.timers, dict(reply.runner.held_ms())) == (Window.PAUSED, {}, {Timer.WINDOW: 40_000})
    await reply.at(3_600_000)
    await reply.sends(end)
    assert reply.timers == {Timer.WINDOW: 3_640_000}
    assert (await reply.at(3_639_999)).result is Result.NONE
    assert (await reply.at(3_640_000)).result is Result.RUN_STALLED
    assert (await reply.at(3_700_000)).released


@reply_test
async def test_a_wait_for_maintenance_holds_the_window_too_R_REPLY_15_19(reply: Reply) -> None:
    await reply.sends(*RUN, RecoveryRequested(), PhaseEntered(Phase.QUEUED))
    await reply.at(59_000)
    await reply.sends(MaintenanceWaitBegan())
    assert dict(reply.runner.held_ms()) == {Timer.WINDOW: 1_000}
    await reply.at(100_000)
    await reply.sends(MaintenanceWaitEnded())
    assert reply.timers == {Timer.WINDOW: 101_000}


@pytest.mark.parametrize(
    "ending", [OutcomeCommitted(), USER, SupersedeRequested(), Completed(barrier=False), Failed(FailureCode.RUN_FAILED)]
)
@reply_test
async def test_every_other_end_of_the_window_stops_its_timer_R_REPLY_14_15(reply: Reply, ending: Event) -> None:
    await reply.sends(*RUN, RecoveryRequested(), LaneWaitBegan(), ending)
    assert Timer.WINDOW not in reply.timers
    assert Timer.WINDOW not in reply.runner.held_ms()


# ── 16 and 17: owners and backends that misbehave ──


@reply_test
async def test_16_a_retained_failure_is_held_and_then_released_R_REPLY_5(reply: Reply) -> None:
    await reply.sends(RetainFailureRequested(), *RUN, Failed(FailureCode.RUN_FAILED))
    assert (reply.timers, reply.signals) == ({Timer.SETTLE: 60_000}, 0)
    assert not (await reply.at(59_999)).released
    assert (await reply.at(60_000)).released
    assert (reply.result, reply.releases) == (Result.RUN_FAILED, [60_000])


def throws(reply: Reply) -> None:
    raise OSError("the backend is gone")


async def throws_late(reply: Reply) -> None:
    await asyncio.sleep(5)
    raise OSError("the backend is gone")


@pytest.mark.parametrize("on_cancel", [throws, throws_late])
@reply_test
async def test_17_a_cancel_that_throws_keeps_the_settle_timer_R_REPLY_21(reply: Reply, on_cancel: Callable[[Reply], Performed]) -> None:
    reply.on_cancel = on_cancel
    assert isinstance(await reply.sends(*RUN, USER), Taken)
    assert reply.timers == {Timer.SETTLE: 60_000}
    assert (await reply.at(60_000)).released
    assert [(f.effect, str(f.error)) for f in reply.failures] == [(CancelBackend("b", BY_USER), "the backend is gone")]


@pytest.mark.parametrize("on_cancel", [throws, throws_late])
@reply_test
async def test_17_a_cancel_that_throws_keeps_the_release_R_REPLY_21(reply: Reply, on_cancel: Callable[[Reply], Performed]) -> None:
    reply.on_cancel = on_cancel
    await reply.sends(*RUN, OutcomeCommitted())
    await reply.at(60_000)
    assert reply.cancels == [("b", SUPERSEDED)]
    assert (reply.result, reply.releases, reply.signals) == (Result.RUN_STALLED, [60_000], 1)
    assert (await reply.at(70_000)).released
    assert [str(f.error) for f in reply.failures] == ["the backend is gone"]


async def hangs(reply: Reply) -> None:
    await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize("commits", [False, True])
@reply_test
async def test_a_cancel_that_hangs_delays_no_release_R_REPLY_4(reply: Reply, commits: bool) -> None:
    reply.on_cancel = hangs
    await reply.sends(*RUN, OutcomeCommitted() if commits else USER)
    assert not (await reply.at(59_999)).released
    assert (await reply.at(60_000)).released
    assert reply.releases == [60_000]


# ── 18 and 19: the finalization lease ──


@reply_test
async def test_18_a_phase_change_renews_no_lease_R_REPLY_18(reply: Reply) -> None:
    await reply.sends(*RUN, OutcomeCommitted())
    await reply.at(30_000)
    await reply.sends(PhaseEntered(Phase.FLUSHING), BackendAttached("c"))
    assert (await reply.at(59_999)).result is Result.NONE
    assert (await reply.at(60_000)).released
    assert (reply.result, reply.releases, reply.timers) == (Result.RUN_STALLED, [60_000], {})


@pytest.mark.parametrize(
    "renewal",
    [ActivityRecorded(), OutcomeCommitted(), WorkBegan(0), WorkBegan(90_000), WorkEnded(0)],
    ids=lambda event: type(event).__name__,
)
@reply_test
async def test_19_a_renewal_restarts_the_lease_R_REPLY_18(reply: Reply, renewal: Event) -> None:
    await reply.sends(*RUN, OutcomeCommitted())
    await reply.at(30_000)
    await reply.sends(renewal)
    assert (await reply.at(89_999)).result is Result.NONE
    assert (await reply.at(90_000)).released
    assert (reply.result, reply.releases) == (Result.RUN_STALLED, [90_000])


@reply_test
async def test_declared_work_extends_the_lease_to_its_deadline_R_REPLY_18(reply: Reply) -> None:
    await reply.sends(*RUN, WorkBegan(80_000), OutcomeCommitted())
    assert reply.timers == {Timer.LEASE: 80_000}
    await reply.at(10_000)
    await reply.sends(WorkBegan(300_000))
    assert reply.timers == {Timer.LEASE: 300_000}
    await reply.at(250_000)
    await reply.sends(ActivityRecorded())
    assert reply.timers == {Timer.LEASE: 310_000}
    await reply.sends(WorkBegan(400_000), ActivityRecorded())
    assert reply.timers == {Timer.LEASE: 400_000}
    await reply.sends(WorkEnded(0))
    assert (await reply.at(309_999)).result is Result.NONE
    assert (await reply.at(310_000)).released


@pytest.mark.parametrize("ending", [Completed(barrier=False), Failed(FailureCode.RUN_FAILED), SupersedeRequested()])
@reply_test
async def test_a_lease_ends_with_the_reply_R_REPLY_18(reply: Reply, ending: Event) -> None:
    await reply.sends(*RUN, OutcomeCommitted())
    assert isinstance(await reply.sends(ending), Taken)
    assert Timer.LEASE not in reply.timers


# ── 20: supersession of a committed outcome ──


@reply_test
async def test_20_superseding_a_committed_outcome_cancels_only_who_comes_late_R_REPLY_22(reply: Reply) -> None:
    await reply.sends(*RUN, OutcomeCommitted())
    assert isinstance(await reply.sends(SupersedeRequested()), Taken)
    assert (reply.result, reply.cancels, reply.signals) == (Result.ABORTED_FOR_SUPERSESSION, [], 0)
    assert reply.timers == {Timer.SETTLE: 60_000}
    assert isinstance(await reply.sends(BackendAttached("late")), Taken)
    assert reply.cancels == [("late", SUPERSEDED)]
    assert reply.runner.state.backend == ""


# ── corners ──


@reply_test
async def test_an_abort_in_a_lane_wait_with_a_backend_holds_the_slot_R_REPLY_26(reply: Reply) -> None:
    await reply.sends(*RUN, LaneWaitBegan(), USER)
    assert (reply.cancels, reply.releases, reply.timers) == ([("b", BY_USER)], [], {Timer.SETTLE: 60_000})
    assert (await reply.at(60_000)).released


@reply_test
async def test_an_expiry_that_comes_too_late_is_ignored_R_REPLY_3(reply: Reply) -> None:
    await reply.sends(*RUN, USER, Completed(barrier=False))
    for rule in MACHINE.timers:
        assert isinstance(await reply.sends(rule.expires()), Ignored)
    assert reply.releases == [0]
