"""``python -m benchmarks``: measure everything, print tables, write them to ``benchmarks/results/``."""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path

from benchmarks import step_speed

RESULTS = Path(__file__).parent / "results"


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


def main() -> int:
    """Run the benchmarks; the figures of one run stand side by side because the machine is noisy."""
    RESULTS.mkdir(exist_ok=True)
    data = {"python": platform.python_version(), "machine": platform.machine(), "command": "python -m benchmarks", "step": step_tables()}
    (RESULTS / "step.json").write_text(json.dumps(data, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
