"""The language of composed systems: machines wired together, and an environment that is written as machines too.

Theory of operation
===================

A **part** is a named instance of a machine. A **wire** turns an effect of one part into an event of another. A **channel** holds
events under way. A **spontaneous** event comes from outside whenever its guard allows. The clock keeps a ledger of the timers
that parts start, stop, pause and resume; a running timer may expire at any time.

One step of a system is one spontaneous event, one delivery from a channel, one loss, or one expiry, **run to completion**: the
part handles the event; each of its effects, in order, becomes an event of another part, put at the end of one queue; the queue
is worked off first in first out until it is empty. Nothing else happens in between. What is put into a channel is delivered by a
later step.

**Monitors** are machines that receive copies of events and effects and never answer: ground truth that no part can see.

Nothing gets lost silently: an effect that nobody receives is an error unless the system says that it leaves the system
(:class:`Absorbs`), and an event that nobody ever sends is an error unless the system says so (:class:`Unsent`).
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from turnproof.machines.kernel.evaluate import environment, fill, value
from turnproof.specs.language import AnyMachine, Property, Said
from turnproof.specs.symmetry import Interchangeable, check_interchangeable
from turnproof.specs.system_parts import AnyPart, Budget, Channel, May, Part, Switch
from turnproof.specs.system_words import Happening, Ledger, pending, received, sent, state, timer_is


def _class(thing: object) -> type:
    return thing if isinstance(thing, type) else type(thing)


def _matches(pattern: object, where: bool | None, thing: object) -> bool:
    return type(thing) is _class(pattern) and (where is None or bool(value(where, environment(thing))))


@attrs.frozen(eq=False)
class Wire:
    """Every effect of class ``effect`` of ``source``, where ``where`` holds of its fields, becomes ``event`` at ``to``.

    ``effect`` is an effect class, or ``symbol(EffectClass)`` when ``event`` or ``where`` read its fields. ``event`` is an event
    whose fields are constants or formulas over the effect; left out, the effect itself is the event. Several wires may carry one
    effect: each does.
    """

    source: AnyPart
    effect: object
    to: AnyPart | Channel
    event: object = None
    where: bool | None = None

    @property
    def effect_class(self) -> type:
        """The class of effect it carries."""
        return _class(self.effect)

    @property
    def event_class(self) -> type:
        """The class of event it delivers."""
        return self.effect_class if self.event is None else _class(self.event)

    @property
    def target(self) -> AnyPart:
        """The part that gets the event in the end."""
        return self.to.to if isinstance(self.to, Channel) else self.to

    def carries(self, effect: object) -> bool:
        """Whether this very effect goes along this wire."""
        return _matches(self.effect, self.where, effect)

    def arrives(self, effect: object) -> object:
        """The event that the effect becomes."""
        return _translated(self.event, effect)

    def __str__(self) -> str:
        by = f" through {self.to.name}" if isinstance(self.to, Channel) else ""
        return f"{self.source.name}.{self.effect_class.__name__} -> {self.target.name}.{self.event_class.__name__}{by}"


def _translated(template: object, thing: object) -> object:
    if template is None:
        return thing
    return template() if isinstance(template, type) else fill(template, environment(thing))


@attrs.frozen(eq=False)
class Empties:
    """The effect loses everything under way in ``channel``."""

    source: AnyPart
    effect: object
    channel: Channel
    where: bool | None = None

    @property
    def effect_class(self) -> type:
        """The class of effect that does it."""
        return _class(self.effect)

    def carries(self, effect: object) -> bool:
        """Whether this very effect does it."""
        return _matches(self.effect, self.where, effect)

    def __str__(self) -> str:
        return f"{self.source.name}.{self.effect_class.__name__} empties {self.channel.name}"


@attrs.frozen(eq=False)
class Copy:
    """A monitor gets a copy: every event or effect ``what`` of ``of`` becomes ``event`` at ``to``.

    ``said`` limits it to steps answered so. ``event`` and ``where`` may read the fields of ``what``, as in :class:`Wire`.
    """

    of: AnyPart
    what: object
    to: AnyPart
    event: object = None
    where: bool | None = None
    said: Said | None = None

    @property
    def what_class(self) -> type:
        """The class of event or effect it copies."""
        return _class(self.what)

    @property
    def event_class(self) -> type:
        """The class of event the monitor gets."""
        return self.what_class if self.event is None else _class(self.event)

    def sees(self, thing: object, said: Said) -> bool:
        """Whether it copies this event or effect of a step that was answered ``said``."""
        return (self.said is None or self.said is said) and _matches(self.what, self.where, thing)

    def arrives(self, thing: object) -> object:
        """The event the monitor gets."""
        return _translated(self.event, thing)

    def __str__(self) -> str:
        return f"{self.of.name}.{self.what_class.__name__} copied to {self.to.name}.{self.event_class.__name__}"


@attrs.frozen(eq=False, kw_only=True)
class Spontaneous:
    """``event`` may come to ``to`` from outside: at any time, or where ``when`` holds, if its switch is on, within its budget.

    ``event`` is an event class (then every event of the class over the explored domain), or an event whose fields are constants or
    formulas over the states of parts. ``when`` may read the states of parts, and the event's own fields through ``symbol(EventClass)``.
    """

    to: AnyPart = attrs.field(kw_only=False)
    event: object = attrs.field(kw_only=False)
    when: bool | None = None
    switch: Switch | None = None
    budget: Budget | None = None

    @property
    def event_class(self) -> type:
        """The class of event that comes."""
        return _class(self.event)

    def __str__(self) -> str:
        return f"{self.to.name}.{self.event_class.__name__}"


class _Named:
    def __init__(self, part: AnyPart, *classes: type, because: str = "") -> None:
        self.part, self.classes, self.because = part, classes, because


class Absorbs(_Named):
    """These effects of ``part`` leave the system: whoever performs them is not modelled. A wire that carries one is used all the same."""


class Unsent(_Named):
    """These events of ``part`` come from nobody in this system, on purpose.

    An expiry among them says that its timer is never started here; exploration fails if it is.
    """


# ── a system ──


@attrs.frozen(eq=False, kw_only=True)
class System:
    """Parts wired together. Raises :class:`TableError` with one sentence for each mistake."""

    name: str
    parts: tuple[AnyPart, ...]
    wires: tuple[Wire | Empties, ...] = ()
    channels: tuple[Channel, ...] = ()
    spontaneous: tuple[Spontaneous, ...] = ()
    monitors: tuple[AnyPart, ...] = ()
    copies: tuple[Copy, ...] = ()
    absorbed: tuple[Absorbs, ...] = ()
    unsent: tuple[Unsent, ...] = ()
    switches: tuple[Switch, ...] = ()
    cascade: int = 100
    """Most events delivered in one step; one more is an error: the parts answer each other for ever."""

    def __attrs_post_init__(self) -> None:
        from turnproof.specs.system_check import check_system

        check_system(self)

    @property
    def everyone(self) -> tuple[AnyPart, ...]:
        """Parts, then monitors."""
        return (*self.parts, *self.monitors)

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """Every budget in use, once, in order of first use."""
        uses = [s.budget for s in self.spontaneous]
        uses += [may.budget for c in self.channels for may in (c.lossy, c.droppable) if may is not None]
        return tuple(dict.fromkeys(b for b in uses if b is not None))

    def part(self, name: str) -> AnyPart:
        """The part or monitor of that name. Raises ``KeyError`` with the names there are."""
        for part in self.everyone:
            if part.name == name:
                return part
        raise KeyError(f"{self.name} has no part {name!r}; its parts: {', '.join(p.name for p in self.everyone)}")

    def with_machines(self, name: str, **machines: AnyMachine) -> System:
        """The same system under another name, with the machines of the parts so named replaced: for variants and mutants."""
        for part in machines:
            self.part(part)

        def changed(parts: tuple[AnyPart, ...]) -> tuple[AnyPart, ...]:
            return tuple(attrs.evolve(p, machine=machines[p.name]) if p.name in machines else p for p in parts)

        return attrs.evolve(self, name=name, parts=changed(self.parts), monitors=changed(self.monitors))


# ── a specification of a system ──


@attrs.frozen(eq=False, kw_only=True)
class NoDeadlock(Property):
    """In every reachable state some step changes something, unless ``unless`` holds there."""

    unless: bool | None = None


@attrs.frozen(eq=False, kw_only=True)
class Within(Property):
    """Once ``first`` holds (of a state, or of a step), ``then`` holds at most ``milliseconds`` later, although nobody helps.

    From then on the environment is silent and uses none of its switches: running timers fire, channels deliver, and the runtime does
    what it does at once (``at_once``: spontaneous events by which the system models that it reads a state). The bound is computed
    from the durations of the timers; reports give it, and the longest way.
    """

    first: bool = attrs.field(kw_only=False)
    then: bool = attrs.field(kw_only=False)
    milliseconds: int
    at_once: tuple[type, ...] = ()


@attrs.frozen(eq=False, kw_only=True)
class SystemVariant:
    """A system that was wrong, or would be: it must violate ``violates``, in that many steps at the shortest."""

    system: System
    about: str
    violates: Mapping[str, int]
    """Property name -> length of the shortest counterexample, in steps of the system."""
    properties: tuple[Property, ...] | None = None
    """Instead of the specification's own, where the variant's parts differ in their vocabulary."""


@attrs.frozen(eq=False, kw_only=True)
class SystemSpec:
    """What must hold of a system, within which bounds it is explored, and which designs must fail it.

    Properties are those of :mod:`turnproof.specs.language`, written over ``part.now``, ``part.next`` and the words of a step,
    and :class:`NoDeadlock`. Instead of history variables a system has monitors.
    """

    system: System
    requirements: Mapping[str, str]
    properties: tuple[Property, ...]
    tests: Mapping[str, str] = attrs.field(factory=dict)
    """Requirement id -> pytest node id of the named test that discharges it."""
    elsewhere: Mapping[str, str] = attrs.field(factory=dict)
    """Requirement id -> name of the specification that discharges it."""
    variants: tuple[SystemVariant, ...] = ()
    lemmas: tuple[tuple[str, bool], ...] = ()
    """The author's own lemmas for the proof, each a name and a formula over the states of parts."""
    tokens: int = 2
    """Fresh identities explored; one common set for all parts."""
    counter: int = 2
    """Bound of counters when explored; a step beyond it is cut off, and the report says so."""
    proved: bool = False
    """Whether every verification proves it, not only one that asks for the symbolic engine: a proof may take minutes, or be none."""
    companions: tuple[str, ...] = ()
    """Names of the systems that are verified whenever this one is asked for by name: they show what it promises from another side."""
    interchangeable: tuple[Interchangeable, ...] = ()
    """What may be exchanged without anybody noticing; checked. ``--symmetry`` then walks one state for all that differ by an exchange."""

    def __attrs_post_init__(self) -> None:
        from turnproof.specs.system_check import check_spec

        check_spec(self)
        check_interchangeable(self)

    def undischarged(self) -> tuple[str, ...]:
        """Requirements with neither a property, nor a named test, nor a specification elsewhere that discharges them."""
        covered = {rid for prop in self.properties for rid in prop.requirements} | set(self.tests) | set(self.elsewhere)
        return tuple(rid for rid in self.requirements if rid not in covered)


__all__ = [
    "Absorbs",
    "AnyPart",
    "Budget",
    "Channel",
    "Copy",
    "Empties",
    "Happening",
    "Interchangeable",
    "Ledger",
    "May",
    "NoDeadlock",
    "Part",
    "Spontaneous",
    "Switch",
    "System",
    "SystemSpec",
    "SystemVariant",
    "Unsent",
    "Wire",
    "Within",
    "pending",
    "received",
    "sent",
    "state",
    "timer_is",
]
