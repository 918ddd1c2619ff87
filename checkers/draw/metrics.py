"""How wide a text is in Helvetica, so that a picture is the same on every machine, whatever fonts it has.

Graphviz would ask the fonts of the machine it runs on, and boxes would differ from one system to the next. The widths are those of
the Adobe Core 14 font metrics (Helvetica and Helvetica-Bold 002.000), which Arial, Liberation Sans and Nimbus Sans share. A viewer
that has none of them squeezes each text into the width given here (``textLength``), so nothing overflows.
"""

from __future__ import annotations

REGULAR = (
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556, 556, 556, 556,
    278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667,
    611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833,
    556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
)  # fmt: skip
BOLD = (
    278, 333, 474, 556, 556, 889, 722, 238, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556, 556, 556, 556,
    333, 333, 584, 584, 584, 611, 975, 722, 722, 722, 722, 667, 611, 778, 722, 278, 556, 722, 611, 833, 722, 778, 667, 778, 722, 667,
    611, 722, 667, 944, 667, 667, 611, 333, 278, 333, 584, 556, 333, 556, 611, 556, 611, 556, 333, 611, 611, 278, 278, 556, 278, 889,
    611, 611, 611, 611, 389, 556, 333, 611, 556, 778, 556, 556, 500, 389, 280, 389, 584,
)  # fmt: skip
"""Widths of the characters from space to tilde, in thousandths of the font size."""

OTHERS = {"…": 1000, "→": 1000, "·": 278, "–": 556, "×": 584}
WIDEST = 1015


def width(text: str, size: int, *, bold: bool = False) -> float:
    """The width of ``text`` in pixels at ``size`` pixels; a character that is not known counts as the widest."""
    table = BOLD if bold else REGULAR
    units = sum(table[ord(c) - 32] if " " <= c <= "~" else OTHERS.get(c, WIDEST) for c in text)
    return units * size / 1000
