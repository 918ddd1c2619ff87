"""``python -m benchmarks [step|load|replay|systems]``: measure everything or one, and print; ``--save`` keeps it in ``results``."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

import attrs

from benchmarks import contestants, step_speed

RESULTS = Path(__file__).parent / "results"
BENCHMARKS = ("step", "load", "replay", "systems")


def step_tables() -> dict[str, object]:
    """The cost of a step, as a table on standard output and as data."""
    figures = step_speed.run()
    ratios = {}
    print(f"{'machine':<14} {'contestant':<22} {'ns/event':>10} {'x step':>8}")
    base = {f.machine: f.nanoseconds for f in figures if f.contestant == "turnproof step"}
    for f in figures:
        ratio = f.nanoseconds / base[f.machine]
        ratios[f"{f.machine}: {f.contestant}"] = round(ratio, 2)
        print(f"{f.machine:<14} {f.contestant:<22} {f.nanoseconds:>10.0f} {ratio:>8.1f}")
    print(f"\n{'machine':<14} {'memory':<50} {'bytes/instance':>14}")
    memory = step_speed.memory()
    for machine, what, size in memory:
        print(f"{machine:<14} {what:<50} {size:>14.0f}")
    return {"ns_per_event": {f"{f.machine}: {f.contestant}": round(f.nanoseconds, 1) for f in figures}, "times_step": ratios,
            "bytes_per_instance": {f"{m}: {w}": round(b) for m, w, b in memory}}  # fmt: skip


def step(save: bool) -> None:
    """What a step costs."""
    data = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "command": "python -m benchmarks step --save",
        "step": step_tables(),
    }
    if save:
        (RESULTS / "step.json").write_text(json.dumps(data, indent=2) + "\n")


def systems(quick: bool, save: bool, only: str, patience: float) -> None:
    """What a whole search costs. Each kind of model is one run; what it shows is written as soon as it is over."""
    from benchmarks import subjects
    from benchmarks import systems as contest

    for kind in dict.fromkeys(s.kind for s in subjects.subjects(quick)):
        if only not in kind:
            continue
        load = os.getloadavg()[0]
        print(contest.HEADING)
        figures, left_out = contest.measure(kind, quick, patience=patience)
        print("\n".join(["", *contest.ratios(figures), *(f"LEFT OUT: {sentence}" for sentence in left_out), ""]))
        if save:
            facts = {"load_before": round(load, 2), "load_after": round(os.getloadavg()[0], 2), "patience": patience, "left_out": left_out}
            _keep(kind, {**facts, "figures": [{**attrs.asdict(f), "rate": round(f.rate)} for f in figures]})


def _keep(kind: str, run: dict[str, Any]) -> None:
    """Put one kind's figures beside those of the others, and write table and plots again."""
    from benchmarks import plots
    from benchmarks import systems as contest

    file = RESULTS / "systems.json"
    data: dict[str, Any] = json.loads(file.read_text()) if file.is_file() else {"runs": {}}
    command = "python -m benchmarks systems --save"
    facts = {"command": command, "cores": os.cpu_count(), "processor": contest.processor(), **contest.versions()}
    data = {**facts, "runs": {**data["runs"], kind: run}}
    file.write_text(json.dumps(data, indent=1) + "\n")
    figures = [contest.Figure(**{k: v for k, v in f.items() if k != "rate"}) for r in data["runs"].values() for f in r["figures"]]
    lines = [*(f"{name}: {value}" for name, value in facts.items())]
    for name, one in data["runs"].items():
        lines += ["", f"{name} (one run; load of the machine {one['load_before']} before, {one['load_after']} after)", contest.HEADING]
        lines += [contest.line(f) for f in figures if f.kind == name]
        lines += ["", *contest.ratios(f for f in figures if f.kind == name), *(f"LEFT OUT: {sentence}" for sentence in one["left_out"])]
    (RESULTS / "systems.txt").write_text("\n".join(lines) + "\n")
    for path in plots.draw(figures, RESULTS):
        print(f"wrote {path.name}")


def load(quick: bool, save: bool) -> list[str]:
    """What a process full of live replies costs, beside the same by hand. Returns what is over its bar."""
    from benchmarks import load as contest

    both = contest.run(quick)
    over = contest.over_the_bar(both)
    text = "\n".join([contest.table(both), *(f"OVER: {sentence}" for sentence in over)])
    print(text)
    if save:
        data = {**contest.facts(), "figures": [attrs.asdict(figures) for figures in both]}
        (RESULTS / "load.json").write_text(json.dumps(data, indent=1) + "\n")
        (RESULTS / "load.txt").write_text("\n".join(f"{name}: {value}" for name, value in contest.facts().items()) + f"\n\n{text}\n")
    return over


def replay(quick: bool, save: bool) -> list[str]:
    """What a replay and a monitor cost, beside a bare decode loop. Returns what is over its bar."""
    from benchmarks import replay_speed as contest

    figures = contest.measure(100_000 if quick else contest.LINES)
    over = contest.over_the_bar(figures)
    text = "\n".join([contest.table(figures), *(f"OVER: {sentence}" for sentence in over)])
    print(text)
    if save:
        (RESULTS / "replay.json").write_text(json.dumps(attrs.asdict(figures), indent=1) + "\n")
        (RESULTS / "replay.txt").write_text(f"command: python -m benchmarks replay\n\n{text}\n")
    return over


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmarks; the figures of one run stand side by side because the machine is noisy."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure beside other programs, in one run.")
    parser.add_argument("what", nargs="*", metavar="|".join(BENCHMARKS), help="what is measured; left out: everything")
    parser.add_argument("--quick", action="store_true", help="small systems, operations and logs only")
    parser.add_argument("--save", action="store_true", help="write tables and plots to benchmarks/results/, which is under version control")
    parser.add_argument("--only", default="", metavar="KIND", help="systems whose kind contains this: two-phase, philosophers, project")
    parser.add_argument("--patience", type=float, default=60.0, metavar="SECONDS", help="of processor time; who takes more is asked once")
    parser.add_argument("--limit", type=int, default=400, metavar="SECONDS", help="of processor time; who takes more is ended")
    given = parser.parse_args(arguments)
    for name in given.what:
        if name not in BENCHMARKS:
            parser.error(f"no benchmark {name!r}; there are: {', '.join(BENCHMARKS)}")
    if given.save and given.quick:
        parser.error("--quick measures too little to be kept; leave --save out")
    over: list[str] = []
    if not given.what or "step" in given.what:
        step(given.save)
    if not given.what or "load" in given.what:
        over += load(given.quick, given.save)
    if not given.what or "replay" in given.what:
        over += replay(given.quick, given.save)
    if not given.what or "systems" in given.what:
        contestants.LIMIT = given.limit
        systems(given.quick, given.save, given.only, given.patience)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
