"""A counterexample as text, as a pytest that runs as it is pasted, as a sequence diagram and as ITF."""

from __future__ import annotations

import json
import re
from typing import Any

import attrs
import pytest
import toys
from broken_gates import HELD, HOLEY_SPEC, LOOPING_SPEC, TRAPPED_SPEC, UNTIMED_SPEC, VARIANT_SPEC
from toys import GATE, GATE_SPEC

from turnproof.checkers.explicit import check, check_variants
from turnproof.checkers.graph import explore
from turnproof.checkers.judge import Judge
from turnproof.checkers.replay import Run
from turnproof.checkers.story import actor, expression, locate, render_itf, render_mermaid, render_pytest, render_text, slug, tell
from turnproof.checkers.verdict import Outcome, Story, Verdict
from turnproof.specs.language import Spec


def failures(spec: Spec) -> list[Verdict]:
    return [v for v in check(spec, explore(spec)) if v.outcome is Outcome.VIOLATED and v.story is not None]


def story_of(spec: Spec, check_name: str) -> Story:
    story = next(v.story for v in failures(spec) if v.check == check_name)
    assert story is not None
    return story


UNTIMED_STORY = story_of(UNTIMED_SPEC, "an open gate has its timer armed")
LOOP = story_of(LOOPING_SPEC, "a held gate is let go")


def test_the_text_tells_only_what_changed_and_ends_with_the_sentence() -> None:
    assert render_text(UNTIMED_STORY) == "\n".join(
        [
            "gate_untimed begins: phase=shut, closing=no, fare=0",
            "   1. passenger: CoinInserted(good=yes)  taken  [coin/enough]",
            "        phase: shut -> open",
            "        closing: no -> yes",
            "        fare: 0 -> 1",
            "        emits Unlock",
            "        emits StartTimer(timer=closing, not_before_ms=0)",
            "   2. guard: HoldRequested               taken  [hold]",
            "        phase: open -> held",
            "        closing: yes -> no",
            "        emits PauseTimer(timer=closing)",
            "   3. guard: HoldEnded                   taken  [let go]",
            "        phase: held -> open",
            "        emits ResumeTimer(timer=closing)",
            "broken: an open gate has its timer armed (G-1): the gate stays open",
        ]
    )


def test_a_loop_is_told_after_its_prefix() -> None:
    lines = render_text(LOOP).splitlines()
    turn = lines.index("  and then for ever:")
    assert lines[turn + 1].startswith(f"   {LOOP.loop_from}. ")
    assert LOOP.loop_from > 1


def test_actors() -> None:
    assert actor(GATE_SPEC, GATE, toys.ClosingExpired()) == "timer closing"
    assert actor(GATE_SPEC, GATE, toys.CoinInserted(True)) == "passenger"
    assert actor(GATE_SPEC, GATE, toys.BrokeDown()) == "environment"


def test_events_are_told_as_python() -> None:
    for event in GATE.all_events():
        assert eval(expression(event), vars(toys)) == event
    assert expression(toys.GateTimer.CLOSING) == "GateTimer.CLOSING"


# ── the pasteable test ──


def run_pasted(text: str) -> None:
    """What pytest would do with the pasted text."""
    space: dict[str, Any] = {}
    exec(compile(text, "<pasted>", "exec"), space)
    (test,) = (thing for name, thing in space.items() if name.startswith("test_"))
    test()


PASTED = {
    "safety": UNTIMED_SPEC,
    "a hole": HOLEY_SPEC,
    "for ever": LOOPING_SPEC,
    "an invariant": TRAPPED_SPEC,
}


@pytest.mark.parametrize("what", PASTED)
def test_the_pasted_test_fails_for_the_reason_told(what: str) -> None:
    found = failures(PASTED[what])
    assert found
    for verdict in found:
        for story in (verdict.story, *verdict.others):
            assert story is not None
            with pytest.raises(AssertionError) as caught:
                run_pasted(render_pytest(story))
            told = str(caught.value)
            assert told.startswith(("broken: ", "no row answers ", "timer CLOSING: ")), told


def test_the_pasted_test_passes_once_the_machine_is_mended() -> None:
    for what in PASTED:
        for verdict in failures(PASTED[what]):
            assert verdict.story is not None
            text = render_pytest(verdict.story)
            name = text.partition("run = Run(")[2].partition(")")[0]
            if name in ("UNTIMED_SPEC", "HOLEY_SPEC"):
                run_pasted(text.replace(name, "GATE_SPEC").replace("from broken_gates import GATE_SPEC\n", "from toys import GATE_SPEC\n"))


def test_the_text_of_the_pasted_test() -> None:
    text = render_pytest(UNTIMED_STORY)
    assert text.splitlines()[:3] == [
        "from broken_gates import UNTIMED_SPEC",
        "from toys import CoinInserted, HoldEnded, HoldRequested",
        "from turnproof.checkers.replay import Run",
    ]
    assert "def test_an_open_gate_has_its_timer_armed() -> None:" in text
    assert "    run.send(HoldEnded())  # 3. taken; phase held -> open; emits ResumeTimer(timer=closing)\n" in text
    assert text.endswith("    run.expect('an open gate has its timer armed')\n")


def test_the_pasted_test_of_a_variant_names_it() -> None:
    (verdict,) = check_variants(VARIANT_SPEC)
    assert verdict.story is not None
    assert "    run = Run(VARIANT_SPEC, machine=VARIANT_SPEC.variants[0].machine)\n" in render_pytest(verdict.story)
    with pytest.raises(AssertionError, match="broken: an open gate has its timer armed"):
        run_pasted(render_pytest(verdict.story))


def test_a_specification_that_stands_in_no_module_is_left_to_the_reader() -> None:
    local = attrs.evolve(UNTIMED_SPEC, tokens=1)
    story = story_of(local, "an open gate has its timer armed")
    assert story.module == ""
    assert "SPEC = ...  # the specification stands in no module: bind it here" in render_pytest(story)
    assert locate(local) is None
    assert locate(GATE_SPEC) == ("toys", "GATE_SPEC")


# ── diagram and trace ──


def test_the_sequence_diagram() -> None:
    lines = render_mermaid(LOOP).splitlines()
    assert lines[0] == "sequenceDiagram"
    assert {"    participant a0 as environment", "    participant m as gate", "    participant shell"} <= set(lines)
    turn, end = lines.index("    loop for ever"), lines.index("    end")
    assert all(line.startswith("        ") for line in lines[turn + 1 : end])
    assert "    m->>shell: Unlock" in lines
    assert lines[-1].endswith("broken: a held gate is let go (G-7): it #35;stands#59; open"), (
        "a number sign or semicolon would end the line"
    )
    assert "    a0-xm: HoldRequested (refused: the table has no row for this event in this state)" in render_mermaid(
        failures(HOLEY_SPEC)[0].story or LOOP
    )


def test_the_trace_in_itf() -> None:
    trace: Any = json.loads(json.dumps(render_itf(UNTIMED_STORY)))
    assert trace["vars"] == ["event", "phase", "closing", "fare"]
    assert [state["event"] for state in trace["states"]] == ["", "CoinInserted(good=yes)", "HoldRequested", "HoldEnded"]
    assert [state["#meta"]["index"] for state in trace["states"]] == [0, 1, 2, 3]
    assert trace["states"][1] == {
        "#meta": {"index": 1, "answer": "taken", "row": "coin/enough"},
        "event": "CoinInserted(good=yes)",
        "phase": "open",
        "closing": True,
        "fare": {"#bigint": "1"},
    }
    assert "loop" not in trace


def test_the_loop_of_a_trace_goes_on_where_the_cycle_does() -> None:
    trace: Any = render_itf(LOOP)
    last, then = trace["states"][-1], trace["states"][trace["loop"]]
    before = trace["states"][trace["loop"] - 1]
    assert {k: v for k, v in last.items() if k not in ("#meta", "event")} == {
        k: v for k, v in before.items() if k not in ("#meta", "event")
    }
    assert then["event"] == LOOP.steps[LOOP.loop_from - 1].event
    stopped = Judge(explore(LOOPING_SPEC)).violation(attrs.evolve(HELD, fairness=()))
    assert stopped is not None
    assert render_itf(stopped.stories[0])["loop"] == stopped.length


# ── runs ──


def test_a_run_says_what_it_breaks_and_what_it_does_not() -> None:
    run = Run(UNTIMED_SPEC)
    for event in (toys.CoinInserted(True), toys.HoldRequested()):
        run.send(event)
        run.expect("an open gate has its timer armed")
        run.expect_an_answer()
        run.expect_discipline(toys.GateTimer.CLOSING)
    run.send(toys.HoldEnded())
    with pytest.raises(AssertionError, match="timer CLOSING: the effects leave it armed, the state says off"):
        run.expect_discipline(toys.GateTimer.CLOSING)
    with pytest.raises(KeyError, match="no property is called 'x'; there are 'an open gate"):
        run.expect("x")
    with pytest.raises(TypeError, match="no run breaks 'somebody passes'"):
        run.expect("somebody passes")
    with pytest.raises(ValueError, match="say loop_from=, 1 to 4"):
        run.expect("an open gate shuts or breaks")


def test_a_story_of_a_run_that_breaks_nothing() -> None:
    story = tell(Run(GATE_SPEC), "nothing", "pass")
    assert render_text(story) == "gate begins: phase=shut, closing=no, fare=0\nbroken: nothing"
    run_pasted(render_pytest(story))
    assert render_mermaid(story).startswith("sequenceDiagram\n    participant a0 as environment\n")


def test_names_of_tests() -> None:
    assert slug("Released, for ever -- once!") == "released_for_ever_once"
    assert slug("…") == "counterexample"
    assert re.fullmatch(r"\w{1,80}", slug("word " * 40))
