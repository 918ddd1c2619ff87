"""The set of states an instance may be in, given the lines read so far.

Theory of operation
===================

A *node* is a set of items, an item a state of the machine with the history variables of its specification. A line *means* an event, and
says what is known of the answer and of the state after it. Following a line from a node steps every item and keeps those that agree: that
is an *edge* to the next node. An edge is worked out once, however many lines pass over it: what an edge costs (steps, promises, rows) is
paid per distinct situation, and a line costs two dictionary lookups.

Steps that nobody logged (timers, say) may be declared *unobserved*: a node is closed over them before a line is followed. Lines that are
known to be lost are any events, so many of them.

Identities. Real handles never recur, so in a node they go by canonical names (``\\x011``, ``\\x012``, ...), given by the instance to each
real one as it appears and taken back when no item mentions it any more. A machine only compares identities, so renaming changes
nothing. A handle that only an unlogged event can have brought is *unknown* (``\\x021``); a real one that appears later may be that one,
or another.

What a machine only carries (``Opaque``) is replaced by one representative: no guard reads it, so no answer depends on it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import attrs

from turnproof.checkers.predicates import Memory, Pasts, Predicates, StepTest
from turnproof.machines.kernel import NOBODY, Ignored, Kind, Row, Taken, fields_of
from turnproof.machines.kernel.domain import representative
from turnproof.machines.kernel.formula import variables
from turnproof.specs.language import Always, AnyMachine, Emitted, Property, Said, Spec, Step

Item = tuple[Any, Pasts]
"""A state, and the history variables."""

NAMED, UNKNOWN = "\x01", "\x02"
MOST = 4_000
"""Items of one node; beyond that nothing useful is known of the instance any more."""
COUNTERS = 2
"""Counters in the arguments of an unlogged event are tried up to here."""


class TooLittleKnown(Exception):
    """So much is unlogged that the instance may be in more than :data:`MOST` states."""


@attrs.frozen
class Meaning:
    """What a line says, in canonical names. ``said`` is None where the log has no answer."""

    event: object
    said: Said | None = None
    post: tuple[tuple[str, object], ...] = ()


@attrs.frozen
class Passage:
    """One step of one item."""

    before: Item
    event: object
    said: Said
    row: Row[Any, Any]
    effects: tuple[Any, ...]
    after: Item
    why: str = ""


class Node(dict[object, "Edge"]):
    """A set of items. As a dictionary it maps the text of a line to the edge it takes."""

    __slots__ = ("closed", "ended", "followed", "free", "free_quoted", "lost", "names", "possible", "unknown")

    def __init__(self, items: frozenset[Item], names: frozenset[str], ended: bool) -> None:
        super().__init__()
        self.possible, self.names, self.ended = items, names, ended
        self.unknown = any(name.startswith(UNKNOWN) for name in names)
        self.free = next(n for n in (f"{NAMED}{number}" for number in range(1, len(names) + 2)) if n not in names)
        """The first canonical name that no item mentions."""
        self.free_quoted = f'"{self.free}"'.encode()
        self.followed: dict[Meaning, Edge] = {}
        self.closed: frozenset[Item] | None = None
        self.lost: dict[int, Node] = {}


class Edge:
    """Where a line leads. ``fits`` is false where no item agrees with it.

    ``special``: somebody must look: it breaks a promise, ends the instance, or takes names back (``dead``).
    """

    __slots__ = ("broken", "dead", "ends", "fits", "node", "special")

    def __init__(self, node: Node, *, broken: tuple[int, ...] = (), dead: frozenset[str] = frozenset(), ends: bool = False) -> None:
        self.node, self.broken, self.dead, self.ends = node, broken, dead, ends
        self.fits = bool(node.possible)
        self.special = ends or bool(broken or dead)


class Beliefs:
    """The graph of nodes of one machine, grown as lines come.

    ``machine`` stands in for the specification's own (a variant). ``unobserved`` are event classes that happen without a line.
    ``promises``: whether the properties of the specification are looked at.
    """

    def __init__(self, spec: Spec, machine: AnyMachine | None = None, unobserved: Sequence[type] = (), *, promises: bool = True) -> None:
        self.spec, self.machine = spec, spec.machine if machine is None else machine
        self.unobserved = tuple(unobserved)
        self.memory = Memory(self.machine, spec)
        predicates = Predicates(self.machine, spec.histories)
        self.promises: tuple[Property, ...] = tuple(p for p in spec.properties if promises and isinstance(p, (Always, Step)))
        self._tests: list[tuple[bool, StepTest]] = [
            (isinstance(p, Step), predicates.test(p.holds)) for p in self.promises if isinstance(p, (Always, Step))
        ]
        self._answers: list[tuple[Property, StepTest]] = [
            (p, predicates.test(p.holds))
            for p in self.promises
            if isinstance(p, Step) and not any(isinstance(v, Emitted) or v.scope == "next" for v in variables(p.holds))
        ]
        """Promises about how an event is answered, whatever its effects and the state after it."""
        self._released = None if self.machine.released is None else predicates.test(self.machine.released_formula)
        self._tokens = _TokenFields()
        self._nodes: dict[frozenset[Item], Node] = {}
        self._stimuli: dict[tuple[frozenset[str], tuple[type, ...]], tuple[object, ...]] = {}
        self.rows: set[str] = set()
        """Rows that some line used, or may have used."""
        self.nowhere = Node(frozenset(), frozenset(), ended=False)
        """Where an instance is that no state explains any more."""
        self.start = self.node([(self.machine.initial, self.memory.initial)])

    # ── nodes ──

    def node(self, items: Iterable[Item]) -> Node:
        """The node of these items. Raises :class:`TooLittleKnown`."""
        found = frozenset(items)
        known = self._nodes.get(found)
        if known is None:
            if len(found) > MOST:
                raise TooLittleKnown
            names = frozenset(n for item in found for n in self._tokens.names(item))
            known = self._nodes[found] = Node(found, names, all(self._has_ended(item) for item in found))
        return known

    @property
    def size(self) -> int:
        """How many nodes are remembered."""
        return len(self._nodes)

    def forget(self) -> None:
        """Forget everything worked out so far, to bound memory; nodes in use stay, as if they were new."""
        for node in self._nodes.values():
            node.clear()
            node.followed.clear()
            node.lost.clear()
        self._nodes = {self.start.possible: self.start}

    def _has_ended(self, item: Item) -> bool:
        return self._released is not None and _holds_in(self._released, item)

    def bind(self, node: Node, name: str) -> Node:
        """The node once ``name`` appeared: it is new, or it is one of the unknown identities."""
        if not node.unknown:
            return node
        unknown = [n for n in node.names if n.startswith(UNKNOWN)]
        bound = {self._tokens.rename(item, {u: name}) for item in node.possible for u in unknown if u in set(self._tokens.names(item))}
        return self.node(node.possible | {self._tidy(item) for item in bound})

    def _tidy(self, item: Item) -> Item:
        """Number the unknown identities of an item in the order in which it mentions them."""
        unknown = dict.fromkeys(n for n in self._tokens.names(item) if n.startswith(UNKNOWN))
        wanted = {n: f"{UNKNOWN}{number}" for number, n in enumerate(unknown, 1)}
        return item if all(n == w for n, w in wanted.items()) else self._tokens.rename(item, wanted)

    # ── steps ──

    def step(self, item: Item, event: object) -> Passage:
        """What the machine does with ``event`` in ``item``."""
        state, pasts = item
        answer = self.machine.step(state, event)
        if isinstance(answer, Taken):
            after = (answer.state, self.memory.after(state, pasts, event, Said.TAKEN, answer.effects, answer.state))
            return Passage(item, event, Said.TAKEN, answer.row, answer.effects, after)
        said = Said.IGNORED if isinstance(answer, Ignored) else Said.REFUSED
        after = (state, self.memory.after(state, pasts, event, said, (), state))
        return Passage(item, event, said, answer.row, (), after, answer.why)

    def follow(self, node: Node, meaning: Meaning) -> Edge:
        """The edge that a line of this meaning takes from ``node``. Raises :class:`TooLittleKnown`."""
        known = node.followed.get(meaning)
        if known is None:
            known = node.followed[meaning] = self._edge(node, meaning)
        return known

    def _edge(self, node: Node, meaning: Meaning) -> Edge:
        passages = [p for p in (self.step(item, meaning.event) for item in self.close(node)) if agrees(p, meaning)]
        if not passages:
            return Edge(self.nowhere)
        after = self.node(self._tidy(p.after) for p in passages)
        self.rows.update(p.row.name for p in passages)
        seen = node.names | frozenset(self._tokens.names((meaning.event, ()))) | _texts(meaning.post)
        dead = frozenset(n for n in seen if n.startswith(NAMED)) - after.names
        return Edge(after, broken=self._broken(passages), dead=dead, ends=after.ended and not node.ended)

    def observed(self, node: Node, passage: Passage) -> Edge:
        """The edge of a step that was seen whole, from a node of one item: its history is worked out here, its state is as it was seen."""
        (state, pasts), after = passage.before, passage.after[0]
        then = self.memory.after(state, pasts, passage.event, passage.said, passage.effects, after)
        seen = attrs.evolve(passage, after=self._tidy((after, then)))
        reached = self.node([seen.after])
        names = node.names | frozenset(self._tokens.names((passage.event, ()))) | frozenset(self._tokens.names(seen.after))
        dead = frozenset(n for n in names if n.startswith(NAMED)) - reached.names
        return Edge(reached, broken=self._broken([seen]), dead=dead, ends=reached.ended and not node.ended)

    def _broken(self, passages: Sequence[Passage]) -> tuple[int, ...]:
        """Promises that every possible step breaks; a promise about states only where it held before."""
        found = []
        for number, (about_step, test) in enumerate(self._tests):
            if about_step:
                broken = not any(holds_of(test, p) for p in passages)
            else:
                broken = not any(_holds_in(test, p.after) for p in passages) and any(_holds_in(test, p.before) for p in passages)
            if broken:
                found.append(number)
        return tuple(found)

    def would_break(self, items: Iterable[Item], meaning: Meaning) -> tuple[Property, ...]:
        """Promises that break wherever the instance may be, if the event was answered as the line says."""
        said = meaning.said
        if said is None:
            return ()
        befores = list(items)
        return tuple(p for p, test in self._answers if not any(test(s, pasts, meaning.event, said, (), s, pasts) for s, pasts in befores))

    # ── what is not logged ──

    def close(self, node: Node) -> frozenset[Item]:
        """The items, and what unobserved steps make of them."""
        if node.closed is None:
            node.closed = self._reached(node.possible, self.unobserved, None) if self.unobserved else node.possible
        return node.closed

    def after_lost(self, node: Node, lines: int) -> Node:
        """The node after ``lines`` events that nobody knows; a lost line may also have been ignored. Raises :class:`TooLittleKnown`."""
        known = node.lost.get(lines)
        if known is None:
            known = node.lost[lines] = self.node(self._reached(node.possible, self.machine.events, lines))
        return known

    def _reached(self, items: frozenset[Item], classes: tuple[type, ...], steps: int | None) -> frozenset[Item]:
        found, front = set(items), set(items)
        while front and steps != 0:
            new = {self._tidy(p.after) for item in front for p in self.taken(item, classes)}
            front = new - found
            found |= front
            if len(found) > MOST:
                raise TooLittleKnown
            steps = None if steps is None else steps - 1
        return frozenset(found)

    def taken(self, item: Item, classes: tuple[type, ...], names: frozenset[str] = frozenset()) -> Iterator[Passage]:
        """Every step that an event of these classes makes of ``item``; ``names`` are identities it may bring besides those in ``item``."""
        for event in self._events(frozenset(self._tokens.names(item)) | names, classes):
            passage = self.step(item, event)
            if passage.said is Said.TAKEN:
                yield passage

    def _events(self, names: frozenset[str], classes: tuple[type, ...]) -> tuple[object, ...]:
        known = self._stimuli.get((names, classes))
        if known is None:
            fresh = f"{UNKNOWN}{1 + sum(n.startswith(UNKNOWN) for n in names)}"
            tokens = (NOBODY, *sorted(names), fresh)
            known = self._stimuli[names, classes] = tuple(e for cls in classes for e in _instances(cls, tokens))
        return known


def agrees(passage: Passage, meaning: Meaning) -> bool:
    """Whether a step is what the line says. A log that gives no answer never means a refusal."""
    if passage.said is not meaning.said and (meaning.said is not None or passage.said is Said.REFUSED):
        return False
    return not any(True for _ in differing(passage, meaning))


def differing(passage: Passage, meaning: Meaning) -> Iterator[tuple[str, object, object]]:
    """Field, what the line says, what the machine says."""
    state = passage.after[0]
    return ((name, value, getattr(state, name)) for name, value in meaning.post if getattr(state, name) != value)


def holds_of(test: StepTest, passage: Passage) -> bool:
    """Whether a formula over a step holds of it."""
    (state, pasts), (after, pasts_after) = passage.before, passage.after
    return test(state, pasts, passage.event, passage.said, passage.effects, after, pasts_after)


def _holds_in(test: StepTest, item: Item) -> bool:
    state, pasts = item
    return test(state, pasts, None, Said.IGNORED, (), state, pasts)


def _texts(post: tuple[tuple[str, object], ...]) -> frozenset[str]:
    return frozenset(v for _, v in post if isinstance(v, str) and v.startswith(NAMED))


def _instances(cls: type, tokens: Sequence[str]) -> Iterator[object]:
    domains: list[Sequence[object]] = []
    for field in fields_of(cls).values():
        domains.append(tokens if field.kind is Kind.TOKEN else field.values(tokens=0, counter=COUNTERS))
    return (cls(*values) for values in itertools.product(*domains))


def canonical(thing: Any, names: Mapping[str, str]) -> Any:
    """An event or a state with its identities renamed and what it only carries replaced by the representative."""
    changes: dict[str, object] = {}
    for name, field in fields_of(type(thing)).items():
        value = getattr(thing, name)
        if field.kind is Kind.TOKEN:
            if value in names:
                changes[name] = names[value]
        elif field.kind is Kind.OPAQUE:
            one = _REPRESENTATIVES.setdefault(field.base, representative(field.base))
            if value is not one:
                changes[name] = one
    return attrs.evolve(thing, **changes) if changes else thing


_REPRESENTATIVES: dict[type, object] = {}


class _TokenFields:
    """Reads and renames the identities in items."""

    def __init__(self) -> None:
        self._known: dict[type, tuple[str, ...]] = {}

    def of(self, cls: type) -> tuple[str, ...]:
        known = self._known.get(cls)
        if known is None:
            known = self._known[cls] = tuple(n for n, field in fields_of(cls).items() if field.kind is Kind.TOKEN)
        return known

    def names(self, item: Item) -> Iterator[str]:
        for part in (item[0], *item[1]):
            for field in self.of(type(part)):
                value = getattr(part, field)
                if value != NOBODY:
                    yield value

    def rename(self, item: Item, names: dict[str, str]) -> Item:
        def renamed(part: Any) -> Any:
            changes = {f: names[getattr(part, f)] for f in self.of(type(part)) if getattr(part, f) in names}
            return attrs.evolve(part, **changes) if changes else part

        return renamed(item[0]), cast(Pasts, tuple(renamed(part) for part in item[1]))


__all__ = [
    "NAMED", "UNKNOWN", "Beliefs", "Edge", "Item", "Meaning", "Node", "Passage", "TooLittleKnown", "agrees", "canonical", "differing",
    "holds_of",
]  # fmt: skip
