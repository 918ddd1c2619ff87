"""Events as a person writes them: what is understood, what is said of what is not, and that nothing else can happen."""

from __future__ import annotations

import pytest
from cli_toys import MACHINE, Door, Hand, Locked, NoteLeft, Opened, Phase, Slammed
from hypothesis import given
from hypothesis import strategies as st

from turnproof.checkers.written import WrittenError, nearest, read_event, read_events, read_value, show_event
from turnproof.machines.kernel import fields_of
from turnproof.machines.reply_operation import MACHINE as REPLY

LEFT = Opened(by="ann", hand=Hand.LEFT)


@pytest.mark.parametrize(
    "texts",
    [
        ["Opened(by=ann, hand=left)"],
        ["Opened(ann, left)"],
        ["Opened(ann left)"],
        ["Opened(hand=left, by=ann)"],
        ["opened by=ann hand=left"],
        ["OPENED", "by=ann", "hand=LEFT"],
        ["opened", "ann", "left"],
        ["opened", "ann", "hand=left"],
        ['Opened(by="ann", hand=Hand.LEFT)'],
        ["  o_p-ened ( by = 'ann' , hand = 'left' ) "],
    ],
)
def test_ways_to_write_one_event(texts: list[str]) -> None:
    assert read_events(MACHINE, texts) == (LEFT,)


def test_several_events_in_one_line() -> None:
    texts = ["opened", "ann", "left", "slammed", "Locked(2, yes)", "note_left", "text=none", "at_ms=5", "note-left", "hello"]
    assert read_events(MACHINE, texts) == (LEFT, Slammed(), Locked(2, True), NoteLeft("none", 5), NoteLeft("hello"))


@pytest.mark.parametrize(("text", "token"), [("none", ""), ("nobody", ""), ("''", ""), ("'none'", "none"), ("a.b:c/d", "a.b:c/d")])
def test_nobody_and_what_looks_like_it(text: str, token: str) -> None:
    assert read_event(MACHINE, f"Opened({text}, left)") == Opened(token, Hand.LEFT)


@pytest.mark.parametrize("text", ["wide open", "OPEN", "Open", "wide_open", "Phase.OPEN", "phase.open", "WideOpen"])
def test_a_member_by_value_or_name(text: str) -> None:
    assert read_value(fields_of(Door)["phase"], text) is Phase.OPEN


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["Opend(ann, left)"], "event 1, 'Opend(ann, left)': front_door has no event 'Opend'; did you mean Opened?"),
        (["zzz"], "event 1, 'zzz': front_door has no event 'zzz'; its events: Opened, Locked, NoteLeft, Slammed"),
        (["slammed", "opened"], "event 2, 'opened': Opened needs by: a text"),
        (["Opened(ann, lft)"], "event 1, 'Opened(ann, lft)': hand is 'lft', expected one of left, right; did you mean left?"),
        (["Opened(ann, left, 3)"], "event 1, 'Opened(ann, left, 3)': Opened takes only by, hand; '3' is one value too many"),
        (["Slammed(1)"], "event 1, 'Slammed(1)': Slammed takes no field; '1' is one value too many"),
        (["Opened(who=ann, hand=left)"], "event 1, 'Opened(who=ann, hand=left)': Opened has no field 'who'; it has by, hand"),
        (["Opened(by=ann, hnd=left)"], "event 1, 'Opened(by=ann, hnd=left)': Opened has no field 'hnd'; did you mean hand?"),
        (["Slammed(x=1)"], "event 1, 'Slammed(x=1)': Slammed has no field 'x'; it has none"),
        (["opened by=ann by=bob hand=left"], "event 1, 'opened by=ann by=bob hand=left': Opened.by is given twice"),
        (["Locked(4, yes)"], "event 1, 'Locked(4, yes)': force is '4', expected an integer from 1 to 3"),
        (["Locked(two, yes)"], "event 1, 'Locked(two, yes)': force is 'two', expected an integer from 1 to 3"),
        (["Locked(1, maybe)"], "event 1, 'Locked(1, maybe)': quietly is 'maybe', expected true or false"),
        (["NoteLeft(hi, soon)"], "event 1, 'NoteLeft(hi, soon)': at_ms is 'soon', expected an integer"),
        (["Opened(ann, left"], "event 1, 'Opened(ann, left': a bracket is not closed"),
        (["Opened(ann, left))"], "event 1, 'Opened(ann, left))': a bracket too many"),
        (["Opened('ann, left)"], 'event 1, "Opened(\'ann, left)": cannot be read from "\'ann, left)" on: a quote is not closed'),
        (["Opened(by=, hand=left)"], "event 1, 'Opened(by=, hand=left)': by= has no value; write none for nobody"),
        (["Opened(=ann)"], "event 1, 'Opened(=ann)': expected field=value, found '=' without a field before it"),
        (["by=ann"], "event 1, 'by=ann': front_door has no event 'by'; its events: Opened, Locked, NoteLeft, Slammed"),
        (["(", "x"], "event 1, '(': expected the name of an event first, for example Opened(by=a, hand=right)"),
        ([" "], "no event is given; for example Opened(by=a, hand=right)"),
        (["Locked(" + "9" * 5000 + ", yes)"], "force is '" + "9" * 60 + "...', expected an integer from 1 to 3"),
    ],
)
def test_one_line_says_what_is_wrong(texts: list[str], said: str) -> None:
    with pytest.raises(WrittenError) as caught:
        read_events(MACHINE, texts)
    message = str(caught.value)
    assert message == said or (len(message) < 300 and message.endswith(said))
    assert "\n" not in message


def test_a_machine_with_many_events_names_the_nearest_or_where_to_look() -> None:
    with pytest.raises(WrittenError, match=r"did you mean AbortRequested\?"):
        read_events(REPLY, ["abort"])
    with pytest.raises(WrittenError, match=r"`turnproof explain reply_operation` names all \d+"):
        read_events(REPLY, ["zzzz"])


def test_nearest_needs_some_likeness() -> None:
    assert nearest("reply", ["reply_operation", "x"]) == "; did you mean reply_operation?"
    assert nearest("qq", ["reply_operation"]) == ""
    assert nearest("anything", []) == ""


TEXT = st.text(max_size=12)
EVENTS = st.one_of(
    st.builds(Opened, by=TEXT, hand=st.sampled_from(Hand)),
    st.builds(Locked, force=st.integers(1, 3), quietly=st.booleans()),
    st.builds(NoteLeft, text=TEXT, at_ms=st.integers()),
    st.just(Slammed()),
)


@given(st.lists(EVENTS, min_size=1, max_size=4))
def test_what_is_shown_is_read_back(events: list[object]) -> None:
    assert read_events(MACHINE, [show_event(event) for event in events]) == tuple(events)


@pytest.mark.parametrize("machine", [MACHINE, REPLY], ids=lambda machine: str(machine.name))
def test_every_explored_event_is_read_back(machine: object) -> None:
    assert machine in (MACHINE, REPLY)
    for event in REPLY.all_events(tokens=2, counter=1) if machine is REPLY else MACHINE.all_events(tokens=2, counter=1):
        assert read_event(REPLY if machine is REPLY else MACHINE, show_event(event)) == event


NAMES = st.sampled_from(
    ["Opened", "locked", "NoteLeft", "SLAMMED", "by", "hand", "left", "force", "none", "(", ")", ",", "=", "'", '"', "\\", " "]
)


@given(st.lists(st.one_of(TEXT, st.lists(st.one_of(NAMES, st.text(max_size=3)), max_size=8).map("".join)), max_size=4))
def test_anything_else_is_one_sentence(texts: list[str]) -> None:
    said = ""
    events: tuple[object, ...] = ()
    try:
        events = read_events(MACHINE, texts)
    except WrittenError as error:
        said = str(error)
    assert len(said.splitlines()) == (0 if events else 1)
    assert all(type(event) in MACHINE.events for event in events)
