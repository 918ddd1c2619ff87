"""Building a machine checks its table; every message names the row and says what to write instead."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from enum import Enum
from typing import Annotated, Any, get_args

import pytest
from attrs import evolve, frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from turnproof.machines.kernel import (
    HOLE,
    NOBODY,
    Counter,
    Duration,
    Ignored,
    Machine,
    Opaque,
    Range,
    Refused,
    Row,
    StartTimer,
    StopTimer,
    TableError,
    Taken,
    TimerRule,
    Token,
    choose,
    named,
    not_,
    only_if,
    symbol,
)


class Phase(Enum):
    IDLE = "idle"
    BUSY = "busy"
    DONE = "done"


class Clock(Enum):
    LIMIT = "limit"


class Other(Enum):
    X = "x"


@frozen
class Job:
    phase: Phase = Phase.IDLE
    armed: bool = False
    tries: Annotated[int, Range(0, 2)] = 0
    runs: Annotated[int, Counter] = 0
    owner: Annotated[str, Token] = NOBODY
    note: Annotated[str, Opaque] = ""


@frozen
class Begin:
    owner: Annotated[str, Token]
    note: Annotated[str, Opaque]


@frozen
class Finish:
    ok: bool


@frozen
class Late: ...


@frozen
class Report:
    owner: Annotated[str, Token]
    note: Annotated[str, Opaque]


@frozen
class Unlisted: ...


Event = Begin | Finish | Late
Effect = Report | StartTimer | StopTimer
now, begin, finish = symbol(Job), symbol(Begin), symbol(Finish)
free = named("free", now.owner == NOBODY)
R = Row[Job, Effect]
TIMERS = (TimerRule(Clock.LIMIT, now.armed, Late, Duration(1_000, "this test")),)

ROWS: tuple[Row[Job, Effect], ...] = (
    R(begin, at=Phase.IDLE, when=free & (begin.owner != NOBODY), to=Phase.BUSY,
      data=evolve(now, owner=begin.owner, note=begin.note, armed=True, runs=now.runs + 1), emit=(StartTimer(Clock.LIMIT),)),
    R(Begin, refuse="somebody is at work"),
    R(finish, at=Phase.BUSY, when=finish.ok, to=Phase.DONE, data=evolve(now, armed=False),
      emit=(only_if(now.armed, StopTimer(Clock.LIMIT)), Report(now.owner, now.note))),
    R(finish, at=Phase.BUSY, when=now.tries < 2, data=evolve(now, tries=now.tries + 1)),
    R(Finish, ignore="nothing runs, or it was tried often enough"),
    R(Late, when=now.armed, to=Phase.DONE, data=evolve(now, armed=False, owner=choose(now.tries > 0, now.owner, NOBODY))),
    R(Late, ignore="it ended in time"),
)  # fmt: skip


def machine(*rows: Row[Job, Effect], **changes: Any) -> Machine[Job, Event, Effect]:
    given: dict[str, Any] = {
        "name": "job", "initial": Job(), "now": now, "events": get_args(Event), "effects": get_args(Effect),
        "rows": rows or ROWS, "timers": TIMERS,
    }  # fmt: skip
    return Machine(**(given | changes))


def test_a_step_answers_in_exactly_one_of_three_ways() -> None:
    step = machine().step
    taken = step(Job(), Begin("a", "hello"))
    assert isinstance(taken, Taken)
    assert taken.state == Job(Phase.BUSY, True, 0, 1, "a", "hello")
    assert taken.effects == (StartTimer(Clock.LIMIT),)
    assert taken.row.name == "Begin/idle/free"
    refused = step(taken.state, Begin("b", ""))
    assert isinstance(refused, Refused)
    assert refused.why == "somebody is at work"
    ignored = step(Job(), Late())
    assert isinstance(ignored, Ignored)
    done = step(taken.state, Finish(True))
    assert isinstance(done, Taken)
    assert done.effects == (StopTimer(Clock.LIMIT), Report("a", "hello"))


def test_a_hole_is_refused_and_an_unknown_event_is_a_mistake_of_the_program() -> None:
    holed = machine(*[row for row in ROWS if row.event is not Finish], R(finish, when=finish.ok, stay=True))
    answer = holed.step(Job(), Finish(False))
    assert isinstance(answer, Refused)
    assert answer.row is HOLE
    with pytest.raises(TypeError, match="job knows no event Unlisted; it knows Begin, Finish, Late"):
        holed.step(Job(), Unlisted())  # type: ignore[arg-type]


MISTAKES: list[tuple[str, Callable[[], object], str]] = [
    ("no answer", lambda: R(Late), r"Row\(Late, \.\.\.\) answers with nothing: write to="),
    ("two answers", lambda: R(Late, to=Phase.DONE, refuse="no"), "answers with more than one of them"),
    ("refusal with effects", lambda: R(Late, refuse="no", emit=(StopTimer(Clock.LIMIT),)), "A refusal carries no effects"),
    ("evaluated guard", lambda: R(Late, when=now.phase is Phase.BUSY, stay=True), "the guard is the constant False"),
    ("foreign phase", lambda: machine(*ROWS, R(Late, at=Other.X, stay=True, name="z")), r"row z: at=Other.X is not a Phase"),
    ("foreign target", lambda: machine(*ROWS, R(Late, to=Other.X, name="z")), r"row z: to=Other.X is not a Phase"),
    ("opaque guard", lambda: machine(*ROWS, R(begin, when=begin.note == "x", stay=True,
        name="z")), r"row z: the guard reads Begin.note, which is Opaque"),
    ("opaque condition", lambda: machine(*ROWS, R(begin, emit=(only_if(now.note == "x", StopTimer(Clock.LIMIT)),),
        name="z")), "only_if.. reads Job.note, which is Opaque"),
    ("other event's field", lambda: machine(*ROWS, R(Late, when=finish.ok, stay=True,
        name="z")), r"row z: the guard reads Finish.ok, but the row is about Late"),
    ("next state", lambda: machine(*ROWS, R(Late, when=symbol(Job, scope="next").armed, stay=True,
        name="z")), "a row sees only the state before the step"),
    ("never equal", lambda: machine(*ROWS, R(Late, when=now.tries == Phase.BUSY, stay=True,  # type: ignore[comparison-overlap]
        name="z")), r"compares int with Phase, which are never equal"),
    ("arithmetic on an enum", lambda: machine(*ROWS, R(Late, when=now.owner < "b", stay=True, name="z")), "does arithmetic on a Token"),
    ("both to and data", lambda: machine(*ROWS, R(Late, to=Phase.DONE, data=evolve(now, phase=Phase.BUSY),
        name="z")), "both to= and data= set phase"),
    ("value outside", lambda: machine(*ROWS, R(Late, data=evolve(now, tries=5),
        name="z")), "data.tries is 5, expected an integer from 0 to 2"),
    ("wrong sort", lambda: machine(*ROWS, R(Late, data=evolve(now, armed=now.phase),  # type: ignore[arg-type]
        name="z")), "data.armed is given `phase`, which is Phase, not bool"),
    ("unlisted event", lambda: machine(*ROWS, R(Unlisted, stay=True, name="z")), "Unlisted is not in the machine's union of events"),
    ("unlisted effect", lambda: machine(*ROWS, R(Late, emit=(Unlisted(),),  # type: ignore[arg-type]
        name="z")), "emits Unlisted, which is not in the machine's union of effects"),
    ("unanswered event", lambda: machine(*ROWS[:2]), "no row answers the event Finish"),
    ("same name", lambda: machine(*ROWS, R(Late, stay=True, name="z"), R(Late, stay=True, name="z")), "2 rows are called 'z'"),
    ("timer without rule", lambda: machine(timers=()), "StartTimer.LIMIT. has no TimerRule"),
    ("expiry not an event", lambda: machine(timers=(TimerRule(Clock.LIMIT, now.armed, Unlisted, TIMERS[0].duration),)),
     "its expiry Unlisted is not an event"),
    ("timer of no length", lambda: Duration(0, "x"), "a timer of no length"),
    ("initial outside", lambda: machine(initial=Job(tries=9)), "initial.tries is 9, expected an integer from 0 to 2"),
    ("wrong now", lambda: machine(now=symbol(Begin)), r"now= is a Begin: write symbol\(Job\)"),
    ("no phase", lambda: machine(phase="armed"), "Job needs an Enum field 'armed'"),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "message"), [(m, text) for _, m, text in MISTAKES], ids=[name for name, _, _ in MISTAKES])
def test_a_mistake_in_a_table_is_named(mistake: Callable[[], object], message: str) -> None:
    with pytest.raises((TableError, TypeError), match=message):
        mistake()


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(TableError) as caught:
        machine(*ROWS, R(Late, to=Other.X, name="y"), R(Unlisted, stay=True, name="z"))
    assert "row y" in str(caught.value)
    assert "row z" in str(caught.value)


def test_a_variant_replaces_drops_and_prepends_rows() -> None:
    base = machine()
    changed = base.variant(
        "job_lazy", replace={"Late": R(Late, stay=True, name="Late")}, drop=("Finish/busy",), first=(R(Begin, stay=True, name="first"),)
    )
    assert [row.name for row in changed.rows][:2] == ["first", "Begin/idle/free"]
    assert "Finish/busy" not in [row.name for row in changed.rows]
    with pytest.raises(KeyError, match="job has no row 'nonsense'; its rows: Begin/idle/free"):
        base.variant("x", drop=("nonsense",))


def test_a_traceback_through_a_guard_shows_the_guard() -> None:
    with pytest.raises(AttributeError) as caught:
        machine().step(object(), Finish(True))  # type: ignore[arg-type]
    assert "= s." in "".join(traceback.format_exception(caught.value))


# ── the readings agree on random tables ──


@frozen
class Small:
    phase: Phase = Phase.IDLE
    flag: bool = False
    level: Annotated[int, Range(0, 2)] = 0


@frozen
class Poke:
    hard: bool


@frozen
class Beep:
    level: Annotated[int, Range(0, 2)]


small, poke = symbol(Small), symbol(Poke)
ATOMS = (small.flag, small.level == 1, small.level < 2, small.phase == Phase.BUSY, poke.hard, small.phase != Phase.DONE)
guards = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: p[0] & p[1]), st.tuples(inner, inner).map(lambda p: p[0] | p[1]), inner.map(not_),
    ),
    max_leaves=5,
)  # fmt: skip
updates = st.fixed_dictionaries(
    {}, optional={"flag": st.one_of(st.booleans(), guards),
                  "level": st.one_of(st.integers(0, 2), guards.map(lambda g: choose(g, 2, small.level)))},
)  # fmt: skip
SmallRow = Row[Small, Beep]


@st.composite
def tables(draw: st.DrawFn) -> Machine[Small, Poke, Beep]:
    def row(n: int) -> SmallRow:
        at = draw(st.sampled_from([None, Phase.IDLE, (Phase.BUSY, Phase.DONE)]))
        when = draw(st.one_of(st.none(), guards))
        answer = draw(st.sampled_from(["take", "ignore", "refuse"]))
        if answer != "take":
            ignore, refuse = ("late", "") if answer == "ignore" else ("", "no")
            return SmallRow(poke, at=at, when=when, ignore=ignore, refuse=refuse, name=f"r{n}")
        emit: tuple[Beep, ...] = draw(st.sampled_from([(), (Beep(1),), (Beep(small.level), only_if(small.flag, Beep(2)))]))
        to = draw(st.sampled_from([None, *Phase]))
        return SmallRow(poke, at=at, when=when, to=to, data=evolve(small, **draw(updates)), emit=emit, name=f"r{n}")

    rows = tuple(row(n) for n in range(draw(st.integers(1, 5))))
    return Machine(name="random", initial=Small(), now=small, events=(Poke,), effects=(Beep,), rows=rows)


@settings(max_examples=150, deadline=None)
@given(tables())
def test_interned_table_generated_source_and_interpreter_choose_the_same_row(table: Machine[Small, Poke, Beep]) -> None:
    assert table.interned_events == (Poke,)
    for phase in Phase:
        for flag in (False, True):
            for level in range(3):
                for event in (Poke(False), Poke(True)):
                    state = Small(phase, flag, level)
                    expected = table.interpret(state, event)
                    assert table.step(state, event) == expected == table.generated[Poke](state, event)
                    assert table.step(state, event).row is expected.row is table.generated[Poke](state, event).row
