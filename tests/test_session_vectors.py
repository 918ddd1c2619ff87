"""The nineteen test vectors of the OpenCode adapter, played on its machines: each on the rule of the mark it is for, and on the target.

The event order and the expected terminals are those of the adapter's own tests (pingdotgg/t3code, pull request that ends in 3e33a21).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from session_script import Adapter

from turnproof.machines.session_start import SendDue
from turnproof.machines.session_stop import InterruptAnswered, InterruptFailed
from turnproof.machines.session_words import Answer, Mark, Past, RunMarked, Turn
from turnproof.specs.session_history import V0, V1, V2, V3, V4, design
from turnproof.specs.session_target import TARGET

OUTSIDE = {
    11: "answers to permissions and forms, and their failures, are not modelled",
    13: "sessions of children are not modelled",
    15: "whether the server knows the session is the registration's, before any turn",
}
"""Vectors that these machines cannot say, and why."""
Play = Callable[[Adapter], None]
MARKED = (V0, V1, V2, V3, V4)


def doubtful(a: Adapter) -> bool:
    """Whether a start has to ask, as the design reads it from the session's state."""
    s = a.session
    return bool(s.mark is not Mark.CLEAR) if hasattr(s, "mark") else bool(s.doubt or s.more)


def begin(a: Adapter, prompt: str, answer: Answer | None = Answer.OK, *, active: bool = False) -> None:
    """A user turn, and the reply of its request if one is sent."""
    a.start(prompt, doubt=doubtful(a), active=active)
    if answer is not None and a.requests[-1] == f"prompt {prompt}":
        a.answer(prompt, answer)


def hung_stop(a: Adapter) -> None:
    """A Stop whose interrupt is never answered."""
    a.stop()
    a.advance(11_000)


def target() -> Adapter:
    return Adapter(TARGET)


def marked(version: int) -> Adapter:
    return Adapter(design(MARKED[version]))


BOTH = pytest.mark.parametrize("make", [lambda: marked(4), target], ids=["v4", "target"])
Make = Callable[[], Adapter]


def v1_late_end(a: Adapter) -> None:
    begin(a, "a")
    hung_stop(a)
    begin(a, "b")
    a.ended()
    a.started("b")
    a.ended("failed")


def v2_stopped_then_completed(a: Adapter) -> None:
    begin(a, "a")
    hung_stop(a)
    begin(a, "b")
    a.started("b")
    a.ended()


def v4_still_stopping(a: Adapter) -> None:
    begin(a, "a", Answer.UNCLEAR)
    begin(a, "b", active=True)


def v5_clear_refusal(a: Adapter) -> None:
    begin(a, "a", Answer.REFUSED)
    begin(a, "b")
    a.started("b")
    a.ended()


def v6_stopped_again(a: Adapter) -> None:
    begin(a, "a")
    hung_stop(a)
    begin(a, "b", active=True)


def v7_lost_stream(a: Adapter) -> None:
    begin(a, "a")
    a.started("a")
    hung_stop(a)
    begin(a, "b", active=True)
    a.drop()
    a.read(active=False)
    a.started("c")
    a.proceed()
    a.ended()


@BOTH
@pytest.mark.parametrize(
    ("number", "play", "outcomes"),
    [
        (1, v1_late_end, ["interrupted", "failed"]),
        (2, v2_stopped_then_completed, ["interrupted", "completed"]),
        (4, v4_still_stopping, ["failed", "failed"]),
        (5, v5_clear_refusal, ["failed", "completed"]),
        (6, v6_stopped_again, ["interrupted", "failed"]),
        (7, v7_lost_stream, ["interrupted", "failed", "completed"]),
    ],
)
def test_terminals(make: Make, number: int, play: Play, outcomes: list[str]) -> None:
    adapter = make()
    play(adapter)
    assert adapter.outcomes == outcomes, number
    assert adapter.session.phase is Turn.NONE


def test_a_lost_stream_leaves_a_continuation_stuck_under_the_first_rule() -> None:
    adapter = marked(0)
    v7_lost_stream(adapter)
    assert adapter.outcomes == ["interrupted", "failed"]
    assert adapter.session.phase is Turn.CONTINUATION


def test_what_was_asked_and_sent() -> None:
    """Vectors 4 to 6: no second prompt beside a run that is still stopping, no question after a clear refusal."""
    for play, requests in (
        (v4_still_stopping, ["prompt a", "active", "interrupt"]),
        (v5_clear_refusal, ["prompt a", "prompt b"]),
        (v6_stopped_again, ["prompt a", "interrupt", "active", "interrupt"]),
    ):
        for adapter in (marked(4), target()):
            play(adapter)
            assert [r for r in adapter.requests if not r.startswith(("cancel", "history"))] == requests


@BOTH
def test_vector_3_a_start_that_cannot_be_decoded_counts_like_any_other(make: Make) -> None:
    """The machines know one start: what cannot be decoded still names its kind (R-SES-29). Then it is vector 2."""
    adapter = make()
    v2_stopped_then_completed(adapter)
    assert adapter.outcomes == ["interrupted", "completed"]


@BOTH
def test_vector_8_nothing_to_interrupt_leaves_the_turn(make: Make) -> None:
    adapter = make()
    begin(adapter, "a")
    adapter.stop()
    adapter.send("stop", InterruptAnswered(False))
    assert adapter.outcomes == []
    assert adapter.session.phase is Turn.USER
    assert not adapter.session.stopped


@BOTH
def test_vector_9_a_stop_that_fails_stops_nothing(make: Make) -> None:
    adapter = make()
    begin(adapter, "a")
    adapter.stop()
    adapter.send("stop", InterruptFailed())
    adapter.started("a")
    adapter.ended()
    assert adapter.outcomes == ["completed"]


def test_vector_10_the_tail_of_what_was_found_at_load_ends_no_turn() -> None:
    """The mark is set by what the load rejected. The target has no mark: the tail is an end that served nothing of its own."""
    for adapter in (marked(4), target()):
        if hasattr(adapter.session, "mark"):
            adapter.send("session", RunMarked())
        adapter.start("a", doubt=doubtful(adapter), send=False)
        adapter.ended("interrupted")
        adapter.send("start", SendDue(True))
        adapter.started("a")
        adapter.ended()
        assert adapter.outcomes == ["completed"]


@BOTH
def test_vector_12_a_turn_goes_on_over_a_reconnect_that_finds_it_active(make: Make) -> None:
    adapter = make()
    begin(adapter, "a")
    adapter.started("a")
    adapter.drop()
    adapter.read(active=True, past=Past.UNDER_WAY)
    adapter.ended()
    assert adapter.outcomes == ["completed"]


def test_vector_14_a_reconnect_that_finds_nothing_active_leaves_no_wake_running() -> None:
    """The mark forgets the wake. The target keeps it, ended, for the continuation that was offered."""
    for adapter, held in ((marked(4), 0), (target(), 1)):
        adapter.started("c")
        adapter.drop()
        adapter.read(active=False, past=Past.SUCCEEDED)
        assert not adapter.session.running
        assert adapter.session.ended == held


def v16_late_start(a: Adapter) -> None:
    begin(a, "a", Answer.UNCLEAR)
    a.started("a")
    begin(a, "b", None)


def v17_late_start_after_a_reconnect(a: Adapter) -> None:
    begin(a, "a", Answer.UNCLEAR)
    a.drop()
    a.read(active=True)
    a.started("a")
    begin(a, "b", None)


@pytest.mark.parametrize(
    ("play", "asks"),
    [(v16_late_start, [True, False, True, True, True]), (v17_late_start_after_a_reconnect, [True, False, False, True, True])],
)
def test_vectors_16_and_17_a_prompt_is_not_sent_unchecked_beside_a_failed_one(play: Play, asks: list[bool]) -> None:
    """V0 never clears the mark but by an end; V1 clears it at any start, V2 at a reconnect that says active."""
    assert len(asks) == len(MARKED)
    for adapter, expected in zip([*map(marked, range(5)), target()], [*asks, True], strict=True):
        play(adapter)
        sent = [r for r in adapter.requests if r in ("active", "prompt b")]
        assert sent[0] == ("active" if expected else "prompt b")


def v18_never_taken(a: Adapter) -> None:
    begin(a, "a", Answer.UNCLEAR)
    a.started("c")
    a.proceed()
    a.ended()


def v19_never_taken_and_ended_first(a: Adapter) -> None:
    begin(a, "a", Answer.UNCLEAR)
    a.started("c")
    a.ended()
    a.proceed()


@pytest.mark.parametrize("play", [v18_never_taken, v19_never_taken_and_ended_first])
def test_vectors_18_and_19_a_background_reply_ends_after_a_prompt_that_was_never_taken(play: Play) -> None:
    before, approved, new = marked(3), marked(4), target()
    for adapter in (before, approved, new):
        play(adapter)
    assert before.outcomes == ["failed"]
    assert before.session.phase is Turn.CONTINUATION
    assert approved.outcomes == new.outcomes == ["failed", "completed"]


def test_every_vector_is_played_or_says_why_not() -> None:
    played = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 17, 18, 19}
    assert played | set(OUTSIDE) == set(range(1, 20))
    assert all(len(why.split()) > 4 for why in OUTSIDE.values())
