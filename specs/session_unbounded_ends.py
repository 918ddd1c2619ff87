"""In the environment without bounds any turn ends, and so does a continuation: promises about the future, under stated fairness.

The item that is followed may be any, so this is said of every turn of any number. Drops, restarts and Stops may go on for ever. The
assumptions are those of ``session_ends``, said of one item, and two that are needed because nothing is counted down: not every new
subscription is lost before the history was read, and what waits in the inbox again and again is served at last, or found by a recheck while
the session is idle. Of the user, of Stops and of prompts that may be admitted later nothing is assumed.

A continuation is looked at while its item is the one followed, or it has none: one with another item is one where that is followed.
"""

from __future__ import annotations

from turnproof.machines import session as target
from turnproof.machines import session_start as start_words
from turnproof.machines.kernel import NOBODY, Row, not_, one_of
from turnproof.machines.session import MACHINE, RecheckExpired, Timer
from turnproof.machines.session_stream import LOST, SUBSCRIBED, UP
from turnproof.machines.session_words import HistoryRead, Turn
from turnproof.specs.language import Fair, LeadsTo, Property
from turnproof.specs.session_properties import STUCK
from turnproof.specs.session_requests import RequestPhase
from turnproof.specs.session_unbounded_parts import Ahead, P, Place
from turnproof.specs.session_unbounded_system import item, line, now, request, session, start, stream, system
from turnproof.specs.system import System

USER_ENDS, WAKE_ENDS = "L1: a user turn ends", "L2: a continuation ends"
GOING_ON = (RequestPhase.FLYING, RequestPhase.OK, RequestPhase.REFUSED, RequestPhase.BROKEN, RequestPhase.BROKEN_LATE)

up, lost_again = stream.now.phase == UP, stream.next.phase != UP
followed = (now.phase == Turn.USER) & (now.item == P)
known = (now.phase == Turn.CONTINUATION) & one_of(now.item, NOBODY, P)
asking = up & followed & session.running(Timer.RECHECK)
decided = one_of(item.now.phase, Place.SUCCEEDED, Place.INTERRUPTED, Place.BURIED, Place.CANCELLED)
published = (line.now.phase == Ahead.END) & one_of(item.now.phase, Place.SUCCEEDED, Place.INTERRUPTED)

COMMON = (
    Fair("an execution that serves the item ends", item.now.phase == Place.RUNNING, item.next.phase != Place.RUNNING),
    Fair("the end of that execution, when published, is handled", up & published, (line.next.phase != Ahead.END) | lost_again),
    Fair("a lost stream is subscribed again", stream.now.phase == LOST, stream.next.phase != LOST),
    Fair("not every new subscription is lost before the history is read", stream.now.phase == SUBSCRIBED, stream.next.phase == UP,
         strong=True),
)  # fmt: skip
"""What the server, the stream and the adapter do at last."""
OF_USERS = (
    *(Fair(f"a request that is {p.value} goes on", request.now.phase == p, request.next.phase != p) for p in GOING_ON),
    Fair("a prompt that is over and not delivered is looked for", asking & decided,
         session.took(HistoryRead) | (session.next.phase != Turn.USER) | lost_again),
    Fair("what waits in the inbox is served, or found in an idle session",
         asking & (now.sending == target.TAKEN) & (item.now.phase == Place.WAITING), item.next.phase != Place.WAITING, strong=True),
    Fair("a start that installed its turn goes on", start.now.phase == start_words.INSTALLED, start.next.phase != start_words.INSTALLED),
)  # fmt: skip
OF_WAKES = (
    Fair("the delivery of the item, when published, is handled", up & (line.now.phase == Ahead.DELIVERY),
         (line.next.phase != Ahead.DELIVERY) | lost_again),
    Fair("an execution of others ends where the adapter is", up & line.now.busy & (line.now.phase == Ahead.NOTHING),
         not_(line.next.busy) | lost_again),
)  # fmt: skip

PROMISES: tuple[Property, ...] = (
    LeadsTo(USER_ENDS, followed, not_(followed), fairness=(*COMMON, *OF_USERS), requirements="R-SES-10", harm=STUCK),
    LeadsTo(WAKE_ENDS, known, not_(known), fairness=(*COMMON, *OF_WAKES), requirements="R-SES-11", harm=STUCK),
)


def without_rechecks() -> System:
    """The target that never looks again for a prompt, where one that is parked in the inbox is never found: its timer fires for nothing."""
    looks = (row for row in MACHINE.rows if row.event is RecheckExpired and row.emit)
    blind = MACHINE.variant("session_without_rechecks", replace={row.name: Row(RecheckExpired, stay=True, name=row.name) for row in looks})
    return system("unbounded_without_rechecks", machine=blind)
