"""The rules of the mark before the one that was approved: each is V4 with the named rows replaced.

The order is certain; V2 to V4 are reconstructed from the pull request (pingdotgg/t3code, final commit 3e33a21).
"""

from __future__ import annotations

from typing import Any

from turnproof.machines import session_mark as v4
from turnproof.machines.kernel import Machine, Row, choose
from turnproof.machines.session_mark import CLEAR, STARTED, MarkedSession
from turnproof.machines.session_stop import MACHINE as STOP
from turnproof.machines.session_stop import MARKING
from turnproof.specs.session_parts import Design
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
