"""Parallel edges made one. Forty arrows with the same text are a knot; one arrow from "every live phase" is a sentence.

An *item* is what an edge carries: an event in an overview, a row in a full picture. Three mergers, in this order:

1. an item that leads from three or more live places to one place comes from a hub that stands for those places (a destination
   among them: from the others);
2. items with the same source and destination share one label;
3. labels with the same source and the same items share one label that points to several destinations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import attrs

from turnproof.checkers.draw.reach import Place

MANY = 3
"""From this many sources on, an item comes from a hub."""


@attrs.frozen
class Bundle:
    """One label with what it comes from and what it leads to. Several ``sources``: a hub that stands for them."""

    sources: tuple[Place, ...]
    items: tuple[int, ...]
    dests: tuple[Place, ...]


def bundles(edges: Iterable[tuple[Place, int, Place]], live: Sequence[Place]) -> tuple[Bundle, ...]:
    """Edges (source, item, destination), none of which stays where it is, as few labels as the mergers allow.

    ``live`` are the places of phases that can be left.
    """
    sources: defaultdict[tuple[int, Place], set[Place]] = defaultdict(set)
    anywhere: defaultdict[int, set[Place]] = defaultdict(set)
    for source, item, dest in edges:
        sources[item, dest].add(source)
        anywhere[item].add(source)
    together: defaultdict[tuple[tuple[Place, ...], Place], set[int]] = defaultdict(set)
    for (item, dest), found in sources.items():
        for key in _groups(found & set(live), found - set(live), anywhere[item] & set(live), dest):
            together[key, dest].add(item)
    spread: defaultdict[tuple[tuple[Place, ...], tuple[int, ...]], list[Place]] = defaultdict(list)
    for (key, dest), items in together.items():
        spread[key, tuple(sorted(items))].append(dest)
    made = [Bundle(key, items, tuple(sorted(dests, key=_rank))) for (key, items), dests in spread.items()]
    return tuple(sorted(made, key=lambda b: ([_rank(p) for p in b.sources], [_rank(p) for p in b.dests], b.items)))


def _groups(inside: set[Place], alone: set[Place], anywhere: set[Place], dest: Place) -> list[tuple[Place, ...]]:
    """The sources as a hub where they are many, and one by one where they are few. A terminal place never hides in a hub.

    ``anywhere`` are the live places that the item leaves for any destination: if the only one missing here is the destination
    itself, the hub is the same as for the others.
    """
    if inside >= anywhere - {dest}:
        inside = anywhere
    if len(inside) < MANY:
        inside, alone = set(), (inside - {dest}) | alone
    return [*([tuple(sorted(inside, key=_rank))] if inside else []), *((place,) for place in sorted(alone, key=_rank))]


def _rank(place: Place) -> tuple[int, bool]:
    return [*type(place.phase)].index(place.phase), place.released
