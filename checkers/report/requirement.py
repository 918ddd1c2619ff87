"""One requirement in words: its sentence, what checks it, who is hurt when it breaks, and which historic variants broke it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from turnproof.checkers.report.model import AnySpec
from turnproof.specs.language import Variant

WIDTH = 118
"""Columns of a line of prose."""


def sentence_of(spec: AnySpec, rid: str, indent: str = "") -> str:
    """``R-REPLY-3: Released is for ever, and is entered once.``, wrapped; every line begins with ``indent``."""
    return textwrap.fill(f"{rid}: {spec.requirements[rid]}", WIDTH, initial_indent=indent, subsequent_indent=indent + "  ")


def explain_requirement(spec: AnySpec, rid: str) -> str:
    """Everything the specification says of one of its requirements. Raises ``KeyError`` if it has none of that id."""
    return "\n".join((sentence_of(spec, rid), "", *_checks(spec, rid), *_variants(spec, rid)))


def _checks(spec: AnySpec, rid: str) -> Iterator[str]:
    for prop in spec.properties:
        if rid in prop.requirements:
            yield f"  {type(prop).__name__}: {prop.name}"
            if prop.harm:
                yield textwrap.fill(f"harm: {prop.harm}", WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 8)
    if rid in getattr(spec, "total", ()):
        yield "  totality: a row for every state and event that a run can reach"
    for timer, ids in getattr(spec, "discipline", {}).items():
        if rid in ids:
            yield f"  timer discipline of {timer.name}: armed where the state says so, never twice, nothing left armed"
    if rid in spec.tests:
        yield f"  test: {spec.tests[rid]}"
    if rid in spec.elsewhere:
        yield f"  checked at {spec.elsewhere[rid]}: turnproof explain {spec.elsewhere[rid]} {rid}"


def _variants(spec: AnySpec, rid: str) -> Iterator[str]:
    mine = [prop.name for prop in spec.properties if rid in prop.requirements]
    broke = [(variant, [name for name in mine if name in variant.violates]) for variant in spec.variants]
    if any(names for _, names in broke):
        yield ""
        yield "  designs that break it"
    for variant, names in broke:
        if names:
            yield f"    {variant.machine.name if isinstance(variant, Variant) else variant.system.name}"
            yield textwrap.fill(variant.about, WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)
            yield from (f"      shortest counterexample {variant.violates[name]}: {name}" for name in names)


__all__ = ["explain_requirement", "sentence_of"]
