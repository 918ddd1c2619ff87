"""A scenario of an OpenCode session, written event by event: the server, the wire and the user do what the script says, and when.

What is published stays in the buffer until the script lets the adapter handle it: two gates of a scenario are two calls in their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from turnproof.checkers.network.run import Occurrence
from turnproof.checkers.network.timed import TimedSystem
from turnproof.checkers.network.triggers import Kind, Trigger
from turnproof.machines.session_start import ActiveRead, AnswerHandled, Prepared, SendDue, StartPhase, TurnWanted
from turnproof.machines.session_stop import StopRequested
from turnproof.machines.session_stream import Arrived, Dropped, SnapshotTaken, Subscribed, What
from turnproof.machines.session_words import Outcome, Past, ReportTurn, Turn
from turnproof.specs import session_environment as env
from turnproof.specs import session_requests as req
from turnproof.specs.session_history import V4, design
from turnproof.specs.session_parts import Design, World
from turnproof.specs.session_parts import active as is_active
from turnproof.specs.session_target import TARGET

APPROVED = design(V4)
DESIGNS = {"v4": APPROVED, "target": TARGET}


class Script(TimedSystem):
    """One run around ``design``, in virtual time."""

    def __init__(self, design: Design) -> None:
        self.designed = World(design)
        super().__init__(self.designed.system("session_script"))
        self.sessions = self.designed.session

    # ── what the adapter does ──

    def turn(self) -> None:
        """The user sends the next prompt; its start goes as far as its question, or to the end of its preparations."""
        self._send("user", req.Prompted(bool(self.runner.holds(self.designed.design.doubt, self.world))))

    @property
    def asks(self) -> bool:
        """The start under way asks ``session.active``."""
        return bool(self.part("start").phase == StartPhase.ASKING)

    def answered(self) -> None:
        """``session.active`` is answered as the server is now, and the answer handled."""
        design = self.designed.design
        if design.in_doubt is None:
            told = ActiveRead(self.active)
        else:
            past = self.past(str(self.runner.holds(design.in_doubt, self.world)))
            told = ActiveRead(self.active and past is Past.UNDER_WAY, past in (Past.SUCCEEDED, Past.INTERRUPTED))
        self._send("start", told)
        self._send("start", AnswerHandled())

    def installed(self) -> None:
        """Every preparation is over, and the turn installed."""
        self._send("start", Prepared(True))

    def sent(self) -> None:
        """The prompt goes out, if its turn is installed and not stopped."""
        session, start = self.part("session"), self.part("start")
        mine = getattr(session, "prompt", None) if hasattr(session, "prompt") else session.item
        self._send("start", SendDue(session.phase is Turn.USER and mine == start.prompt and not session.stopped))

    def prompts(self, prompt: str) -> None:
        """A whole start without a question, and the server takes the prompt."""
        self.turn()
        self.installed()
        self.sent()
        self.taken(prompt)

    # ── requests ──

    def taken(self, prompt: str, *, lost: bool = False) -> None:
        """The server admits the prompt, and the reply is handled: an unclear error where it was lost."""
        self._send(f"request_{prompt}", req.PromptTaken(lost))
        self._send(f"request_{prompt}", req.ReplyHandled())

    def fails(self, prompt: str, *, refused: bool = False) -> None:
        """The server never takes the prompt: a 502, or a clear refusal."""
        self._send(f"request_{prompt}", req.PromptRefused() if refused else req.PromptNotTaken())
        self._send(f"request_{prompt}", req.ReplyHandled())

    def stop(self, number: int = 1) -> None:
        """The turn installed is stopped."""
        self._send(f"stop_{number}", StopRequested(False))

    def interrupt(self, how: req.How = req.How.ANSWERED, number: int = 1) -> None:
        """The interrupt is processed, or not, and its reply handled, if somebody waits for it."""
        if how in (req.How.UNHEARD, req.How.LOST):
            self._send("late", req.InterruptProcessed(how, False))
            return
        self._send(f"interrupt_{number}", req.InterruptProcessed(how, False))
        self._send(f"interrupt_{number}", req.InterruptReplyHandled())

    # ── the server and the wire ──

    def report(self) -> None:
        """The background child ends, and its report is queued."""
        self._send("server", env.Admitted("c"))

    def started(self, *, handled: bool = True) -> None:
        """The execution starts."""
        self._send("server", env.StartPublished())
        self.handled(handled)

    def ended(self, what: What = What.SUCCEEDED, *, handled: bool = True) -> None:
        """The execution ends so, and settles."""
        execution = self.part("server").execution
        self._send("server", env.CleanedUp() if self.part("server").phase is env.ServerPhase.STOPPING else env.Finished())
        self._send("server", env.Settled())
        if what is What.FAILED:
            self._perform(Trigger(Kind.LOSE, "buffer"))
            self._send("stream", Arrived(What.FAILED, execution))
        self.handled(handled)

    def handled(self, yes: bool = True) -> None:
        """Everything in the buffer is handled."""
        while yes and self.world.channels[0]:
            self._perform(Trigger(Kind.DELIVER, "buffer"))

    def drop(self) -> None:
        """The stream breaks; what is published from now on is lost."""
        self._send("stream", Dropped())

    def reconnect(self) -> None:
        """A new subscription, then the history as it is now."""
        self._send("stream", Subscribed())
        item = self.designed.design.item
        session = self.part("session")
        self._send("stream", SnapshotTaken(self.active, self.past(session.prompt if item is None else session.item)))

    def continues(self) -> None:
        """The offered continuation starts."""
        self._send("service", req.ContinuationDue(bool(self.runner.holds(self.designed.design.wakes, self.world))))

    # ── what came of it ──

    @property
    def active(self) -> bool:
        """The session is among the active ones."""
        return bool(self.runner.holds(is_active, self.world))

    def past(self, item: str) -> Past:
        """What the history says of the item now."""
        place = getattr(self.part("server"), item, env.Place.ABSENT) if item else env.Place.ABSENT
        return next(past for past, places in env.PLACES.items() if place in places)

    @property
    def terminals(self) -> list[Outcome]:
        """How turns ended, in order."""
        return [told.outcome for told in self.effects(self.sessions, ReportTurn)]

    @property
    def prompts_sent(self) -> int:
        """How many prompts went out."""
        return sum(self.part(f"request_{p}").phase is not req.RequestPhase.UNSENT for p in "ab")

    def part(self, name: str) -> Any:
        """The state of the part of that name."""
        return self.world.parts[self.runner.index[name]]

    def _send(self, part: str, event: object) -> Occurrence:
        return self._perform(Trigger(Kind.SEND, part, event))


def outcomes(*names: str) -> Sequence[Outcome]:
    """``outcomes("completed", "failed")``."""
    return [Outcome(name) for name in names]


__all__ = ["APPROVED", "DESIGNS", "TARGET", "Script", "TurnWanted", "outcomes"]
