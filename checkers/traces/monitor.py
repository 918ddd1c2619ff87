"""The promises of a specification in the running process: a ``trace=`` hook that says which broke first, and stops nothing.

It judges the steps that really happened, with the states and effects the runtime really had, by the same promises as a replay does and
``turnproof verify`` shows; and it compares each with the step of the table. What a step costs does not depend on how many came
before it: a situation is worked out once, then it is a lookup (identities go by canonical names, as in ``beliefs``). Needs attrs and the
standard library, nothing else.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from turnproof.checkers.traces.beliefs import Beliefs, Edge, Passage, canonical
from turnproof.checkers.traces.follow import NO_NAMES, Follower, Instance, Order
from turnproof.checkers.written import show_event, show_value
from turnproof.machines.kernel import Ignored, Kind, Taken, fields_of
from turnproof.specs.language import Said, Spec
from turnproof.traces.writer import LoggedStep

LOG = logging.getLogger("turnproof.monitor")
REMEMBERED = 5_000
"""Instances that have ended, or cannot be judged, and are still known by their key."""


SITUATIONS = 20_000
"""Steps of one machine that are worked out and kept."""


@attrs.frozen(kw_only=True)
class Report:
    """A promise that broke, or a step that the table does not have. ``str()`` is one line for an operator."""

    machine: str
    key: str
    seq: int
    """Number of the step within its instance, as the trace has it."""
    event: str
    sentence: str
    """The promise; for a step that the table does not have, how they differ."""
    requirements: tuple[str, ...] = ()
    harm: str = ""
    diverged: bool = False
    """Whether the step is none of the table's: another version of it runs, or somebody wrote into the state."""

    def __str__(self) -> str:
        place = f"{self.machine} {self.key}, step {self.seq}: {self.event}"
        if self.diverged:
            return f"{place} is not as the table has it: {self.sentence}"
        ids = f" ({', '.join(self.requirements)})" if self.requirements else ""
        return f'{place} broke "{self.sentence}"{ids}' + (f": {self.harm}" if self.harm else "")


def log_report(report: Report) -> None:
    """What a monitor does with a report unless told otherwise: one error on ``turnproof.monitor``."""
    LOG.error("%s", report)


class Monitor:
    """Watches the instances of the machines of ``specs``: ``Runner(..., trace=Monitor(SPEC))``, one for all runners of a thread.

    ``on_report``: told of each promise when it breaks first, and of each difference from the table once; what it raises is logged.
    ``remember``: how many ended instances are still known, so that late events for them are judged.
    ``situations``: steps worked out, of each machine, that are kept at a time (about 1 kB each); one that comes again costs a lookup.

    An instance whose first step it did not see is not judged. Memory grows with the instances that live, not with steps. A step of
    another machine is a ``ValueError``.
    """

    def __init__(
        self,
        *specs: Spec,
        on_report: Callable[[Report], object] = log_report,
        remember: int = REMEMBERED,
        situations: int = SITUATIONS,
    ) -> None:
        if not specs:
            raise ValueError("Monitor(SPEC, ...): name the specifications whose machines it watches")
        self._watches = {spec.machine.name: _Watch(spec, remember, situations) for spec in specs}
        self._on_report = on_report
        self.first: Report | None = None
        """The first report of all; None while every promise holds."""
        self.broken: Counter[str] = Counter()
        """Promise, or difference from the table -> how many steps it was so in."""
        self.steps = self.unjudged = 0
        """How many steps came, and how many of them belong to an instance that cannot be judged (any more)."""

    def __call__(self, step: LoggedStep) -> None:
        """Judge one step."""
        watch = self._watches.get(step.machine)
        if watch is None:
            raise ValueError(f"this monitor watches {', '.join(self._watches)}, not {step.machine}")
        self.steps += 1
        watched = watch.watched(step)
        if watched.lost:
            self.unjudged += 1
            return
        if step.before is not watched.state:
            self._count(watch.interfered(watched, step))
            self.unjudged += 1
            return
        way = watch.way(watched, step)
        watched.state = step.post
        if not way.special:
            watched.instance.node = way.node
            return
        for report in watch.special(watched, step, way):
            self._count(report)

    def _count(self, report: Report) -> None:
        self.broken[report.sentence] += 1
        if self.broken[report.sentence] == 1:
            self._tell(report)

    @property
    def live(self) -> int:
        """How many instances are known by their key."""
        return sum(len(watch.known) for watch in self._watches.values())

    def _tell(self, report: Report) -> None:
        self.first = self.first or report
        try:
            self._on_report(report)
        except Exception:
            LOG.exception("on_report failed on: %s", report)


class _Way(Edge):
    """Where a step of this kind leads from a node. ``diverged``: why it is none of the table's."""

    __slots__ = ("diverged",)

    def __init__(self, edge: Edge, diverged: str) -> None:
        super().__init__(edge.node, broken=edge.broken, dead=edge.dead, ends=edge.ends)
        self.diverged = diverged
        self.special = self.special or bool(diverged)


class _Watched:
    """An instance, and the state it was in when its last step was over."""

    __slots__ = ("instance", "lost", "state")

    def __init__(self, instance: Instance, state: object, lost: bool) -> None:
        self.instance, self.state, self.lost = instance, state, lost


class _Watch:
    """The instances of one machine."""

    def __init__(self, spec: Spec, remember: int, situations: int) -> None:
        self.beliefs = Beliefs(spec)
        self.follower = Follower(self.beliefs, situations)
        self.known: dict[str, _Watched] = {}
        self._initial, self._name = spec.machine.initial, spec.machine.name
        self._recent: deque[str] = deque()
        self._remember = remember
        kinds = {cls: {f: field.kind for f, field in fields_of(cls).items()} for cls in spec.machine.events}
        self._tokens = {cls: [f for f, kind in found.items() if kind is Kind.TOKEN] for cls, found in kinds.items()}
        self._plain = {cls for cls, found in kinds.items() if not {Kind.TOKEN, Kind.OPAQUE} & set(found.values())}

    def watched(self, step: LoggedStep) -> _Watched:
        """The instance of a step; a new one at its first step, in whatever state it begins. One whose first step was not seen is lost."""
        found = self.known.get(step.key)
        if found is None or step.seq == 1:
            instance = self.follower.begin(step.key, _NO_ORDER)
            found = self.known[step.key] = _Watched(instance, step.before, lost=step.seq != 1)
            if found.lost:
                self._end(step.key)
            elif step.before != self._initial:
                instance.node = self.beliefs.node([(canonical(step.before, instance.names), self.beliefs.memory.initial)])
        return found

    def way(self, watched: _Watched, step: LoggedStep) -> _Way:
        """Where the step leads."""
        event, instance = step.event, watched.instance
        if type(event) not in self._plain:
            real = [getattr(event, name) for name in self._tokens[type(event)]]
            if any(value and value not in instance.names for value in real):
                self.follower.name(instance, real)
            event = canonical(event, instance.names)
        kind = (event, step.answer.row)
        way = instance.node.get(kind)
        if not isinstance(way, _Way):
            way = self._worked_out(instance, event, step)
            self.follower.remember(instance.node, kind, way)
        return way

    def _worked_out(self, instance: Instance, event: object, step: LoggedStep) -> _Way:
        answer, names = step.answer, instance.names
        said = Said.TAKEN if isinstance(answer, Taken) else Said.IGNORED if isinstance(answer, Ignored) else Said.REFUSED
        effects = tuple(canonical(e, names) for e in answer.effects) if isinstance(answer, Taken) else ()
        after = canonical(step.post, names)
        [item] = instance.node.possible
        own = self.beliefs.step(item, event)
        # What is only carried was one value there and is another here, and so is what was made of it.
        own_state = canonical(own.after[0], NO_NAMES)
        own = attrs.evolve(own, effects=tuple(canonical(e, NO_NAMES) for e in own.effects), after=(own_state, own.after[1]))
        edge = self.beliefs.observed(instance.node, attrs.evolve(own, said=said, row=answer.row, effects=effects, after=(after, ())))
        same = (own.said, own.effects, own_state) == (said, effects, after)
        return _Way(edge, "" if same else _apart(own, said, effects, after))

    def special(self, watched: _Watched, step: LoggedStep, way: _Way) -> Iterator[Report]:
        """Go along a way that is not as usual, and say what is wrong with the step, if anything is."""
        self.follower.go(watched.instance, way)
        for number in way.broken:
            promise = self.beliefs.promises[number]
            yield self._report(step, promise.name, requirements=promise.requirements, harm=promise.harm)
        if way.diverged:
            yield self._report(step, f"{type(step.event).__name__} {way.diverged}", diverged=True)
        if way.ends:
            self._end(step.key)

    def interfered(self, watched: _Watched, step: LoggedStep) -> Report:
        """Lose an instance whose state somebody else has written."""
        watched.lost = True
        self._end(step.key)
        return self._report(step, "its state is not the one that the step before it left", diverged=True)

    def _report(self, step: LoggedStep, sentence: str, **more: Any) -> Report:
        return Report(machine=self._name, key=step.key, seq=step.seq, event=show_event(step.event), sentence=sentence, **more)

    def _end(self, key: str) -> None:
        """Forget the instance once so many others have ended after it."""
        self._recent.append(key)
        if len(self._recent) > self._remember:
            old = self._recent.popleft()
            found = self.known.get(old)
            if found is not None and (found.lost or found.instance.node.ended):
                del self.known[old]


def _apart(own: Passage, said: Said, effects: tuple[Any, ...], after: object) -> str:
    """How a step differs from the table's, in words."""
    if own.said is not said:
        return f"was {said.value}, by the table it is {own.said.value} (row {own.row.name})"
    if own.effects != effects:
        did, should = (", ".join(show_event(e) for e in some) or "nothing" for some in (effects, own.effects))
        return f"had the effects {did}, by the table (row {own.row.name}) {should}"
    fields = [f for f in fields_of(type(after)) if getattr(after, f) != getattr(own.after[0], f)]
    told = ", ".join(f"{f} is {show_value(getattr(after, f))}, by the table {show_value(getattr(own.after[0], f))}" for f in fields)
    return f"led to another state than by the table (row {own.row.name}): {told}"


_NO_ORDER = Order(b"%d", 1)
"""Steps come in order: nobody counts them."""


__all__ = ["Monitor", "Report", "log_report"]
