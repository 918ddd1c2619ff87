"""What each event of the watchdog must record and tell, exactly; the diagnosis of a tick by the reference's table, row by row."""

from __future__ import annotations

from collections.abc import Mapping

from turnproof.machines.kernel import StartTimer, StopTimer, any_of, not_, one_of, only_if
from turnproof.machines.stuck_recovery_watchdog import EXAMINING, MACHINE, OFF, WATCHING, facts, now, progress
from turnproof.machines.stuck_recovery_watchdog_words import (
    Age,
    Diagnosed,
    Diagnosis,
    DueExpired,
    Examine,
    MessageArrived,
    MuteExpired,
    OldestToolBegan,
    ProgressMade,
    QuietAgeExpired,
    RequestRecovery,
    RequestRepeated,
    Session,
    SessionExamined,
    StaleExpired,
    TickExpired,
    ToolAge,
    ToolQuietExpired,
    ToolsOver,
    ToolStaleExpired,
    Warn,
    WatchBegan,
    WatchEnded,
    WatchTimer,
    Work,
)
from turnproof.specs.exactly import Case, Writer
from turnproof.specs.language import Property, Step

write = Writer(MACHINE)
AGES, TICKS, TABLE = "R-ATT-21", "R-ATT-23", "R-ATT-20"
on_watch = one_of(now.phase, WATCHING, EXAMINING)
aging = tuple(
    only_if(now.age == age, StopTimer(timer))
    for age, timer in ((Age.FRESH, WatchTimer.STALE), (Age.STALE, WatchTimer.DUE), (Age.DUE, WatchTimer.QUIET))
)
tool_aging = tuple(
    only_if(now.tool_age == age, StopTimer(timer))
    for age, timer in ((ToolAge.FRESH, WatchTimer.TOOL_STALE), (ToolAge.STALE, WatchTimer.TOOL_QUIET))
)
REST: Mapping[str, object] = {"phase": OFF, "age": Age.FRESH, "tool_age": ToolAge.NONE, "terminal": False, "muted": False}

BEGINS = write.case(WatchBegan, now.phase == OFF, {"phase": WATCHING}, StartTimer(WatchTimer.TICK), StartTimer(WatchTimer.STALE))
ENDS = write.case(WatchEnded, on_watch, REST, only_if(now.phase == WATCHING, StopTimer(WatchTimer.TICK)), *aging, *tool_aging,
                  only_if(now.muted, StopTimer(WatchTimer.MUTE)))  # fmt: skip
PROGRESS = write.case(ProgressMade, on_watch, {"age": Age.FRESH, "terminal": progress.terminal}, *aging, StartTimer(WatchTimer.STALE))
TOOL = write.case(OldestToolBegan, on_watch, {"tool_age": ToolAge.FRESH}, *tool_aging, StartTimer(WatchTimer.TOOL_STALE))
TOOLS_OVER = write.case(ToolsOver, on_watch & (now.tool_age != ToolAge.NONE), {"tool_age": ToolAge.NONE}, *tool_aging)


def older(event: type, before: Age | ToolAge, then: Age | ToolAge, *emit: object) -> Step:
    """An age goes on."""
    tool = isinstance(before, ToolAge)
    mine = now.tool_age == before if tool else now.age == before
    case = write.case(event, on_watch & mine, {"tool_age" if tool else "age": then}, *emit)
    return write.answers(event, case, requirements=AGES)


# ── the diagnosis of a tick ──

anything, fresh = facts.work != Work.NONE, now.age == Age.FRESH
runs = one_of(facts.work, Work.MODEL_OVERDUE, Work.EMBEDDED_RUN)
tool = one_of(facts.work, Work.TOOL_CALL, Work.TOOL_OVERDUE)
long_silent = one_of(now.age, Age.DUE, Age.QUIET)
tool_stale = one_of(now.tool_age, ToolAge.STALE, ToolAge.QUIET)
tool_due = any_of((now.age == Age.QUIET) & (now.tool_age == ToolAge.QUIET), facts.work == Work.TOOL_OVERDUE)
Rung = tuple[bool, Mapping[str, object], tuple[object, ...]]


def well(when: bool, diagnosis: Diagnosis) -> Rung:
    """Nothing is done."""
    return (now.phase == EXAMINING) & when, {"phase": WATCHING}, (Diagnosed(diagnosis), StartTimer(WatchTimer.TICK))


def ill(when: bool, diagnosis: Diagnosis, recovers: bool | None, *, alive: bool = False) -> Rung:
    """A warning unless muted, and a recovery on a tick that came in time; ``alive``: it may abort what is alive."""
    asks = not_(facts.late) if recovers is None else recovers & not_(facts.late)
    emit = (Diagnosed(diagnosis), only_if(not_(now.muted), Warn(diagnosis)), only_if(not_(now.muted), StartTimer(WatchTimer.MUTE)),
            only_if(asks, RequestRecovery(alive)), StartTimer(WatchTimer.TICK))  # fmt: skip
    return (now.phase == EXAMINING) & when, {"phase": WATCHING, "muted": True}, emit


D = Diagnosis
EXAMINED: tuple[Case, ...] = write.ladder(
    SessionExamined,
    well((facts.session == Session.IDLE) & not_(facts.queued) & not_(anything), D.AT_REST),
    well(facts.waits, D.HEALTHY_WAIT),
    ill(anything & (facts.session == Session.IDLE) & facts.queued & not_(facts.owned) & not_(fresh), D.QUEUED_WITHOUT_RUN, None),
    ill(tool & tool_stale & not_(fresh), D.BLOCKED_TOOL_CALL, tool_due, alive=True),
    ill(facts.queued & (facts.work == Work.EMBEDDED_RUN) & now.terminal, D.QUEUED_BEHIND_TERMINAL, long_silent, alive=True),
    ill(anything & not_(fresh), D.NO_PROGRESS, runs & long_silent, alive=True),
    well(anything, D.LONG_RUNNING),
    well(fresh, D.UNTRACKED),
    ill(not_(anything) & not_(fresh), D.STALE_SESSION, None),
)

EXACTLY: tuple[Property, ...] = (
    write.answers(WatchBegan, BEGINS, requirements=TICKS),
    write.answers(WatchEnded, ENDS, requirements=TICKS),
    write.answers(ProgressMade, PROGRESS, requirements=AGES),
    write.answers(MessageArrived, requirements=AGES, harm="messages to a dead run keep it looking alive"),
    write.answers(RequestRepeated, requirements=AGES, harm="a provider that fails again and again keeps the run looking alive"),
    older(StaleExpired, Age.FRESH, Age.STALE, StartTimer(WatchTimer.DUE)),
    older(DueExpired, Age.STALE, Age.DUE, StartTimer(WatchTimer.QUIET)),
    older(QuietAgeExpired, Age.DUE, Age.QUIET),
    write.answers(OldestToolBegan, TOOL, requirements=AGES),
    write.answers(ToolsOver, TOOLS_OVER, requirements=AGES),
    older(ToolStaleExpired, ToolAge.FRESH, ToolAge.STALE, StartTimer(WatchTimer.TOOL_QUIET)),
    older(ToolQuietExpired, ToolAge.STALE, ToolAge.QUIET),
    write.answers(MuteExpired, write.case(MuteExpired, now.muted, {"muted": False}), requirements=TICKS),
    write.answers(TickExpired, write.case(TickExpired, now.phase == WATCHING, {"phase": EXAMINING}, Examine()), requirements=TICKS),
    write.answers(SessionExamined, *EXAMINED, requirements=(TABLE, TICKS)),
    write.ordered("a diagnosis is told before its warning, its warning before a recovery, and the next tick comes last", EXAMINED, TICKS),
    write.ordered("the first tick is started before the age of the progress", (BEGINS,), TICKS),
    write.ordered("the end of a watch stops the tick first, then the ages, and its silence last", (ENDS,), TICKS),
    write.ordered("the age of the progress stops before it begins anew", (PROGRESS,), AGES),
    write.ordered("the age of a tool stops before it begins anew", (TOOL,), AGES),
)  # fmt: skip
