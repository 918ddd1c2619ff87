"""The plots of ``benchmarks/results``: PNG and SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.systems import Figure


def draw(figures: Sequence[Figure], directory: Path) -> list[Path]:
    """Wall time end to end as a model grows; and states a second on the largest model that each contestant finished."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "turnproof"
    return [*_growth(figures, directory), *_rates(figures, directory)]


def _growth(figures: Sequence[Figure], directory: Path) -> list[Path]:
    from matplotlib import pyplot

    kinds = [kind for kind in dict.fromkeys(f.kind for f in figures) if len({f.states for f in figures if f.kind == kind}) > 1]
    if not kinds:
        return []
    shown, axes = pyplot.subplots(1, len(kinds), figsize=(7 * len(kinds), 6), squeeze=False)
    for axis, kind in zip(axes[0], kinds, strict=True):
        for name in dict.fromkeys(f.contestant for f in figures if f.kind == kind):
            mine = [f for f in figures if (f.kind, f.contestant) == (kind, name)]
            axis.plot([f.states for f in mine], [f.whole for f in mine], "--" if "generated" in name else "-", marker="o", label=name)
        axis.set(xscale="log", yscale="log", xlabel="distinct states", ylabel="seconds, end to end with compilation", title=kind)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    return _saved(shown, directory / "systems_growth")


def _rates(figures: Sequence[Figure], directory: Path) -> list[Path]:
    from matplotlib import pyplot

    kinds = list(dict.fromkeys(f.kind for f in figures))
    shown, axes = pyplot.subplots(1, len(kinds), figsize=(6 * len(kinds), 5), squeeze=False)
    for axis, kind in zip(axes[0], kinds, strict=True):
        largest = {f.contestant: f for f in figures if f.kind == kind}
        names = list(reversed(largest))
        axis.barh(names, [largest[name].rate for name in names])
        for n, name in enumerate(names):
            size = largest[name].subject.partition(", ")[2] or largest[name].subject
            axis.text(largest[name].rate, n, f" {largest[name].rate:,.0f} ({size})", va="center", fontsize=7)
        axis.set(xscale="log", xlabel="states a second, search alone", title=kind)
        axis.set_xlim(right=30 * max(f.rate for f in largest.values()))
    return _saved(shown, directory / "systems_rate")


def _saved(shown: object, path: Path) -> list[Path]:
    from matplotlib import pyplot
    from matplotlib.figure import Figure as Picture

    assert isinstance(shown, Picture)
    shown.tight_layout()
    paths = [path.with_suffix(suffix) for suffix in (".png", ".svg")]
    for one in paths:
        shown.savefig(one, dpi=120, metadata={"Date": None} if one.suffix == ".svg" else {"Software": None})
    pyplot.close(shown)
    return paths
