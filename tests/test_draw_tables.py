"""Tables, explanations and the page say everything about every row, and render."""

import re
from html.parser import HTMLParser
from pathlib import Path

import draw_toys
import pytest

from turnproof.checkers import draw
from turnproof.checkers.draw import comments, table
from turnproof.checkers.draw.markdown_page import escape
from turnproof.checkers.draw.timers import length
from turnproof.checkers.graph import explore
from turnproof.machines.kernel import Duration, TableError, one_of, show
from turnproof.specs.catalog import specifications
from turnproof.specs.language import Spec

SPECS = {spec.machine.name: spec for spec in (draw_toys.SPEC, *specifications().values())}
TOY = draw_toys.MACHINE
each_machine = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())


# ── the explanation ──


@each_machine
def test_every_row_guard_and_reason_is_explained(spec: Spec) -> None:
    text = draw.explain(spec.machine)
    flat = " ".join(text.split())
    for number, row in enumerate(spec.machine.rows, 1):
        assert re.search(rf"\b{number}\. ", flat), row.name
        assert f"[{row.name}]" in flat
        for why in (row.ignore, row.refuse, row.because):
            assert " ".join(why.rstrip(".").split()) in flat
    for guard in table.guards(spec.machine):
        assert f"{guard.name}: {guard.detail}" in flat
    assert all(len(line) <= 100 for line in text.splitlines())


def test_a_row_in_words() -> None:
    assert draw.explain(TOY, "Asked") == (
        "Asked\n"
        "  1. at idle: -> waiting; effects: Fetch, StartTimer(patience); because: The first one wins;\n"
        "     because: Asked | once. [Asked/idle]\n"
        "  2. otherwise: refused: asked before | already. [Asked/otherwise]\n"
    )


def test_the_fields_of_an_event_are_told_from_those_of_the_state() -> None:
    assert "when event.backend = backend and backend attached" in draw.explain(
        specifications()["reply_operation"].machine, "BackendDetached"
    )


def test_one_event_is_explained_with_the_guards_it_uses() -> None:
    text = draw.explain(TOY, "Arrived")
    assert "  busy: phase in (waiting, fetching, checking)\n  full: chunks >= 2\n" in text
    assert "Held" not in text


def test_an_unknown_event_is_answered_with_the_nearest() -> None:
    with pytest.raises(TableError, match=r"^download knows no event 'Canceled'; did you mean Cancelled\?$"):
        draw.explain(TOY, "Canceled")
    with pytest.raises(TableError, match=r"^download knows no event 'xyz'; it knows Asked, Moved, "):
        draw.explain(TOY, "xyz")


# ── Markdown ──


def cells(line: str) -> list[str]:
    """The cells of a table's line as GitHub splits it: at every pipe that no backslash escapes."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


@each_machine
def test_every_row_stands_in_one_table_and_every_table_is_rectangular(spec: Spec) -> None:
    text = draw.markdown(spec.machine)
    numbers: list[int] = []
    width = 0
    for line in text.splitlines():
        if line.startswith("|"):
            found = cells(line)
            width = width or len(found)
            assert len(found) == width, line
            numbers += [int(found[0])] if found[0].isdigit() else []
        else:
            width = 0
    assert sorted(numbers) == [*range(1, len(spec.machine.rows) + 1)]


def test_pipes_and_marks_are_escaped() -> None:
    text = draw.markdown(TOY)
    assert "**refused**: asked before \\| already" in text
    assert "It moved \\| on to another phase." in text
    assert escape("a_b *c* <d> [e]\\") == "a\\_b \\*c\\* \\<d> \\[e]\\\\"
    assert escape("one\n  two") == "one two"


def test_timers_are_listed_with_length_and_source() -> None:
    assert (
        "| `patience` | 1.5 s | while busy and not held; paused while busy and held | `PatienceEnded` | Nothing arrived. | guessed |"
        in draw.markdown(TOY)
    )
    assert [length(Duration(ms, "x")) for ms in (100, 1000, 60_000, 1_500)] == ["100 ms", "1 s", "60 s", "1.5 s"]


def test_docstrings_and_comments_are_found() -> None:
    text = draw.markdown(TOY)
    assert "| `chunks` | 0 to 2; at first 0 | Chunks that arrived. |" in text
    assert "| The first one wins.<br>Asked \\| once. |" in text
    assert "### Asking" in text
    assert comments.rows(TOY)[0].section == "asking"
    assert [beside.comment for beside in comments.rows(TOY)].count("") == len(TOY.rows) - 1


def test_a_machine_that_no_module_keeps_has_no_comments() -> None:
    lone = TOY.variant("lone", drop=["Held/otherwise"])
    assert set(comments.rows(lone)) == {comments.Beside()}
    assert draw.markdown(lone).startswith("# lone\n")


def test_rows_are_written_in_the_words_of_the_table() -> None:
    (entry,) = [e for e in table.entries(TOY) if e.name == "Arrived/full"]
    assert entry.condition == "when full and event.chunk"
    assert entry.changes == (("held", "no"),)
    assert entry.effects == (("StopTimer(patience)", "busy and not held"), ("Report(chunks)", ""))
    assert entry.answer == "-> done"
    assert [e.condition for e in table.entries(TOY)[:2]] == ["at idle", "otherwise"]


# ── the page ──


class Page(HTMLParser):
    """What a page refers to, and whether its tags close in order."""

    VOID = frozenset({"meta", "br", "path", "rect", "circle"})

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.sources: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.ids += [v for k, v in values.items() if k == "id" and v]
        self.links += [v for k, v in values.items() if k == "href" and v]
        self.sources += [v for k, v in values.items() if k == "src" and v]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    chosen = [SPECS["download"], SPECS["reply_slot"]]
    return {spec.machine.name: draw.outputs(explore(spec), Path("nowhere"))[f"{spec.machine.name}.html"] for spec in chosen}


@pytest.mark.parametrize("name", ["download", "reply_slot"])
def test_the_page_needs_nothing_else_and_its_links_lead_somewhere(pages: dict[str, str], name: str) -> None:
    page = Page()
    page.feed(pages[name])
    page.close()
    assert page.open == []
    assert page.sources == []
    assert all(link.startswith("#") for link in page.links)
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert {f"row-{n}" for n in range(1, len(SPECS[name].machine.rows) + 1)} <= set(page.ids)
    assert pages[name].count("<svg") >= 1
    assert "@import" not in pages[name]


def test_the_page_escapes_what_it_shows(pages: dict[str, str]) -> None:
    assert "<b>refused</b>: asked before | already" in pages["download"]
    assert "chunks &gt;= 2" in pages["download"]


# ── formulas in words ──


def test_a_choice_of_values_is_shown_as_membership() -> None:
    now, moved = draw_toys.now, draw_toys.moved
    waits, fetches = draw_toys.WAITING, draw_toys.FETCHING
    assert show(one_of(now.phase, waits, fetches)) == "phase in (waiting, fetching)"
    assert show(one_of(now.phase, waits, fetches) & now.held) == "phase in (waiting, fetching) and held"
    assert show(one_of(now.phase, waits)) == "phase = waiting"
    assert show((now.phase == waits) | now.held) == "phase = waiting or held"
    assert show((now.phase == waits) | (moved.phase == waits)) == "phase = waiting or phase = waiting"
    assert show(one_of(now.held, True, False)) == "held or held = no"
    assert show(one_of(moved.phase, waits, fetches), names=lambda v: f"event.{v}") == "event.phase in (waiting, fetching)"
