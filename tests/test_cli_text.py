"""The report as a person reads it."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree as ET

import attrs
import pytest
from cli_toys import HOLDING, PROVED, RUNS, SPEC, STORY, VIOLATED, Locked, NoteLeft, Slammed, machine_report, run_report, verdict
from systems import CALL_SPEC

from turnproof.checkers.report import Paint, json_report, junit_report, machine_text, summary_text
from turnproof.checkers.report.model import NO_VARIANT
from turnproof.checkers.report.unnamed import unnamed_events, unnamed_text
from turnproof.checkers.story import held, render_text
from turnproof.checkers.verdict import Engine, Outcome
from turnproof.machines.kernel import implies
from turnproof.specs.language import Step, on, taken


def test_the_text_goes_from_requirement_to_property_to_verdict() -> None:
    lines = machine_text(machine_report(*HOLDING, PROVED)).splitlines()
    assert lines[0] == "front_door"
    assert lines[1] == "  8 rows, 4 events; 7 states, 70 steps (20 taken), depth 3; 2 tokens besides nobody, counters to 2"
    text = "\n".join(lines)
    assert re.search(r"^  R-DOOR-1     a locked door refuses to open +holds  explicit exhaustive, symbolic proved$", text, re.MULTILINE)
    assert re.search(r"^               an open door has an owner +holds  explicit exhaustive$", text, re.MULTILINE)
    assert re.search(r"^  R-DOOR-2     an open door has an owner +holds ", text, re.MULTILINE)
    assert re.search(r"^  R-DOOR-3     test tests/cli_toys.py::verdict +its verdict is pytest's$", text, re.MULTILINE)
    assert "    exhaustive (7 states; 2 tokens)\n    proved (any length; re-checked by z3 and cvc5)" in text


def named(event: type) -> Step:
    return Step(f"{event.__name__} is answered", implies(on(event), taken()), requirements="R-DOOR-1")


def test_events_that_no_property_names_are_remarked() -> None:
    report = RUNS["holds"].machines[0]
    text = " ".join(machine_text(report).split())
    assert " no property names Locked, NoteLeft, Slammed: only what holds of every state and step judges them. That is no failure; " in text
    assert "; if one of them promises more, add a Step(...) with on(Locked) " in text
    assert unnamed_text(attrs.evolve(SPEC, properties=(*SPEC.properties, *(named(e) for e in (Locked, NoteLeft))))).startswith(
        "no property names Slammed: only what holds of every state and step judges it. "
    )
    about = Step("a slam is heard", implies(on(Slammed), taken()), requirements="R-DOOR-1")
    spec = attrs.evolve(SPEC, properties=(*SPEC.properties, about))
    assert unnamed_events(spec) == ("Locked", "NoteLeft")
    assert unnamed_events(CALL_SPEC) == (), "the machines of a system have specifications of their own"
    (machine,) = json.loads(json_report(RUNS["holds"]))["machines"]
    assert machine["unnamed_events"] == ["Locked", "NoteLeft", "Slammed"]


def test_long_lines_are_broken_and_what_their_parts_share_is_said_once() -> None:
    fair = "exhaustive (7 states; " + "; ".join(f"weak fairness: door {n} moves" for n in range(30)) + ")"
    many = "at most 5 s (" + "; ".join(f"by {n} s: door {n} moves" for n in range(30)) + ")"
    report = machine_report(verdict("a door opens", how=fair), verdict("an open door has an owner", how=many))
    text = machine_text(report)
    assert "(7 states; weak fairness: door 0 moves, door 1 moves, door 2 moves, " in text
    assert "by 11 s: door 11 moves; and 18 more, which --verbose and --json tell)" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 140
    whole = " ".join(machine_text(report, verbose=True).split())
    assert fair in whole
    assert many in whole
    assert [v["how"] for v in json.loads(json_report(run_report(report)))["machines"][0]["verdicts"]] == [fair, many]


def test_the_last_line_names_what_was_left_open_and_not_what_had_nothing_to_do() -> None:
    run = run_report(machine_report(*HOLDING, not_run={"symbolic": "--quick", "variants": NO_VARIANT}))
    assert summary_text(run).endswith("; not run: symbolic")
    assert "not run (--quick): symbolic" in machine_text(run.machines[0])


def test_variants_stand_apart_and_never_speak_for_a_requirement() -> None:
    fails = verdict("fails as it should: a door opens", requirements=("R-DOOR-2",), how="shortest counterexample, 1 event", story=STORY)
    run = run_report(
        machine_report(attrs.evolve(fails, machine="barn_door"), attrs.evolve(fails, machine="barn_door", outcome=Outcome.VIOLATED))
    )
    text = machine_text(run.machines[0])
    assert "variants, which must fail\n  barn_door  fails as it should: a door opens  holds" in text
    assert "VIOLATED barn_door: fails as it should: a door opens  [R-DOOR-2]" in text
    assert text.count("not checked in this run") == 4
    assert [r["outcome"] for r in json.loads(json_report(run))["machines"][0]["requirements"]] == [None, None, None]
    assert {case.attrib["classname"] for case in ET.fromstring(junit_report(run)).iter("testcase")} == {"barn_door.explicit"}


def test_a_failure_is_told_with_its_harm_its_story_and_how_to_play_it() -> None:
    text = machine_text(RUNS["violated"].machines[0])
    assert "VIOLATED an open door has an owner  [R-DOOR-1, R-DOOR-2]" in text
    assert "nobody opened it" in text
    assert "environment: Opened(by=none, hand=left)" in text
    assert "play it: turnproof step front_door 'Opened(by=none, hand=left)'" in text
    assert "and by 1 other route; --verbose tells them" in text
    assert "UNDETERMINED a door opens" in text
    assert "environment: Slammed" not in text
    assert "environment: Slammed" in machine_text(RUNS["violated"].machines[0], verbose=True)


def test_a_story_begins_with_what_is_there_and_says_how_much_is_not() -> None:
    assert render_text(STORY).startswith("front_door begins: phase=closed\n"), "what is nobody's is left out only where it is much"
    start = (("phase", "closed"), ("owner", "none"), ("guest", "none"), ("turns", 0), ("hot", False))
    assert render_text(attrs.evolve(STORY, start=start)).startswith("front_door begins: phase=closed, turns=0, hot=no; 2 others none\n")
    bare = attrs.evolve(STORY, start=(("owner", "none"), ("guest", "none")), initial="owner=none, guest=none")
    assert render_text(bare).startswith("front_door begins: owner=none, guest=none\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a.Sent(what=end, item=none) -> b <- Sent(item=none, what=end), taken", "a.Sent(what=end) -> b <- Sent(what=end), taken"),
        ("[Sent(item=none, what=end), Sent(item=a, what=go)]", "[Sent(what=end), Sent(item=a, what=go)]"),
        ("Rang(owner=none)", "Rang(owner=none)"),
        ("Rang(owner=none, guest=none)", "Rang(owner=none, guest=none)"),
        ('Noted(text="(a=none, b=1)", by=none)', 'Noted(text="(a=none, b=1)", by=none)'),
        ("none", "none"),
    ],
)  # fmt: skip
def test_an_effect_is_told_without_the_fields_that_hold_nothing(text: str, said: str) -> None:
    assert held(text) == said


def test_the_shortest_failures_are_told_and_the_others_named() -> None:
    runs = [attrs.evolve(STORY, steps=(*STORY.steps * n, attrs.evolve(STORY.steps[0], number=n + 1))) for n in range(8)]
    many = [verdict(f"check {n}", Outcome.VIOLATED, story=story) for n, story in enumerate(runs)]
    text = machine_text(machine_report(*reversed(many)))
    assert text.count("front_door begins:") == 5
    assert re.findall(r"by a run of (\d) steps; --verbose tells it", text) == ["6", "7", "8"]
    assert machine_text(machine_report(*many), verbose=True).count("front_door begins:") == 8


def test_one_run_that_breaks_several_sentences_is_told_once() -> None:
    many = [verdict(f"check {n}", Outcome.VIOLATED, story=STORY) for n in range(8)]
    text = machine_text(machine_report(*many))
    assert text.count("front_door begins:") == 1
    assert text.count("  by the run under: check 0") == 7


def test_what_differs_because_the_table_does_comes_last_and_in_one() -> None:
    files = [
        verdict(f"door-{n}.svg: the pictures are those of the table", Outcome.VIOLATED, Engine.DIAGRAM, detail=f"door-{n}.svg is stale")
        for n in "abc"
    ]
    text = machine_text(machine_report(*files, VIOLATED))
    assert text.index("VIOLATED an open door has an owner") < text.index("VIOLATED the pictures are those of the table")
    assert text.count("VIOLATED the pictures are those of the table") == 1
    assert all(f"door-{n}.svg is stale" in text for n in "abc")
    assert "3 files: the pictures are those of the table" in text


def test_many_checks_that_hold_are_counted_and_one_that_does_not_is_named() -> None:
    many = [verdict(f"row {n} is not shadowed", engine=Engine.TABLE, how="proved") for n in range(40)]
    bad = verdict("row 41 is not shadowed", Outcome.VIOLATED, engine=Engine.TABLE, how="refuted")
    text = machine_text(machine_report(*many, bad))
    assert "40 checks" in text
    assert "row 39" not in text
    assert "VIOLATED row 41 is not shadowed" in text
    assert "row 39 is not shadowed" in machine_text(machine_report(*many, bad), verbose=True)


def test_what_several_checks_say_at_length_is_said_once_below_them() -> None:
    far = "exhaustive (9 states; 3 tokens)"
    checks = [verdict(f"check {n}", engine=Engine.TABLE) for n in range(3)] + [verdict("check 3", engine=Engine.TABLE, how=far)]
    text = machine_text(machine_report(*checks))
    assert re.findall(r"^  table     check (\d) +holds  exhaustive$", text, re.MULTILINE) == ["0", "1", "2"]
    assert re.search(rf"^  table     check 3 +holds  {re.escape(far)}$", text, re.MULTILINE)
    assert text.count("exhaustive (7 states; 2 tokens)") == 1
    assert machine_text(machine_report(*checks), verbose=True).count("exhaustive (7 states; 2 tokens)") == 3


def test_a_requirement_nobody_checks_is_not_green() -> None:
    text = machine_text(machine_report(verdict("a door opens")))
    assert "an open door has an owner" in text
    assert text.count("not checked in this run") == 3


def test_colours_only_where_they_are_wanted() -> None:
    assert "\x1b[" not in machine_text(RUNS["holds"].machines[0]) + summary_text(RUNS["holds"])
    assert "\x1b[32mholds" in machine_text(RUNS["holds"].machines[0], Paint(True))
    assert "\x1b[1;31mVIOLATED" in summary_text(RUNS["violated"], Paint(True))
