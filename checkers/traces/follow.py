"""Follows instances through a graph of beliefs, line by line: names, remembered texts, what is not known and not compared.

A :class:`Follower` knows nothing of files or of the order of lines, so that a monitor in a running process can use it as a replay does:
``begin`` an instance, then ``take`` each line; both cost a lookup once the situation was met before.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from turnproof.checkers.traces.beliefs import NAMED, Beliefs, Edge, Meaning, Node, canonical
from turnproof.machines.kernel import NOBODY, Kind, fields_of
from turnproof.specs.language import Said
from turnproof.traces.coding import Coder
from turnproof.traces.line import ANSWERS, FIELDS, TraceLine
from turnproof.traces.split import Text

REMEMBERED = 500_000
"""Texts of lines that are remembered at a time."""
NODES = 100_000
"""Sets of states that are remembered at a time."""

NO_NAMES: Mapping[str, str] = {}

_PLAIN = re.compile(r'[^"\\\x00-\x1f]+')


class Order:
    """Where a count of lines stands, and the lines that came too early.

    ``head`` is how the next line must begin, so that comparing bytes tells whether it is the next; while lines are held, none begins so.
    ``form`` makes it of a number.
    """

    __slots__ = ("form", "head", "held", "next")

    def __init__(self, form: bytes, number: int, head: bytes = b"") -> None:
        self.form, self.next = form, number
        self.head = head or form % number
        self.held: dict[int, Any] | None = None

    @property
    def last(self) -> int:
        """The number of the last line."""
        return self.next - 1

    def advance(self, last: int) -> None:
        """The last line now is ``last``."""
        self.next = last + 1
        self.head = (b"held " if self.held else b"") + self.form % self.next

    def hold(self, seq: int, line: Any) -> None:
        """Keep a line until those before it have come."""
        if self.held is None:
            self.held = {}
        if not self.held:
            self.head = b"held " + self.head
        self.held[seq] = line

    def let_go(self, seq: int) -> Any:
        """Take a held line back."""
        assert self.held is not None
        line = self.held.pop(seq)
        if not self.held:
            self.head = self.head.removeprefix(b"held ")
        return line


class Instance:
    """One instance: the node it is at, the names of its identities, and the count of its lines (one for all, if the file is counted).

    ``names`` are the identities that the node's items mention, by their real name. ``pairs`` holds those that can be replaced in the text
    of a line: real and canonical, both in quotes. ``written`` is how its key stands in lines.
    """

    __slots__ = ("key", "names", "node", "order", "pairs", "written")

    def __init__(self, key: str, node: Node, order: Order) -> None:
        self.key, self.node, self.order = key, node, order
        self.names: Mapping[str, str] = NO_NAMES
        self.pairs: tuple[tuple[bytes, bytes], ...] = ()
        self.written: tuple[bytes, ...] = ()

    def add_name(self, real: str, name: str, plain: bool) -> None:
        """Know ``real`` as ``name`` from now on."""
        self.names = {**self.names, real: name}
        if plain:
            self.pairs = (*self.pairs, (_quoted(real), _quoted(name)))

    def drop_names(self, dead: frozenset[str]) -> None:
        """Take names back."""
        if len(dead) == len(self.names):
            self.names, self.pairs = NO_NAMES, ()
            return
        self.names = {real: name for real, name in self.names.items() if name not in dead}
        quoted = {_quoted(name) for name in dead}
        self.pairs = tuple(pair for pair in self.pairs if pair[1] not in quoted)

    def text(self, text: Text) -> Text:
        """The text of a line in canonical names."""
        for real, name in self.pairs:
            text = _replaced(text, real, name)
        return text


def _replaced(text: Text, real: bytes, name: bytes) -> Text:
    if isinstance(text, bytes):
        return text.replace(real, name)
    event, args, post, answer, machine = text
    return event, args.replace(real, name), post.replace(real, name), answer, machine


def _quoted(name: str) -> bytes:
    return f'"{name}"'.encode()


@attrs.frozen
class Taken:
    """What became of a line. ``edge`` is None if the machine does not know the event. ``text``: what to remember the edge by, if at all."""

    edge: Edge | None
    text: Text | None = None


class Follower:
    """Takes lines of many instances of one machine. ``remembered``: lines whose edge is known at once, at most; then all are forgotten."""

    def __init__(self, beliefs: Beliefs, remembered: int | None = None) -> None:
        self.beliefs, self._most = beliefs, REMEMBERED if remembered is None else remembered
        self.coder = Coder(beliefs.machine)
        self.unknown: Counter[str] = Counter()
        """Events the machine does not know -> how often."""
        self.extra: Counter[str] = Counter()
        """Fields of a line that the format does not know -> how often."""
        self.not_compared: set[str] = set()
        """Fields of the state that stood in a line and are only carried."""
        self._state = fields_of(beliefs.machine.state)
        self._words = frozenset(_words(beliefs))
        self._tokens = {cls.__name__: _of_kind(cls, Kind.TOKEN) for cls in beliefs.machine.events}
        self._state_tokens = _of_kind(beliefs.machine.state, Kind.TOKEN)
        self._state_carried = _of_kind(beliefs.machine.state, Kind.OPAQUE)
        self._carried = {cls.__name__: _of_kind(cls, Kind.OPAQUE) for cls in beliefs.machine.events}
        self._remembered = 0
        tokens = {f.encode() for fields in (self._state_tokens, *self._tokens.values()) for f in fields}
        self._fresh = re.compile(rb'"(?:%b)": ?("[^"\\\x00-\x1f]+")' % b"|".join(sorted(tokens)) if tokens else rb"(?!)")

    def begin(self, key: str, order: Order) -> Instance:
        """A new instance, in the machine's initial state."""
        return Instance(key, self.beliefs.start, order)

    def take_text(self, instance: Instance, text: Text) -> Edge | None:
        """The edge of a line whose bare text is not known from where ``instance`` is: perhaps only because it mentions identities.

        In canonical names it may be known. So it may once a new identity has got a name: then the line means what the known one does,
        since it differs in the name alone.
        """
        node = instance.node
        for real, name in instance.pairs:
            text = _replaced(text, real, name)
        edge = node.get(text) if instance.pairs else None
        found = None if edge is not None or node.unknown else self._new_identity(text)
        if found is not None:
            edge = node.get(_replaced(text, found, node.free_quoted))
            if edge is not None:
                instance.names = {**instance.names, found[1:-1].decode(): node.free}
                instance.pairs = (*instance.pairs, (found, node.free_quoted))
        return edge

    def may_begin(self, text: Text) -> bool:
        """Whether a line of this text is known as the first one of an instance."""
        start = self.beliefs.start
        if text in start:
            return True
        found = self._new_identity(text)
        return found is not None and _replaced(text, found, start.free_quoted) in start

    def _new_identity(self, text: Text) -> bytes | None:
        """The first identity, in quotes, that stands in the text as itself and not by a canonical name."""
        found = self._fresh.search(text if isinstance(text, bytes) else text[1] + text[2])
        if found is None:
            return None
        try:
            real = found[1][1:-1].decode()
        except UnicodeDecodeError:
            return None
        return None if real in self._words else found[1]

    def take(self, instance: Instance, line: TraceLine, text: Text | None = None) -> Taken:
        """Find where ``line`` leads from where ``instance`` is; does not go there. ``text`` is what the line may be remembered by.

        Raises ``LineProblem`` for wrong fields and ``TooLittleKnown``.
        """
        if line.event not in self.coder.events:
            self.unknown[line.event] += 1
            return Taken(None)
        post = line.post or {}
        real = [line.args[f] for f in self._tokens[line.event] if f in line.args] + [post[f] for f in self._state_tokens if f in post]
        self.name(instance, real)
        text = self._memory(instance, line, real, text)
        edge = None if text is None else instance.node.get(text)
        if edge is None:
            edge = self.beliefs.follow(instance.node, self.meaning(instance, line))
            self.extra.update(line.extra)
        return Taken(edge, text)

    def meaning(self, instance: Instance, line: TraceLine) -> Meaning:
        """What ``line`` says, in the canonical names of ``instance``, all of which are known. Raises ``LineProblem``."""
        event, canon = self.coder.event(line.event, line.args), instance.names
        post: tuple[tuple[str, object], ...] = ()
        if line.post:
            self.not_compared |= {name for name in line.post if name in self._state_carried}
            given = ((n, v) for n, v in self.coder.post(line.post) if n not in self._state_carried)
            post = tuple((n, canon.get(str(v), v) if n in self._state_tokens else v) for n, v in given)
        return Meaning(canonical(event, canon), None if line.answer is None else Said(line.answer), post)

    def remember(self, node: Node, text: object, edge: Edge) -> None:
        """Let lines of this text (None: of none), or steps of this description, find ``edge`` from ``node`` at once."""
        if self._remembered >= self._most or self.beliefs.size > NODES:
            self.beliefs.forget()
            self._remembered = 0
        elif text is not None:
            node[text] = edge
            self._remembered += 1

    def go(self, instance: Instance, edge: Edge) -> None:
        """Go where ``edge`` leads."""
        instance.node = edge.node
        if edge.dead:
            instance.drop_names(edge.dead)

    def name(self, instance: Instance, real: Sequence[object]) -> None:
        """Give those identities a canonical name that ``instance`` has none for."""
        for value in real:
            if isinstance(value, str) and value != NOBODY and value not in instance.names:
                plain = value not in self._words and _PLAIN.fullmatch(value) is not None
                taken = instance.node.names | frozenset(instance.names.values())
                name = next(n for n in (f"{NAMED}{number}" for number in range(1, len(taken) + 2)) if n not in taken)
                instance.add_name(value, name, plain)
                instance.node = self.beliefs.bind(instance.node, name)

    def _memory(self, instance: Instance, line: TraceLine, real: list[object], text: Text | None) -> Text | None:
        """The text in canonical names, if every line of that text means the same wherever it stands."""
        if text is None or line.extra or b"\\" in (text if isinstance(text, bytes) else text[1] + text[2]):
            return None
        plain = {pair[1] for pair in instance.pairs}
        for value in real:
            if value and _quoted(str(instance.names.get(str(value)))) not in plain:
                return None
        if any(line.args.get(f) for f in self._carried[line.event]) or any((line.post or {}).get(f) for f in self._state_carried):
            return None
        return instance.text(text)


def _of_kind(cls: type, kind: Kind) -> tuple[str, ...]:
    return tuple(name for name, field in fields_of(cls).items() if field.kind is kind)


def _words(beliefs: Beliefs) -> Iterator[str]:
    """Every text that can stand in quotes in a line and is no identity: an identity of that name is not replaced in texts."""
    machine = beliefs.machine
    yield from (*FIELDS, *ANSWERS, machine.name, beliefs.spec.machine.name, *(v.machine.name for v in beliefs.spec.variants))
    for cls in (machine.state, *machine.events):
        yield cls.__name__
        for name, field in fields_of(cls).items():
            yield name
            if field.kind is Kind.ENUM:
                for member in field.values(tokens=0, counter=0):
                    yield from (str(getattr(member, "value", "")), str(getattr(member, "name", "")))


__all__ = ["Follower", "Instance", "Order", "Taken"]
