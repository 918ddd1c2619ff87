"""Events that no property of a machine names: what they do is judged only by what holds of every step.

A remark, and no check: an invariant may say all there is to say of an event. But an event that was added yesterday and that nothing
names is often one whose properties were forgotten. Of a system nothing is remarked: its machines have specifications of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import attrs

from turnproof.checkers.report.model import AnySpec
from turnproof.machines.kernel import Formula, variables
from turnproof.specs.language import Spec


def unnamed_events(spec: AnySpec) -> tuple[str, ...]:
    """The names of those events, in the order of the machine."""
    if not isinstance(spec, Spec):
        return ()
    named = {v.owner for node in _formulas((spec.properties, spec.histories)) for v in variables(node)}
    return tuple(event.__name__ for event in spec.machine.events if event not in named)


def unnamed_text(spec: AnySpec) -> str:
    """What it means that there are such events, and what to do; empty if there are none."""
    names = unnamed_events(spec)
    if not names:
        return ""
    which, promise = (names[0], "it promises") if len(names) == 1 else (", ".join(names), "one of them promises")
    return (
        f"no property names {which}: only what holds of every state and step judges {'it' if len(names) == 1 else 'them'}. That is no "
        f"failure; if {promise} more, add a Step(...) with on({names[0]})"
    )


def _formulas(thing: object) -> Iterator[object]:
    """Every formula in properties and history variables, whatever field it stands in."""
    if isinstance(thing, Formula):
        yield thing
    elif isinstance(thing, tuple):
        for one in thing:
            yield from _formulas(one)
    elif attrs.has(type(thing)) and not isinstance(thing, type):
        for field in attrs.fields(cast(Any, type(thing))):
            yield from _formulas(getattr(thing, field.name))


__all__ = ["unnamed_events", "unnamed_text"]
