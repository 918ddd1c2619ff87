"""The parts of the watched turn: the recovery system with its real watchdog, and one attempt."""

from __future__ import annotations

from turnproof.machines import embedded_attempt_events as attempt_words
from turnproof.machines import failover_words, tool_execution
from turnproof.machines import reply_operation_words as reply_words
from turnproof.machines import stuck_recovery_watchdog_words as watch_words
from turnproof.machines import stuck_recovery_words as recovery_words
from turnproof.machines.command_lane import FREE, StartTurn
from turnproof.machines.kernel import NOBODY, Formula, named, not_, one_of, symbol, variables
from turnproof.machines.stuck_recovery_watchdog import EXAMINING
from turnproof.machines.stuck_recovery_watchdog import MACHINE as WATCHDOG
from turnproof.machines.stuck_recovery_watchdog_words import Age, Session, Work
from turnproof.machines.tool_execution import Mutation
from turnproof.specs.recovery_system_parts import (
    COMPACTS,
    ELSEWHERE,
    HANGS_ON,
    PERSON,
    RESTARTS,
    SYSTEM,
    WAITS,
    B,
    failover,
    first,
    lane,
    over_to_next,
    recovery,
    reentry,
    reply,
    runs,
    second,
    signal_2,
    situations_read,
    tool_1,
    tool_2,
    waiting,
)
from turnproof.specs.system import Absorbs, Empties, Part, Spontaneous, Switch, System, Unsent, Wire

LATE_TICKS = Switch("a tick comes late", "the process is busy, again and again")
THERE = "the recovery system has it"
watchdog = Part("watchdog", WATCHDOG)
LEFT_OUT = {part.name for part in (second, tool_2, signal_2, reentry)}
MONITORS = {part.name for part in SYSTEM.monitors}
KEPT = tuple(part for part in SYSTEM.parts if part.name not in LEFT_OUT)

a_run = named("a run is registered", runs.now.handle != NOBODY)
some_tool = named("a tool runs", (first.now.safe_tools > 0) | (first.now.risky_tools > 0))
some_call = named("a model call lives", first.now.model_calls > 0)


WIDENING: tuple[object, ...] = (
    attempt_words.AttemptFailed(True),
    tool_execution.CallAsked(True, False, Mutation.NONE),
    tool_execution.Finished(True, Mutation.NONE),
    tool_execution.NeverBegan,
    failover_words.ErrorClassified,
    recovery_words.RecoveryAsked,
    recovery_words.SituationRead,
)


def _reads(node: object) -> set[str]:
    return {v.scope for v in variables(node) if v.scope} if isinstance(node, Formula) else set()


def _stays(event: Spontaneous) -> bool:
    """It comes to a part that is left, and asks for no other; what only widens the recovery system is left out."""
    if event.switch in (COMPACTS, WAITS, HANGS_ON) or event.event in WIDENING or event.event_class in WIDENING:
        return False
    return event.to.name not in LEFT_OUT and not _reads(event.when) & LEFT_OUT


def _examined() -> tuple[Spontaneous, ...]:
    """The facts of one tick. What comes after this turn is none of the system's business: it counts as a healthy wait."""
    at = watchdog.now.phase == EXAMINING
    rest = (lane.now.phase == FREE) & not_(a_run)
    asleep = reply.now.owned_wait | over_to_next

    def tick(session: Session, work: Work, when: bool, *, waits: bool = False) -> tuple[Spontaneous, Spontaneous]:
        read = [watch_words.SessionExamined(late, session, False, work, work is not Work.NONE, waits) for late in (False, True)]
        return Spontaneous(watchdog, read[0], when=when), Spontaneous(watchdog, read[1], when=when, switch=LATE_TICKS)

    return (
        *tick(Session.IDLE, Work.NONE, at & rest),
        *tick(Session.PROCESSING, Work.EMBEDDED_RUN, at & not_(rest) & asleep, waits=True),
        *tick(Session.PROCESSING, Work.NONE, at & not_(rest) & not_(asleep) & not_(a_run)),
        *tick(Session.PROCESSING, Work.TOOL_CALL, at & not_(asleep) & a_run & some_tool),
        *tick(Session.PROCESSING, Work.MODEL_OVERDUE, at & not_(asleep) & a_run & not_(some_tool) & some_call),
        *tick(Session.PROCESSING, Work.EMBEDDED_RUN, at & not_(asleep) & a_run & not_(some_tool) & not_(some_call)),
    )


def _read() -> tuple[Spontaneous, ...]:
    """The situation; turns that wait for long allow a recovery to abort what is alive."""
    overdue = waiting & one_of(watchdog.now.age, Age.DUE, Age.QUIET)
    return tuple(s for s in situations_read(overdue) if getattr(s.event, "run", NOBODY) != B)


def _wires() -> tuple[Wire | Empties, ...]:
    start, ask, end = symbol(StartTurn), symbol(watch_words.RequestRecovery), symbol(tool_execution.ReportEnd)
    stay = tuple(w for w in SYSTEM.wires if isinstance(w, Wire) and not {w.source.name, w.target.name} & LEFT_OUT)
    return (
        *(w for w in stay if w.event_class is not failover_words.TurnBegan and w.effect_class is not attempt_words.ReportWait),
        Wire(lane, start, failover, failover_words.TurnBegan(0, 0, 0, False), where=start.turn == 1),
        Wire(lane, start, watchdog, watch_words.WatchBegan(), where=start.turn == 1),
        Wire(first, attempt_words.ReportProgress, watchdog, watch_words.ProgressMade(False)),
        Wire(first, attempt_words.RunTool, watchdog, watch_words.OldestToolBegan()),
        Wire(tool_1, end, watchdog, watch_words.ToolsOver()),
        Wire(watchdog, ask, recovery, recovery_words.RecoveryAsked(True, NOBODY, ask.may_abort)),
    )


def system() -> System:
    """The watched turn."""
    return System(
        name="watched_turn",
        parts=(*KEPT, watchdog),
        wires=_wires(),
        spontaneous=(*(s for s in SYSTEM.spontaneous if _stays(s)), *_examined(), *_read()),
        absorbed=(
            *(a for a in SYSTEM.absorbed if a.part.name not in LEFT_OUT),
            Absorbs(watchdog, watch_words.Examine, watch_words.Diagnosed, watch_words.Warn),
            Absorbs(first, attempt_words.ReportWait),
        ),
        unsent=(
            *(u for u in SYSTEM.unsent if u.part.name not in LEFT_OUT),
            Unsent(watchdog, watch_words.WatchEnded, watch_words.MessageArrived, watch_words.RequestRepeated, because=ELSEWHERE),
            Unsent(
                first,
                attempt_words.CompactionBegan,
                attempt_words.CompactionEnded,
                attempt_words.HealthyWaitBegan,
                attempt_words.HealthyWaitEnded,
                attempt_words.WaitExpired,
                because=THERE,
            ),
            Unsent(tool_1, tool_execution.NeverBegan, because=THERE),
            Unsent(failover, failover_words.ErrorClassified, because=THERE),
            Unsent(reply, reply_words.OwnedWaitBegan, reply_words.OwnedWaitEnded, because=THERE),
        ),
        switches=(PERSON, RESTARTS, LATE_TICKS),
    )


SYSTEM_WATCHED = system()
