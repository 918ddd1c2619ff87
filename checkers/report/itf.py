"""Counterexamples in Apalache's Informal Trace Format, which Quint and the ITF viewers of TLA+ read: one file each.

Format: https://apalache-mc.org/docs/adr/015adr-trace.html
"""

from __future__ import annotations

import json

from turnproof.checkers.report.model import MachineReport


def itf_traces(report: MachineReport) -> dict[str, str]:
    """File name -> ITF text, one for each counterexample of the report and each other route to it."""
    from turnproof.checkers.story import render_itf

    stories = report.counterexamples(every_route=True)
    texts = (json.dumps(render_itf(story), indent=1, ensure_ascii=False) + "\n" for story in stories)
    return {f"{report.name}.{number}.itf.json": text for number, text in enumerate(texts, 1)}


__all__ = ["itf_traces"]
