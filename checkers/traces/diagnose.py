"""Says why a line does not fit, what would have fitted, and what small change of the log makes it fit.

A divergence is found while reading; the lines before it are gone by then. So the log is read once more for the few instances that are
told about, and their lines are followed again one by one.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from turnproof.checkers.traces.beliefs import Beliefs, Item, Meaning, Node, Passage, TooLittleKnown, agrees, differing
from turnproof.checkers.traces.finding import Finding, Kind, Tolerance, said
from turnproof.checkers.traces.follow import Follower, Instance, Order
from turnproof.checkers.traces.report import Divergence, Told
from turnproof.checkers.written import show_event, show_value
from turnproof.machines.kernel import Kind as FieldKind
from turnproof.machines.kernel import fields_of
from turnproof.specs.language import AnyMachine, Said
from turnproof.traces.files import lines_of
from turnproof.traces.line import FIELDS, LineProblem, TraceLine, read_line

KEPT = 20_000
"""Lines of one instance that are kept for a diagnosis; its divergence is told without one if there were more."""
AFTER = 8
"""Lines of the instance after the divergence that are looked at, for a repair."""
STATES = 3
"""Possible states that are shown."""
TRIED = 100_000
"""Lines that are followed at most to find the shortest part of a log."""
FEW = 6
"""Events that a repair names at most."""


@attrs.frozen
class Kept:
    """A line of an instance."""

    place: str
    line: TraceLine


class Case:
    """One divergence: the lines of its instance's life up to it, and some after."""

    def __init__(self, beliefs: Beliefs, finding: Finding, lines: Sequence[Kept], later: Sequence[Kept]) -> None:
        self.beliefs, self.finding = beliefs, finding
        self.follower = Follower(beliefs)
        self.before, self.last = lines[:-1], lines[-1]
        self.later = later
        self.instance = self._walk(self.before)
        self.meaning = None if self.instance is None else self._meaning(self.instance, self.last)

    def follows(self) -> bool:
        """Whether the lines fit after all, the last and the later ones included."""
        return self._fits((*self.before, self.last), self.later)

    def missing(self) -> str:
        """Which event may have stood in a gap of one line; empty if too many may."""
        if self.instance is None or self.meaning is None:
            return ""
        good, any_ = self._inserted(self.instance.node, self.meaning)
        found = good or any_
        return f"the missing line may be {_or(found)}" if 0 < len(found) <= FEW else ""

    def tell(self) -> Divergence:
        """Everything that can be said about it."""
        text = said(self.last.line)
        if self.instance is None or self.meaning is None:
            return Divergence(place=self.last.place, said=f"{text} does not fit")
        names = {name: real for real, name in self.instance.names.items()}
        items = sorted(self.beliefs.close(self.instance.node), key=repr)
        passages = [self.beliefs.step(item, self.meaning.event) for item in items]
        smallest, broken = self._smallest(), self.beliefs.would_break(items, self.meaning)
        return Divergence(
            place=self.last.place,
            said=text,
            objections=tuple(dict.fromkeys(_objection(p, self.meaning, names) for p in passages))[:STATES],
            states=tuple(_state(item, self.beliefs.machine, names) for item in items[:STATES])
            + ((f"and {len(items) - STATES} more",) if len(items) > STATES else ()),
            possible=self._possible(names),
            repair=self._repair(),
            story=tuple(Told(number=kept.line.seq, text=said(kept.line)) for kept in smallest),
            log=tuple(_written(kept.line, number) for number, kept in enumerate(smallest, 1)),
            promises=tuple(f'"{p.name}"' + (f" ({', '.join(p.requirements)})" if p.requirements else "") for p in broken),
            requirements=tuple(dict.fromkeys(rid for p in broken for rid in p.requirements)),
        )

    # ── following again ──

    def _walk(self, lines: Sequence[Kept]) -> Instance | None:
        """The instance after these lines; None if they do not fit."""
        instance = self.follower.begin(self.finding.key, Order(b"%d", 1))
        for kept in lines:
            if kept.line.event in self.follower.coder.events and not self._next(instance, kept):
                return None
        return instance

    def _next(self, instance: Instance, kept: Kept) -> bool:
        try:
            taken = self.follower.take(instance, kept.line)
        except (LineProblem, TooLittleKnown):
            return False
        if taken.edge is None or not taken.edge.fits:
            return False
        self.follower.go(instance, taken.edge)
        return True

    def _meaning(self, instance: Instance, kept: Kept) -> Meaning | None:
        try:
            self.follower.take(instance, kept.line)
            return self.follower.meaning(instance, kept.line)
        except (LineProblem, TooLittleKnown):
            return None

    def _names(self) -> frozenset[str]:
        """The identities that the lines so far, and this one, mention."""
        assert self.instance is not None
        return self.instance.node.names | frozenset(self.instance.names.values())

    # ── what would have fitted ──

    def _possible(self, names: Mapping[str, str]) -> tuple[str, ...]:
        """Events that are taken there; of a class with many, only its name."""
        assert self.instance is not None
        node, found = self.instance.node, dict[str, dict[str, None]]()
        for item in closed(self.beliefs, node):
            for passage in self.beliefs.taken(item, self.beliefs.machine.events, self._names()):
                found.setdefault(type(passage.event).__name__, {})[_real(passage.event, names)] = None
        return tuple(next(iter(events)) if len(events) == 1 else f"{name}(...)" for name, events in found.items())

    def _repair(self) -> str:
        """The smallest change that makes the line fit, those first after which the later lines fit too."""
        assert self.instance is not None
        assert self.meaning is not None
        node, meaning, dropped = self.instance.node, self.meaning, self._fits(self.before, self.later)
        if dropped and self.before and _same(self.before[-1].line, self.last.line):
            return "leave this line out: it repeats the one before it"
        if self.later and self._fits((*self.before, self.later[0], self.last), self.later[1:]):
            return f"exchange this line with the next one of its instance ({self.later[0].place}); written in the wrong order?"
        good, any_ = self._inserted(node, meaning)
        if good:
            return f"expected {_or(good)} before this line; one line missing?"
        passages = list(self._passages(node, meaning.event))
        if any(agrees(p, Meaning(meaning.event, meaning.said)) for p in passages):
            return "; ".join(("the event is possible there, but not with this state after it", *self._other_events(node, meaning)))
        if meaning.said is None and {p.said for p in passages} == {Said.REFUSED}:
            return 'the event is refused there: if it was, the line must say so ("answer": "refused")'
        if dropped and self.later:
            return "leave this line out; does it belong to another instance?"
        if any_:
            return f"expected {_or(any_)} before this line; one line missing?"
        return next(self._other_events(node, meaning), "none that changes one line")

    def _inserted(self, node: Node, meaning: Meaning) -> tuple[list[str], list[str]]:
        """Classes of events one of which, before the line, makes it fit: those after which the later lines fit as well, and all."""
        beliefs, found = self.beliefs, dict[str, bool]()
        for item in closed(beliefs, node):
            for passage in beliefs.taken(item, beliefs.machine.events, self._names()):
                name = type(passage.event).__name__
                if passage.after != item and not found.get(name) and agrees(beliefs.step(passage.after, meaning.event), meaning):
                    found[name] = self._goes_on(passage.after, meaning)
        return [n for n, good in found.items() if good], list(found)

    def _goes_on(self, item: Item, meaning: Meaning) -> bool:
        """Whether the later lines fit once ``item`` was where the line began."""
        assert self.instance is not None
        trial = self.follower.begin(self.finding.key, Order(b"%d", 1))
        trial.names, trial.pairs = dict(self.instance.names), self.instance.pairs
        trial.node = self.beliefs.node([self.beliefs.step(item, meaning.event).after])
        return all(self._next(trial, kept) for kept in self.later)

    def _other_events(self, node: Node, meaning: Meaning) -> Iterator[str]:
        """What the event must have been, if the state after it is right."""
        found = dict.fromkeys(
            type(p.event).__name__
            for item in closed(self.beliefs, node)
            for p in self.beliefs.taken(item, self.beliefs.machine.events, self._names())
            if meaning.post and agrees(p, Meaning(p.event, meaning.said, meaning.post))
        )
        if found:
            yield f"with this state after it, the event can only have been {_or(list(found))}"

    def _passages(self, node: Node, event: object) -> Iterator[Passage]:
        return (self.beliefs.step(item, event) for item in closed(self.beliefs, node))

    def _fits(self, lines: Sequence[Kept], more: Sequence[Kept]) -> bool:
        instance = self._walk(lines)
        return instance is not None and all(self._next(instance, kept) for kept in more)

    # ── the shortest part of the log ──

    def _smallest(self) -> list[Kept]:
        """Lines without any of which the last would not diverge as it does (delta debugging: halves, quarters, ..., single lines)."""
        kept, size, walked = list(self.before), max(1, len(self.before) // 2), 0
        while kept and walked < TRIED:
            removed, at = False, 0
            while at < len(kept) and walked < TRIED:
                rest = kept[:at] + kept[at + size :]
                walked += len(rest) + 1
                if self._diverges(rest):
                    kept, removed = rest, True
                else:
                    at += size
            if size == 1 and not removed:
                break
            size = max(1, min(size if removed else size // 2, len(kept)))
        return [*kept, self.last]

    def _diverges(self, lines: Sequence[Kept]) -> bool:
        instance = self._walk(lines)
        if instance is None:
            return False
        try:
            taken = self.follower.take(instance, self.last.line)
        except (LineProblem, TooLittleKnown):
            return False
        return taken.edge is not None and not taken.edge.fits


def closed(beliefs: Beliefs, node: Node) -> list[Item]:
    """The items of a closed node, in a stable order, at most a hundred."""
    return sorted(beliefs.close(node), key=repr)[:100]


# ── reading again ──


def tell(
    beliefs: Beliefs, paths: Sequence[Path], findings: Sequence[Finding], allow: Collection[Tolerance]
) -> tuple[tuple[Divergence, ...], tuple[str, ...]]:
    """``findings`` with what can be said about each: everything, where its lines can be followed again.

    Second come the names of other designs of the specification that follow every instance which diverged.
    """
    wanted = {finding.key: finding for finding in findings}
    lines = _gather(paths, wanted, set(beliefs_names(beliefs)))
    made, diverged = [], list[Case]()
    for finding in findings:
        before, later = lines.get(finding.key, ([], []))
        plain = Divergence(place=str(finding.place), said=f"{finding.key}: {finding.said}")
        usable = before and len(before) <= KEPT and before[-1].place == str(finding.place)
        if not usable or Tolerance.LOST in allow or Tolerance.REORDERED in allow:
            made.append(plain)
        elif finding.kind is Kind.DIVERGED:
            diverged.append(Case(beliefs, finding, before, later))
            made.append(diverged[-1].tell())
        else:
            one = finding.kind is Kind.MISSING and len(before) > 1 and finding.seq == before[-2].line.seq + 2
            made.append(attrs.evolve(plain, repair=Case(beliefs, finding, before, later).missing() if one else ""))
    return tuple(made), tuple(_explaining(beliefs, diverged))


def _explaining(beliefs: Beliefs, cases: Sequence[Case]) -> Iterator[str]:
    designs = (beliefs.spec.machine, *(v.machine for v in beliefs.spec.variants))
    for design in designs if cases else ():
        if design is not beliefs.machine:
            other = Beliefs(beliefs.spec, design, beliefs.unobserved, promises=False)
            if all(Case(other, c.finding, (*c.before, c.last), c.later).follows() for c in cases):
                yield design.name


def beliefs_names(beliefs: Beliefs) -> Iterator[str | None]:
    """How a line may call the machine."""
    yield from (None, beliefs.machine.name, beliefs.spec.machine.name, *(v.machine.name for v in beliefs.spec.variants))


def _gather(paths: Sequence[Path], wanted: Mapping[str, Finding], ours: set[str | None]) -> dict[str, tuple[list[Kept], list[Kept]]]:
    found: dict[str, tuple[list[Kept], list[Kept]]] = {key: ([], []) for key in wanted}
    quoted = [key.encode() for key in wanted if key.isascii() and key.isprintable() and '"' not in key and "\\" not in key]
    for path in paths:
        for some in lines_of(path):
            for number, data in enumerate(some.data, some.first):
                if len(quoted) == len(wanted) and not any(key in data for key in quoted):
                    continue
                if data.strip():
                    _keep(found, wanted, ours, Kept(f"{path}:{number}", read_line(data)))
    return found


def _keep(found: dict[str, tuple[list[Kept], list[Kept]]], wanted: Mapping[str, Finding], ours: set[str | None], kept: Kept) -> None:
    line = kept.line
    if line.key not in found or line.machine not in ours:
        return
    before, later = found[line.key]
    if before and before[-1].place == str(wanted[line.key].place):
        if len(later) < AFTER:
            later.append(kept)
        return
    if before and line.seq <= 1 and line.seq <= before[-1].line.seq:
        before.clear()
    if len(before) <= KEPT:
        before.append(kept)


# ── words ──


def _same(one: TraceLine, other: TraceLine) -> bool:
    return one.event == other.event and one.args == other.args


def _written(line: TraceLine, seq: int) -> str:
    found = attrs.asdict(line, filter=lambda field, value: field.name != "extra" and value is not None)
    return json.dumps({name: found[name] for name in FIELDS if name in found} | {"seq": seq}, ensure_ascii=False)


def _objection(passage: Passage, meaning: Meaning, names: Mapping[str, str]) -> str:
    if passage.said is not meaning.said and (meaning.said is not None or passage.said is Said.REFUSED):
        why = f": {passage.why}" if passage.why else f" by the row {passage.row.name}"
        log = f"the log says {meaning.said.value}" if meaning.said is not None else "the log does not say it was refused"
        return f"it is {passage.said.value} there{why}; {log}"
    parts = (f"{n}={_value(found, names)}, the log says {_value(told, names)}" for n, told, found in differing(passage, meaning))
    return f"after it ({passage.said.value}, row {passage.row.name}) " + "; ".join(parts)


def _state(item: Item, machine: AnyMachine, names: Mapping[str, str]) -> str:
    """The fields that are not as they began; the phase always."""
    state, shown = item[0], []
    for name, field in fields_of(type(state)).items():
        value = getattr(state, name)
        if field.kind is not FieldKind.OPAQUE and (name == machine.phase or value != getattr(machine.initial, name)):
            shown.append(f"{name}={_value(value, names)}")
    return ", ".join(shown)


def _value(value: object, names: Mapping[str, str]) -> str:
    if isinstance(value, str) and value in names:
        return names[value]
    return "one never logged" if isinstance(value, str) and value.startswith("\x02") else show_value(value)


def _real(event: Any, names: Mapping[str, str]) -> str:
    """An event in real names, as it is written."""
    changes = {
        n: _value(getattr(event, n), names) for n, f in fields_of(type(event)).items() if f.kind is FieldKind.TOKEN and getattr(event, n)
    }
    return show_event(attrs.evolve(event, **changes) if changes else event)


def _or(names: Sequence[str]) -> str:
    few = list(names[:FEW])
    return few[0] if len(few) == 1 else f"{', '.join(few[:-1])} or {few[-1]}"


__all__ = ["tell"]
