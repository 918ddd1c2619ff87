"""What a walk is asked on behalf of a specification: each property, and whether it would mean anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from turnproof.checkers.network.walk import Over, Question
from turnproof.machines.kernel import Formula, conjuncts, formula, not_, variables
from turnproof.specs.language import Always, LeadsTo, Property, Said, Sometimes, Step
from turnproof.specs.system import NoDeadlock, Within
from turnproof.specs.system_words import Received, acted, reads_step

BROKEN, REACHED, ANTECEDENT = "broken", "reached", "antecedent"
"""First half of a question's key; the second is the property's sentence, the third numbers them."""


def questions(properties: Iterable[Property]) -> tuple[Question, ...]:
    """Every question about ``properties``. Liveness is decided on the graph; here only whether its beginning is ever reached."""
    return tuple(q for prop in properties for q in _about(prop))


def _about(prop: Property) -> Iterator[Question]:
    if isinstance(prop, Always | Step):
        over = Over.STATE if isinstance(prop, Always) else Over.STEP
        yield Question((BROKEN, prop.name, 0), _negated(prop.holds), over)
        for n, antecedent in enumerate(antecedents(prop)):
            yield Question((ANTECEDENT, prop.name, n), antecedent, over)
    elif isinstance(prop, Sometimes):
        holds = formula(prop.holds, prop.name)
        yield Question((REACHED, prop.name, 0), holds, Over.STEP if reads_step(holds) else Over.STATE)
    elif isinstance(prop, LeadsTo | Within):
        first = formula(prop.first, prop.name)
        yield Question((ANTECEDENT, prop.name, 0), first, Over.STEP if reads_step(first) else Over.STATE)
    elif isinstance(prop, NoDeadlock):
        yield Question((BROKEN, prop.name, 0), TRUE if prop.unless is None else _negated(prop.unless), Over.STUCK)


TRUE = Formula("not", (False,))
"""Holds everywhere."""


def _negated(holds: bool) -> Formula:
    return formula(not_(holds), "a property")


def antecedents(prop: Always | Step) -> tuple[Formula, ...]:
    """What must be reached for a property to say anything: the antecedents of the implications it is a conjunction of."""
    parts = (bare(part) for part in conjuncts(bare(formula(prop.holds, prop.name))))
    return tuple(cast(Formula, part.args[0]) for part in parts if part.op == "implies")


def bare(node: Formula) -> Formula:
    """The formula without the names put on it."""
    while node.op == "named":
        node = cast(Formula, node.args[1])
    return node


# ── promises about the future ──

ACTED = formula(acted() >= 1, "acted")
"""The step has an effect."""


def stutter_serves(taken: Formula) -> bool:
    """Whether a step that changes nothing and has no effect can serve an assumption: if that asks for an event to be ignored or refused."""
    return any(isinstance(v, Received) and v.said in (Said.IGNORED, Said.REFUSED) for v in variables(taken))
