"""The rules of the mark before the one that was approved: each is V4 with the named rows replaced.

The order is certain; V2 to V4 are reconstructed from the pull request (pingdotgg/t3code, final commit 3e33a21).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turnproof.machines import session_mark as v4
from turnproof.machines.kernel import Machine, Row, choose
from turnproof.machines.session_mark import CLEAR, STARTED, MarkedSession
from turnproof.machines.session_stop import MACHINE as STOP
from turnproof.machines.session_stop import MARKING
from turnproof.specs.session_parts import ASKS, DEATH, N2, N4, N7, N11, N12, N13, Design, World
from turnproof.specs.session_properties import CONTINUATION_RESTS, FAILED_ASKED, properties
from turnproof.specs.system import SystemVariant
from turnproof.specs.system_words import state

Marked = Machine[MarkedSession, Any, Any]


def _replaced(base: Marked, name: str, rows: tuple[Row[MarkedSession, Any], ...]) -> Marked:
    """``base`` with these rows in the place of those of the same name; a row of a new name comes first of all."""
    known = {row.name for row in base.rows}
    return base.variant(name, replace={r.name: r for r in rows if r.name in known}, first=[r for r in rows if r.name not in known])


marked = v4.now.mark != CLEAR
V4: Marked = v4.MACHINE
V3 = _replaced(V4, "session_mark_v3", (*v4.REPLAYED_EATEN, *v4.takes(v4.now.mark)))
V2 = _replaced(V3, "session_mark_v2", v4.reconciles(choose(marked, STARTED, CLEAR), choose(marked, STARTED, CLEAR)))
V1 = _replaced(_replaced(V2, "session_mark_v1", v4.starts(CLEAR)), "session_mark_v1", v4.reconciles(v4.now.mark, v4.now.mark))
V0 = _replaced(V1, "session_mark_v0", v4.starts(v4.now.mark))
MARKING_STOP = STOP.variant("session_stop_marking", replace={row.name: row for row in MARKING}, drop=("joins",))
VERSIONS = (V0, V1, V2, V3, V4)


def design(machine: Marked) -> Design:
    """The adapter around a session under the rule of the mark."""
    now = state("session", machine)
    return Design(session=machine, stop=MARKING_STOP, doubt=now.mark != CLEAR, wakes=(now.ended > 0) | now.running)


# ── what each of them did, in the world of the reference: one Stop, one drop, admission before the reply ──

STUCK, UNCHECKED = CONTINUATION_RESTS, FAILED_ASKED
HISTORIC = (N2, N4, N11, N12, N13, ASKS, DEATH)
LENGTHS: Mapping[str, Mapping[str, int | None]] = {
    "session_mark_v0": {STUCK: 12, UNCHECKED: None},
    "session_mark_v1": {STUCK: 14, UNCHECKED: 10},
    "session_mark_v2": {STUCK: 12, UNCHECKED: 13},
    "session_mark_v3": {STUCK: 12, UNCHECKED: None},
    "session_mark": {STUCK: None, UNCHECKED: None},
}
"""Version -> steps of the shortest violation without a background child; None: there is none, the whole graph was explored.

The upstream analysis has 11, 16, 11, 11, none for the first, and none, 9, 12, none, none for the second, with a child. One step more
here: a request and its admission are two steps, and so are a start and the delivery that follows it. Two less for V1: its continuation
is held up by the late end of a Stop's own run, for which no second turn is needed. With a child every version sends a prompt unchecked,
V4 too, in 14 steps: the end of the child's report spends the mark (``session_defects``, mark_spent_on_another).
"""
ABOUT: Mapping[str, str] = {
    "session_mark_v0": "V0, 716357c: the mark is eaten by the next end, whoever's it is, also in a replay: the continuation is stuck.",
    "session_mark_v1": "V1, 61b9521: any start clears the mark, also the late start of the very prompt it was set for.",
    "session_mark_v2": "V2, 92daf4d: a reconnect takes the marked run for started, although the session is only queued.",
    "session_mark_v3": "V3, 145cf15: the start of a background report looks like the marked run's late start; its end is eaten.",
}


def historic(machine: Marked, *, child: bool = False) -> World:
    """The world of the reference around this version, without a child unless asked for."""
    return World(design(machine), HISTORIC if child else (*HISTORIC, N7), stops=1, drops=1)


def variants() -> tuple[SystemVariant, ...]:
    """V0 to V3, each with what it must violate."""
    found = []
    for machine in (V0, V1, V2, V3):
        world = historic(machine)
        violates = {name: length for name, length in LENGTHS[machine.name].items() if length is not None}
        wanted = tuple(p for p in properties(world) if p.name in violates)
        found.append(SystemVariant(system=world.system(machine.name), about=ABOUT[machine.name], violates=violates, properties=wanted))
    return tuple(found)
