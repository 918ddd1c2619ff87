"""The load benchmark still measures what it says: both contestants live through everything, on virtual time and few at a time."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from turnproof.shell import VirtualClock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import load, load_contestants


@pytest.fixture(scope="module")
def figures() -> list[load.Figures]:
    made = []
    for name in ("runner", "by hand"):
        clock = VirtualClock()
        try:
            made.append(clock.run(load.live(name, load_contestants.CONTESTANTS[name], 600, 100)))
        finally:
            clock.close()
    return made


def test_both_contestants_release_everything_and_leave_nothing(figures: list[load.Figures]) -> None:
    assert [(f.contestant, f.operations, f.left) for f in figures] == [("runner", 600, 0), ("by hand", 600, 0)]
    assert all(f.delay_max_ms < 1 for f in figures), "on virtual time nothing is late"


def test_what_is_over_the_bar_is_said(figures: list[load.Figures]) -> None:
    same: dict[str, Any] = dict.fromkeys(load.COSTS, 10.0)
    ours, hand = (attrs.evolve(f, **same) for f in figures)
    assert load.over_the_bar([ours, hand]) == []
    assert load.over_the_bar([attrs.evolve(ours, storm_us=20.1), hand]) == ["storm_us is 2.01 times the hand-written one, the bar is 2.0"]
    assert "2.01" in load.table([attrs.evolve(ours, storm_us=20.1), hand])
