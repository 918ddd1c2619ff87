"""Guides the sampled runs to where a machine goes: events that are taken where an instance is.

Events drawn blindly rarely name the generation, the call or the attempt that is on, and a long-lived machine then never leaves its first
states.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import cast

from turnproof.checkers.stateful.actions import START_MS
from turnproof.machines.kernel import Field, Kind, Taken, fields_of, token_names
from turnproof.specs.language import AnyMachine

TRIES = 6
"""Events of one class that are tried until one is taken."""
TOKENS = 2
"""Identities beside those of the state."""


def taken_event(machine: AnyMachine, state: object, seed: int) -> object | None:
    """Some event that ``machine`` takes in ``state``; None if none was found.

    Identities and counts of the state are tried more often than others.
    It only guides: what the event does is for the model to say.
    """
    rng, known = random.Random(seed), fields_of(type(state))
    here = {kind: [getattr(state, n) for n, f in known.items() if f.kind is kind] for kind in (Kind.TOKEN, Kind.COUNTER)}
    classes = list(machine.events)
    for cls in rng.sample(classes, len(classes)):
        for _ in range(TRIES):
            event = cls(**{name: rng.choice(_in_context(field, here)) for name, field in fields_of(cls).items()})
            if isinstance(machine.step(state, event), Taken):
                return cast(object, event)
    return None


def _in_context(field: Field, here: Mapping[Kind, Sequence[object]]) -> Sequence[object]:
    if field.kind is Kind.OPAQUE:
        return (0, START_MS + 1_000) if field.base is int else (field.base(),)
    domain = field.values(tokens=0, counter=1) if field.kind is not Kind.TOKEN else token_names(TOKENS)
    return (*domain, *here.get(field.kind, ()), *here.get(field.kind, ()))
