"""Classes that a machine forgot, and harms that a specification did: what nobody else would miss."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import attrs
import pytest
from cli_toys import machine_report, run_report

from turnproof.checkers.report import json_report, machine_text
from turnproof.checkers.report.forgotten import forgotten
from turnproof.checkers.report.model import AnySpec
from turnproof.machines.kernel import TableError
from turnproof.specs import catalog
from turnproof.specs.harms import HARMS, with_harms
from turnproof.specs.language import Always, EventuallyAlways, LeadsTo, Order, Sometimes, Spec, Step, taken

PROMISES = (Always, Step, LeadsTo, EventuallyAlways, Order)
"""What can be broken by a run."""

LAMP = """\
from enum import Enum
from typing import get_args
from attrs import frozen
from turnproof.machines.kernel import Machine, Row, symbol

class Phase(Enum):
    OFF = "off"
    ON = "on"

@frozen
class Lamp:
    phase: Phase = Phase.OFF

@frozen
class Pressed: ...

@frozen
class Pulled: ...

@frozen
class Shines: ...

Event = Pressed | Pulled
Effect = Shines

ROWS = (
    Row(Pressed, at=Phase.OFF, to=Phase.ON, emit=(Shines(),)),
    Row(Pressed, ignore="it is on"),
    Row(Pulled, ignore="it has no string"),
)

MACHINE = Machine(name="lamp", initial=Lamp(), now=symbol(Lamp), events=get_args(Event), effects=(Effect,), rows=ROWS)
"""

FORGOTTEN = {
    "nothing": ("", "", []),
    "an event": (
        "class Shines: ...\n",
        "class Shines: ...\n\n@frozen\nclass Pushed: ...\n",
        ["Pushed (lamp.py:23) is in no union of lamp (lamp.py:35): add it to the events or the effects, or take it away"],
    ),
    "to list what is in the alias": (
        "    Row(Pulled, ignore",
        "    #",
        ["Pulled (lamp.py:17) is in Event, and not among the events= of lamp (lamp.py:32)"],
    ),
    "what is in the list": (
        "Event = Pressed | Pulled",
        "Event = Pressed",
        ["Pulled (lamp.py:17) is among the events= of lamp (lamp.py:32), and not in Event"],
    ),
    "to emit": (
        ", emit=(Shines(),)",
        "",
        ["Shines is an effect of lamp (lamp.py:32), and no row emits it: emit it, or take it out of the union"],
    ),
}


@pytest.mark.parametrize("what", FORGOTTEN)
def test_what_a_machine_forgot_is_named_with_its_place(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after, said = FORGOTTEN[what]
    text = LAMP.replace(before, after, 1) if before else LAMP
    events = {"to list what is in the alias": "(Pressed,)", "what is in the list": "(Pressed, Pulled)"}.get(what, "get_args(Event)")
    name = f"lamp_{abs(hash(what))}"
    file = tmp_path / "lamp.py"
    file.write_text(text.replace("get_args(Event)", events, 1))
    monkeypatch.chdir(tmp_path)
    made = importlib.util.spec_from_file_location(name, file)
    assert made is not None
    assert made.loader is not None
    module = importlib.util.module_from_spec(made)
    monkeypatch.setitem(sys.modules, name, module)
    made.loader.exec_module(module)
    burns = Sometimes("it burns", module.MACHINE.now.phase == module.Phase.ON, requirements="R-LAMP-1")
    spec = Spec(machine=module.MACHINE, requirements={"R-LAMP-1": "It burns."}, properties=(burns,))
    assert list(forgotten(spec)) == said
    report = attrs.evolve(machine_report(), spec=spec)
    assert ("forgotten? " in machine_text(report)) == bool(said)
    assert (said[0] in json_report(run_report(report))) if said else True


def test_no_machine_here_forgot_anything() -> None:
    for spec in catalog.specifications().values():
        assert isinstance(spec, Spec)
        assert forgotten(spec) == (), spec.machine.name


def every() -> list[AnySpec]:
    return [*catalog.specifications().values(), *catalog.systems().values()]


def test_every_promise_says_who_is_hurt_where_it_is_broken() -> None:
    for spec in every():
        silent = [p.name for p in spec.properties if isinstance(p, PROMISES) and not p.harm.strip()]
        assert not silent, f"write harm=, or a sentence in specs/harms.py: {silent}"


def test_a_requirement_without_a_harm_is_a_mistake() -> None:
    lit = Step("it burns", taken(), requirements="R-LAMP-1")
    with pytest.raises(TableError, match=r"property 'it burns': write harm=, or a sentence for R-LAMP-1 in specs/harms\.py"):
        with_harms([lit])
    (told, own, reached) = with_harms(
        [
            attrs.evolve(lit, requirements=("R-LAMP-1", "R-ATT-12")),
            attrs.evolve(lit, harm="it is dark"),
            Sometimes("x", taken(), requirements="R-LAMP-1"),
        ]
    )
    assert [told.harm, own.harm, reached.harm] == [HARMS["R-ATT-12"], "it is dark", ""]


def test_no_harm_is_about_a_requirement_that_is_not_there() -> None:
    assert set(HARMS) <= {requirement for spec in every() for requirement in spec.requirements}
