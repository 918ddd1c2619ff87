"""The language of specifications: properties are values with a sentence for a name.

A property is checked by every engine that can read it; engines know this file and the kernel, never a particular machine.

| property | meaning | engines |
|---|---|---|
| :class:`Always` | holds in every reachable state | explicit, symbolic |
| :class:`Step` | holds of every step: state before, event, answer, effects, state after (an action property of TLA+) | explicit, symbolic |
| :class:`Sometimes` | some reachable state, or some step, satisfies it; a specification that checks nothing fails here | explicit |
| :class:`Order` | where a step emits both, one class of effect comes before another | explicit |
| :class:`Carries` | an opaque value is carried where it belongs, whatever it is | explicit, symbolic |
| :class:`LeadsTo` | whenever the first holds, the second holds then or later, under the stated fairness | explicit |
| :class:`EventuallyAlways` | from some moment on it holds for ever, under the stated fairness | explicit |

``never``, ``refuses`` and ``at_most`` are sugar for these. A history variable records what already happened where the state
itself does not say (Abadi and Lamport, "The existence of refinement mappings", 1991).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, TypeVar, cast

import attrs

from turnproof.machines.kernel import (
    Formula,
    Kind,
    Machine,
    Range,
    TableError,
    Variable,
    fields_of,
    formula,
    implies,
    not_,
    symbol,
)

T = TypeVar("T")
AnyMachine = Machine[Any, Any, Any]


# ── the words of a step ──


class Said(Enum):
    """The three answers of a step."""

    TAKEN = "taken"
    IGNORED = "ignored"
    REFUSED = "refused"


@attrs.frozen(eq=False)
class OnEvent(Variable):
    """True in a step whose event is of class ``owner``."""

    def __str__(self) -> str:
        return f"on {self.owner.__name__}"


@attrs.frozen(eq=False)
class Answered(Variable):
    """True in a step that is answered as ``said``."""

    said: Said = Said.TAKEN

    def __str__(self) -> str:
        return self.said.value


@attrs.frozen(eq=False)
class Emitted(Variable):
    """How many effects of class ``owner`` the step emits whose fields equal ``fields`` (constants or formulas over the step)."""

    fields: tuple[tuple[str, object], ...] = ()

    # Two patterns of one class differ in their fields, which hold formulas and so cannot be compared: each is equal to itself alone.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __str__(self) -> str:
        inside = ", ".join(f"{n}={v.name.lower() if isinstance(v, Enum) else v}" for n, v in self.fields)
        return f"emitted {self.owner.__name__}({inside})"

    def inner(self) -> tuple[object, ...]:
        """The field values of the pattern."""
        return tuple(v for _, v in self.fields)


def after(cls: type[T]) -> T:
    """The state after the step; ``symbol(cls)`` is the state before it."""
    return symbol(cls, scope="next")


def on(*events: type | object) -> bool:
    """The event of the step is of one of these classes."""
    first, *rest = (Formula("var", (OnEvent(e if isinstance(e, type) else type(e), "", "event"),)) for e in events)
    for other in rest:
        first = Formula("or", (first, other))
    return cast(bool, first)


def taken() -> bool:
    """The step was taken."""
    return _answered(Said.TAKEN)


def ignored() -> bool:
    """The step was ignored."""
    return _answered(Said.IGNORED)


def refused() -> bool:
    """The step was refused."""
    return _answered(Said.REFUSED)


def _answered(said: Said) -> bool:
    return cast(bool, Formula("var", (Answered(Said, said.value, "answer", said),)))


def count(effect: type, **fields: object) -> int:
    """How many effects of this class, with these field values, the step emits."""
    unknown = [n for n in fields if n not in {f.name for f in attrs.fields(cast(Any, effect))}]
    if unknown:
        raise TableError(f"count({effect.__name__}, ...): it has no field {unknown[0]!r}")
    return cast(int, Formula("var", (Emitted(effect, "", "effects", tuple(fields.items())),)))


def emits(effect: type, **fields: object) -> bool:
    """The step emits at least one such effect."""
    return count(effect, **fields) >= 1


# ── properties ──


def _ids(ids: str | Sequence[str]) -> tuple[str, ...]:
    return (ids,) if isinstance(ids, str) else tuple(ids)


@attrs.frozen(eq=False, kw_only=True)
class Property:
    """A sentence, what it means, and the requirements it discharges."""

    name: str = attrs.field(kw_only=False)
    """The sentence. Unique within a specification."""
    requirements: tuple[str, ...] = attrs.field(kw_only=True, converter=_ids)
    harm: str = ""
    """Who is hurt how when it breaks; the last line of a counterexample."""


@attrs.frozen(eq=False, kw_only=True)
class Always(Property):
    """``holds`` (over the state and history variables) in every reachable state."""

    holds: bool = attrs.field(kw_only=False)


@attrs.frozen(eq=False, kw_only=True)
class Step(Property):
    """``holds`` (over both states, event, answer, effects) of every step from a reachable state."""

    holds: bool = attrs.field(kw_only=False)


@attrs.frozen(eq=False, kw_only=True)
class Sometimes(Property):
    """``holds`` is reached: by a state, or by a step if it uses words of a step."""

    holds: bool = attrs.field(kw_only=False)


@attrs.frozen(eq=False)
class Fair:
    """A fairness assumption: where ``enabled`` (over the state) holds, a step that satisfies ``taken`` happens at last.

    Weak (the default): if enabled from some point on for ever. Strong: if enabled again and again. A step that changes no
    state and emits nothing is no step taken, as in TLA+; nor is one that is ignored or refused, unless ``taken`` asks for it by
    :func:`ignored` or :func:`refused`.
    """

    name: str
    enabled: bool
    taken: bool
    strong: bool = False


@attrs.frozen(eq=False, kw_only=True)
class LeadsTo(Property):
    """Whenever ``first`` holds, ``then`` holds at that moment or later, on every run that satisfies ``fairness``."""

    first: bool = attrs.field(kw_only=False)
    then: bool = attrs.field(kw_only=False)
    fairness: tuple[Fair, ...] = ()


@attrs.frozen(eq=False, kw_only=True)
class EventuallyAlways(Property):
    """On every run that satisfies ``fairness``, ``holds`` (over the state and history variables) is true from some moment on for ever."""

    holds: bool = attrs.field(kw_only=False)
    fairness: tuple[Fair, ...] = ()


def effect_name(effect: object) -> str:
    """A class of effect, or one effect, as reports name it."""
    if isinstance(effect, type):
        return effect.__name__
    fields = (getattr(effect, f.name) for f in attrs.fields(type(cast(Any, effect))))
    return f"{type(effect).__name__}({', '.join(v.name.lower() if isinstance(v, Enum) else str(v) for v in fields)})"


def _is_one(effect: object, pattern: object) -> bool:
    if isinstance(pattern, type):
        return type(effect) is pattern
    readable = (name for name, field in fields_of(type(pattern)).items() if field.kind is not Kind.OPAQUE)
    return type(effect) is type(pattern) and all(getattr(effect, name) == getattr(pattern, name) for name in readable)


@attrs.frozen(eq=False, kw_only=True)
class Order(Property):
    """In every step that satisfies ``when`` and emits both, every effect ``first`` comes before every effect ``second``.

    Each is a class of effect, or one effect whose fields are constants. What is done first may come back as an event while the rest
    is still undone; the order of effects is a promise of its own.
    """

    first: object = attrs.field(kw_only=False)
    second: object = attrs.field(kw_only=False)
    rest: tuple[object, ...] = ()
    """Further effects, each after all of those before it."""
    when: bool | None = None

    @property
    def all(self) -> tuple[object, ...]:
        """All the effects it puts in order."""
        return (self.first, self.second, *self.rest)

    def places(self, effects: Sequence[object]) -> list[int]:
        """For each of these effects that it speaks of, in their order: its place in :attr:`all`."""
        found = (next((n for n, one in enumerate(self.all) if _is_one(effect, one)), -1) for effect in effects)
        return [place for place in found if place >= 0]

    def broken_by(self, effects: Sequence[object]) -> bool:
        """Whether these effects of one step come in the wrong order."""
        places = self.places(effects)
        return places != sorted(places)


@attrs.frozen(eq=False, kw_only=True)
class Carries(Property):
    """In every step that is taken and satisfies ``when``, the opaque ``field`` of ``carrier`` holds ``expected``.

    ``carrier`` is a class of effect (then every such effect whose other fields equal ``matching``), or the machine's state (then
    the state after the step). ``expected`` is an expression over the state before and the event, or a constant; alone of all
    properties it may read Opaque fields. No row decides by an opaque value and one value of each is explored, so exploring shows
    nothing of them: the property speaks of whatever values state and event may hold, and of any count where the row answers.
    """

    carrier: type = attrs.field(kw_only=False)
    field: str = attrs.field(kw_only=False)
    expected: object = attrs.field(kw_only=False)
    when: bool | None = None
    matching: Mapping[str, object] = attrs.field(factory=dict)


def never(name: str, bad: bool, *, requirements: str | Sequence[str], harm: str = "") -> Always:
    """``bad`` holds in no reachable state. ``name`` says what is true of every run: "no reply is ..."."""
    return Always(name, not_(bad), requirements=requirements, harm=harm)


def refuses(name: str, event: type | Sequence[type], when: bool, *, requirements: str | Sequence[str], harm: str = "") -> Step:
    """Every such event is refused wherever ``when`` holds (a refusal changes nothing and emits nothing, by construction)."""
    events = (event,) if isinstance(event, type) else tuple(event)
    return Step(name, implies(on(*events) & when, refused()), requirements=requirements, harm=harm)


# ── history ──


@attrs.frozen(eq=False)
class History:
    """A variable that records the past of a run. In each step the first rule whose condition holds updates it; else it stays.

    ``now`` is ``symbol(type(initial))``; a rule is a pair (condition over the step, ``evolve(now, ...)``).
    """

    initial: object
    now: object
    rules: tuple[tuple[bool, object], ...]


def counting(name: str, bound: int, what: int) -> tuple[History, int]:
    """A history variable that counts effects up to ``bound`` + 1, and the formula that reads it. ``what`` is a :func:`count`."""
    namespace = {"__annotations__": {name: Annotated[int, Range(0, bound + 1)]}, name: 0, "__module__": __name__}
    cls = attrs.frozen(type(f"Count_{name}", (), namespace))
    now = symbol(cast(Any, cls))
    so_far = getattr(now, name)
    rules = tuple(
        (
            (so_far == n) & (what == k) if n + k <= bound else (so_far == n) & (what >= k),
            attrs.evolve(cast(Any, now), **{name: min(n + k, bound + 1)}),
        )
        for n in range(bound + 1)
        for k in range(1, bound + 2 - n)
    )
    return History(cls(), now, rules), cast(int, so_far)


def at_most(
    limit: int, what: int, name: str, *, variable: str, requirements: str | Sequence[str], harm: str = ""
) -> tuple[Always, History]:
    """No run emits ``what`` (a :func:`count`) more than ``limit`` times. ``variable`` names the counter in reports."""
    history, so_far = counting(variable, limit, what)
    return Always(name, so_far <= limit, requirements=requirements, harm=harm), history


# ── a specification ──


@attrs.frozen(eq=False, kw_only=True)
class Variant:
    """A design that shipped and was wrong (or a plausible mistake): it must violate ``violates``, in ``length`` steps at the shortest."""

    machine: AnyMachine
    about: str
    """What it was, when, and its bug, with the source."""
    violates: Mapping[str, int]
    """Property name -> length of the shortest counterexample (events)."""


def _check_order(prop: Order, machine: AnyMachine) -> None:
    for one in prop.all:
        effect = one if isinstance(one, type) else type(one)
        if effect not in machine.effects:
            raise TableError(f"property {prop.name!r} orders {effect.__name__}, which is no effect of {machine.name}")
        if prop.all.count(one) > 1:
            raise TableError(f"property {prop.name!r} orders {effect_name(one)} before itself")


def _check_carries(prop: Carries, machine: AnyMachine) -> None:
    place = f"property {prop.name!r}"
    if prop.carrier is not machine.state and prop.carrier not in machine.effects:
        raise TableError(f"{place}: {prop.carrier.__name__} is neither an effect of {machine.name} nor its state")
    known = fields_of(prop.carrier)
    for name in (prop.field, *prop.matching):
        if name not in known:
            raise TableError(f"{place}: {prop.carrier.__name__} has no field {name!r}; it has {', '.join(known)}")
    if known[prop.field].kind is not Kind.OPAQUE:
        raise TableError(f"{place}: {known[prop.field]} is not Opaque: write a Step, or count({prop.carrier.__name__}, {prop.field}=...)")
    if any(known[name].kind is Kind.OPAQUE for name in prop.matching) or (prop.matching and prop.carrier is machine.state):
        raise TableError(f"{place}: matching= picks effects by fields that are not Opaque; for the state, write when=")


@attrs.frozen(eq=False, kw_only=True)
class Spec:
    """What must hold of one machine, within which bounds it is explored, and which designs must fail it."""

    machine: AnyMachine
    requirements: Mapping[str, str]
    """Requirement id -> its sentence."""
    properties: tuple[Property, ...]
    histories: tuple[History, ...] = ()
    tests: Mapping[str, str] = attrs.field(factory=dict)
    """Requirement id -> pytest node id of the named test that discharges it (for what no state property can say)."""
    elsewhere: Mapping[str, str] = attrs.field(factory=dict)
    """Requirement id -> name of the system or specification that discharges it."""
    total: tuple[str, ...] = ()
    """Ids of the requirements that a row for every reachable pair discharges."""
    variants: tuple[Variant, ...] = ()
    lemmas: tuple[tuple[str, bool], ...] = ()
    """The author's own lemmas for the proof, each a name and a formula over the state."""
    assume: bool | None = None
    """Environment assumption over state and event (before the step); steps outside it are not explored. Printed in the report."""
    tokens: int = 2
    """Fresh identities explored."""
    counter: int = 2
    """Bound of counters when explored."""
    discipline: Mapping[Enum, tuple[str, ...]] = attrs.field(factory=dict)
    """Timer -> ids of the requirements that its discipline (armed where the state says so, never twice) discharges."""
    actors: Mapping[type, str] = attrs.field(factory=dict)
    """Event class -> who sends it, for stories. A timer sends its expiry; whatever is not named comes from the environment."""
    recordings: Mapping[str, str] = attrs.field(factory=dict)
    """Recording of a real program, as a path from the root of the checkout -> the machine or variant that explains all of it."""

    def __attrs_post_init__(self) -> None:
        seen: set[str] = set()
        for prop in self.properties:
            if prop.name in seen:
                raise TableError(f"two properties are called {prop.name!r}")
            seen.add(prop.name)
            for rid in prop.requirements:
                if rid not in self.requirements:
                    raise TableError(f"property {prop.name!r} names {rid}, which is no requirement of this specification")
            if isinstance(prop, (Always, Step, Sometimes, EventuallyAlways)):
                formula(prop.holds, f"property {prop.name!r}")
            if isinstance(prop, Order):
                _check_order(prop, self.machine)
            if isinstance(prop, Carries):
                _check_carries(prop, self.machine)
        designs = [self.machine.name, *(variant.machine.name for variant in self.variants)]
        for path, design in self.recordings.items():
            if design not in designs:
                raise TableError(f"recording {path!r} is said to be explained by {design!r}; there are: {', '.join(designs)}")
        if not self.properties:
            raise TableError(f"the specification of {self.machine.name} checks nothing: it has no property")

    def undischarged(self) -> tuple[str, ...]:
        """Requirements with neither a property, nor a timer's discipline, nor a named test, nor a system that discharges them."""
        covered = {rid for prop in self.properties for rid in prop.requirements} | set(self.tests) | set(self.elsewhere)
        covered |= {rid for ids in self.discipline.values() for rid in ids} | set(self.total)
        return tuple(rid for rid in self.requirements if rid not in covered)
