"""The watchdog of one session: how old its last progress is, what a tick says of it, and whether that justifies a recovery.

What it is. Every 30 s the watchdog looks at a session: does something run, who owns it, how old are its last progress and its oldest
tool. The first row that matches is the diagnosis; a few of them ask for a recovery (``stuck_recovery``), and only some of those may
abort work that is alive.

Which runtime. OpenClaw's ``logging/diagnostic.ts`` (its commit is not known), of August to September 2026. Ages are timers here: a
timer that fires moves ``age`` on, progress sets it back.

The data, flowing through. Progress restarts the age. A tick asks the shell for the facts (``Examine``); the facts come back
(``SessionExamined``) and are decided in the same step; the next tick is armed.

What it promises.
  1. Every combination of facts has one diagnosis, by the first row that matches.
  2. Only progress makes a session look alive: no message, no steering, no model retry that came to nothing.
  3. A warning that was muted delays no recovery; a tick that came late decides none; a healthy wait is only observed.

Decisions of its own. The reference lets a stalled run be aborted "at the stale threshold"; here that is the active-abort threshold
(360 s), which the attempt's own idle timer (120 s) cannot race. A session at rest and a declared wait have a row each before the table.

Not modelled: the doubling of the back-off (``not_before_ms`` is the shell's), the text of warnings.

Rule 1: every diagnosis is a row of ``ROWS``.
Rule 2: this file knows nothing of clocks, tasks or transports.
"""

from __future__ import annotations

from typing import get_args

from attrs import evolve

from turnproof.machines.kernel import Duration, Machine, Row, StartTimer, StopTimer, TimerRule, named, not_, one_of, only_if, symbol
from turnproof.machines.stuck_recovery_watchdog_words import (
    Age,
    Diagnosed,
    Diagnosis,
    DueExpired,
    Effect,
    Event,
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
    StuckWatchdog,
    TickExpired,
    ToolAge,
    ToolQuietExpired,
    ToolsOver,
    ToolStaleExpired,
    Warn,
    WatchBegan,
    WatchEnded,
    WatchPhase,
    WatchTimer,
    Work,
)

OFF, WATCHING, EXAMINING = WatchPhase
ON = (WATCHING, EXAMINING)

SOURCE = "logging/diagnostic.ts"
TICK_MS = Duration(30_000, f"{SOURCE}: the diagnostic tick")
STALE_MS = Duration(120_001, f"{SOURCE}: more than the stuck-warning age of 120 s")
DUE_MS = Duration(239_999, f"{SOURCE}: the active-abort threshold, max(300 s, 3 x 120 s) = 360 s, from the stale age on")
QUIET_MS = Duration(540_000, f"{SOURCE}: the blocked-tool floor of 900 s, from the threshold on")
TOOL_QUIET_MS = Duration(779_999, f"{SOURCE}: the blocked-tool floor of 900 s, from the stale age on")
MUTE_MS = Duration(120_000, f"{SOURCE}: the first back-off of a warning; the shell doubles it")


# ── symbols ──

now = symbol(StuckWatchdog)
progress, facts = symbol(ProgressMade), symbol(SessionExamined)

works = named("something is active", facts.work != Work.NONE)
stale = named("progress is stale", now.age != Age.FRESH)
due = named("progress is due", one_of(now.age, Age.DUE, Age.QUIET))
tool_stale = named("the tool is stale", one_of(now.tool_age, ToolAge.STALE, ToolAge.QUIET))
a_tool = named("a tool runs", one_of(facts.work, Work.TOOL_CALL, Work.TOOL_OVERDUE))
tool_due = named("the tool may be aborted",
    ((now.tool_age == ToolAge.QUIET) & (now.age == Age.QUIET)) | (facts.work == Work.TOOL_OVERDUE))  # fmt: skip
run_due = named("the run may be aborted", one_of(facts.work, Work.MODEL_OVERDUE, Work.EMBEDDED_RUN) & due)

stop_age = (
    only_if(now.age == Age.FRESH, StopTimer(WatchTimer.STALE)),
    only_if(now.age == Age.STALE, StopTimer(WatchTimer.DUE)),
    only_if(now.age == Age.DUE, StopTimer(WatchTimer.QUIET)),
)
stop_tool = (
    only_if(now.tool_age == ToolAge.FRESH, StopTimer(WatchTimer.TOOL_STALE)),
    only_if(now.tool_age == ToolAge.STALE, StopTimer(WatchTimer.TOOL_QUIET)),
)
next_tick = StartTimer(WatchTimer.TICK)
mute = (only_if(now.muted, StopTimer(WatchTimer.MUTE)),)

R = Row[StuckWatchdog, Effect]


def healthy(diagnosis: Diagnosis, when: bool, because: str = "") -> R:
    """A diagnosis that asks for nothing."""
    return R(facts, at=EXAMINING, when=when, to=WATCHING, emit=(Diagnosed(diagnosis), next_tick), name=f"SessionExamined/{diagnosis.value}",
             because=because)  # fmt: skip


def ill(diagnosis: Diagnosis, when: bool | None, recover: bool, may_abort: bool, because: str = "") -> R:
    """A diagnosis that warns, unless muted, and asks for a recovery where ``recover`` holds, muted or not."""
    asks = (
        only_if(not_(now.muted), Warn(diagnosis)),
        only_if(not_(now.muted), StartTimer(WatchTimer.MUTE)),
        only_if(recover, RequestRecovery(may_abort)),
    )
    return R(facts, at=EXAMINING, when=when, to=WATCHING, data=evolve(now, muted=True), emit=(Diagnosed(diagnosis), *asks, next_tick),
             name=f"SessionExamined/{diagnosis.value}", because=because)  # fmt: skip


in_time = not_(facts.late)


# ── rows: the first that matches wins ──

ROWS: tuple[R, ...] = (
    R(WatchBegan, at=OFF, to=WATCHING, emit=(next_tick, StartTimer(WatchTimer.STALE))),
    R(WatchBegan, ignore="it is watched already"),
    R(WatchEnded, at=ON, to=OFF, data=evolve(now, age=Age.FRESH, tool_age=ToolAge.NONE, terminal=False, muted=False),
      emit=(only_if(now.phase == WATCHING, StopTimer(WatchTimer.TICK)), *stop_age, *stop_tool, *mute)),
    R(WatchEnded, ignore="it is not watched"),

    # ── ages: only progress sets them back ──
    R(progress, at=ON, data=evolve(now, age=Age.FRESH, terminal=progress.terminal), emit=(*stop_age, StartTimer(WatchTimer.STALE))),
    R(ProgressMade, ignore="it is not watched"),
    R(MessageArrived, ignore="a message is no progress", because="openclaw/openclaw#94701: messages to a dead run kept it looking alive."),
    R(RequestRepeated, ignore="asking again is no progress",
      because="openclaw/openclaw#119009: a provider that failed again and again kept the run looking alive."),
    R(StaleExpired, at=ON, when=now.age == Age.FRESH, data=evolve(now, age=Age.STALE), emit=(StartTimer(WatchTimer.DUE),)),
    R(StaleExpired, ignore="progress came in time"),
    R(DueExpired, at=ON, when=now.age == Age.STALE, data=evolve(now, age=Age.DUE), emit=(StartTimer(WatchTimer.QUIET),)),
    R(DueExpired, ignore="progress came in time"),
    R(QuietAgeExpired, at=ON, when=now.age == Age.DUE, data=evolve(now, age=Age.QUIET)),
    R(QuietAgeExpired, ignore="progress came in time"),
    R(OldestToolBegan, at=ON, data=evolve(now, tool_age=ToolAge.FRESH), emit=(*stop_tool, StartTimer(WatchTimer.TOOL_STALE))),
    R(OldestToolBegan, ignore="it is not watched"),
    R(ToolsOver, at=ON, when=now.tool_age != ToolAge.NONE, data=evolve(now, tool_age=ToolAge.NONE), emit=stop_tool),
    R(ToolsOver, ignore="no tool was running"),
    R(ToolStaleExpired, at=ON, when=now.tool_age == ToolAge.FRESH, data=evolve(now, tool_age=ToolAge.STALE),
      emit=(StartTimer(WatchTimer.TOOL_QUIET),)),
    R(ToolStaleExpired, ignore="the tool is over"),
    R(ToolQuietExpired, at=ON, when=now.tool_age == ToolAge.STALE, data=evolve(now, tool_age=ToolAge.QUIET)),
    R(ToolQuietExpired, ignore="the tool is over"),
    R(MuteExpired, when=now.muted, data=evolve(now, muted=False)),
    R(MuteExpired, ignore="it is not watched"),

    # ── a tick: the facts are asked for, and decide ──
    R(TickExpired, at=WATCHING, to=EXAMINING, emit=(Examine(),)),
    R(TickExpired, ignore="the facts are being read, or it is not watched"),
    healthy(Diagnosis.AT_REST, (facts.session == Session.IDLE) & not_(facts.queued) & not_(works)),
    healthy(Diagnosis.HEALTHY_WAIT, facts.waits, "Capacity, maintenance, a person, an approval, the runtime's own: not stuck (R-ATT-10)."),
    ill(Diagnosis.QUEUED_WITHOUT_RUN, works & (facts.session == Session.IDLE) & facts.queued & not_(facts.owned) & stale, in_time, False),
    ill(Diagnosis.BLOCKED_TOOL_CALL, a_tool & tool_stale & stale, in_time & tool_due, True,
        "Not before 900 s: a long command is no stuck one (openclaw/openclaw#88870)."),
    ill(Diagnosis.QUEUED_BEHIND_TERMINAL, facts.queued & (facts.work == Work.EMBEDDED_RUN) & now.terminal, in_time & run_due, True),
    ill(Diagnosis.NO_PROGRESS, works & stale, in_time & run_due, True),
    healthy(Diagnosis.LONG_RUNNING, works),
    healthy(Diagnosis.UNTRACKED, not_(stale), "Something made progress that no registry knows (openclaw/openclaw#89831)."),
    ill(Diagnosis.STALE_SESSION, None, in_time, False),
    R(SessionExamined, ignore="no tick asked for it"),
)  # fmt: skip


# ── the machine ──

MACHINE: Machine[StuckWatchdog, Event, Effect] = Machine(
    name="stuck_watchdog",
    initial=StuckWatchdog(),
    now=now,
    events=get_args(Event),
    effects=get_args(Effect),
    rows=ROWS,
    timers=(
        TimerRule(WatchTimer.TICK, now.phase == WATCHING, TickExpired, TICK_MS),
        TimerRule(WatchTimer.STALE, (now.phase != OFF) & (now.age == Age.FRESH), StaleExpired, STALE_MS),
        TimerRule(WatchTimer.DUE, now.age == Age.STALE, DueExpired, DUE_MS),
        TimerRule(WatchTimer.QUIET, now.age == Age.DUE, QuietAgeExpired, QUIET_MS),
        TimerRule(WatchTimer.TOOL_STALE, now.tool_age == ToolAge.FRESH, ToolStaleExpired, STALE_MS),
        TimerRule(WatchTimer.TOOL_QUIET, now.tool_age == ToolAge.STALE, ToolQuietExpired, TOOL_QUIET_MS),
        TimerRule(WatchTimer.MUTE, now.muted, MuteExpired, MUTE_MS),
    ),
    released=now.phase == OFF,
)
step = MACHINE.step
