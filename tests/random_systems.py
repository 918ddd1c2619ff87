"""Random small systems, with everything the language has: for comparing engines with each other."""

from __future__ import annotations

import random
from enum import Enum
from typing import Annotated, Any

import attrs
from attrs import evolve, frozen

from turnproof.machines.kernel import (
    Counter,
    Duration,
    Formula,
    Machine,
    PauseTimer,
    Range,
    ResumeTimer,
    Row,
    StartTimer,
    StopTimer,
    TimerRule,
    Token,
    choose,
    formula,
    not_,
    only_if,
    symbol,
)
from turnproof.specs.language import Said
from turnproof.specs.system import (
    Absorbs,
    AnyPart,
    Budget,
    Channel,
    Copy,
    Empties,
    May,
    Part,
    Spontaneous,
    Switch,
    System,
    Unsent,
    Wire,
)

AnyMachine = Machine[Any, Any, Any]


class Phase(Enum):
    RED = "red"
    GREEN = "green"
    BLUE = "blue"


class Clock(Enum):
    TICK = "tick"
    """It ticks."""


@frozen
class Thing:
    phase: Phase = Phase.RED
    size: Annotated[int, Range(0, 2)] = 0
    flag: bool = False
    count: Annotated[int, Counter] = 0
    tag: Annotated[str, Token] = ""


@frozen
class Plain:
    pass


@frozen
class Sized:
    size: Annotated[int, Range(0, 2)]


@frozen
class Named:
    tag: Annotated[str, Token]


@frozen
class Ticked:
    pass


@frozen
class Ping:
    pass


@frozen
class Tell:
    size: Annotated[int, Range(0, 2)]


@frozen
class Call:
    tag: Annotated[str, Token]


EVENTS: tuple[type, ...] = (Plain, Sized, Named, Ticked)
EFFECTS: tuple[type, ...] = (Ping, Tell, Call)
TIMERS = (StartTimer, StopTimer, PauseTimer, ResumeTimer)
thing, sized, named_, tell, call = symbol(Thing), symbol(Sized), symbol(Named), symbol(Tell), symbol(Call)


class Maker:
    """Makes machines, systems and questions from one seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def pick(self, *choices: Any) -> Any:
        return self.chance.choice(choices)

    def some(self, probability: float) -> bool:
        return self.chance.random() < probability

    # ── machines ──

    def condition(self, now: Thing, event: object = None) -> Any:
        """A condition on one state (and an event's fields)."""
        terms: list[Any] = [
            now.phase == self.pick(*Phase),
            now.size >= self.pick(1, 2),
            now.flag == self.pick(True, False),
            now.tag == self.pick("", "a", "b"),
            now.count < self.pick(1, 2),
        ]
        if isinstance(event, Sized):
            terms += [event.size == now.size, event.size > self.pick(0, 1)]
        if isinstance(event, Named):
            terms += [event.tag == now.tag, event.tag != ""]
        found = self.pick(*terms)
        if self.some(0.3):
            found = not_(found)
        return found & self.condition(now, event) if self.some(0.25) else found | self.condition(now, event) if self.some(0.2) else found

    def update(self, event: object) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        if self.some(0.4):
            fields["size"] = self.pick(0, 1, 2, *((event.size,) if isinstance(event, Sized) else ()), choose(thing.flag, 1, thing.size))
        if self.some(0.3):
            fields["flag"] = self.pick(True, False, not_(thing.flag))
        if self.some(0.15):
            fields["count"] = thing.count + 1
        if self.some(0.3):
            fields["tag"] = self.pick("", "a", *((event.tag,) if isinstance(event, Named) else ()))
        return fields

    def effects(self, event: object) -> tuple[Any, ...]:
        every = [
            Ping(),
            Tell(self.pick(0, 1, thing.size, *((event.size,) if isinstance(event, Sized) else ()))),
            Call(self.pick("a", thing.tag, *((event.tag,) if isinstance(event, Named) else ()))),
            self.pick(*TIMERS)(Clock.TICK),
        ]
        chosen = self.chance.sample(every, self.pick(0, 0, 1, 1, 2))
        return tuple(only_if(thing.flag, e) if self.some(0.2) else e for e in chosen)

    def machine(self, name: str) -> AnyMachine:
        rows: list[Row[Any, Any]] = []
        for event in (Plain(), sized, named_, Ticked()):
            for _ in range(self.pick(1, 2, 3)):
                data = self.update(event)
                emit, to = self.effects(event), self.pick(None, *Phase)
                takes = {"data": evolve(thing, **data) if data else None, "emit": emit, "to": to, "stay": not (data or emit or to)}
                answer: dict[str, Any] = {"ignore": "so"} if self.some(0.1) else {"refuse": "so"} if self.some(0.1) else takes
                at = self.chance.sample(list(Phase), self.pick(1, 2)) if self.some(0.7) else None
                rows.append(Row(event, at=at, when=self.condition(thing, event) if self.some(0.5) else None, **answer))
            if self.some(0.93):
                rows.append(Row(event, ignore="otherwise"))
        return Machine(
            name=name, initial=Thing(), now=thing, events=EVENTS, effects=(*EFFECTS, *TIMERS), rows=tuple(rows),
            timers=(TimerRule(Clock.TICK, thing.flag == True, Ticked, Duration(1, "test")),),  # noqa: E712
        )  # fmt: skip

    # ── systems ──

    def guard(self, parts: tuple[AnyPart, ...]) -> Any:
        """A condition on several parts."""
        one, other = self.pick(*parts), self.pick(*parts)
        terms: list[Any] = [
            self.condition(one.now),
            one.now.size >= other.now.size,
            one.now.tag == other.now.tag,
            one.now.phase != other.now.phase,
            one.now.size + other.now.size < self.pick(2, 3),
            (one.running(Clock.TICK) if one.machine.timers else one.now.flag) | other.now.flag,
            choose(one.now.flag, other.now.size, one.now.size) == 1,
        ]
        found = self.pick(*terms)
        return found & self.guard(parts) if self.some(0.3) else not_(found) if self.some(0.2) else found

    def event_of(self, effect: object) -> Any:
        """An event that the effect may become."""
        return self.pick(
            Plain,
            Sized(effect.size if isinstance(effect, Tell) and self.some(0.7) else self.pick(0, 1)),
            Named(effect.tag if isinstance(effect, Call) and self.some(0.7) else self.pick("", "a")),
        )

    def system(self, name: str = "random") -> System:
        machines = [self.machine(f"m{n}") for n in range(2)]
        parts = tuple(Part(f"p{n}", self.pick(*machines)) for n in range(self.pick(2, 2, 3)))
        switch, shared = Switch("s"), Budget("shared", self.pick(1, 2))
        channels = tuple(self.channel(f"c{n}", parts, switch) for n in range(self.pick(0, 1, 1, 2)))
        wires: list[Wire | Empties] = []
        for part in parts:
            for effect in (Ping(), tell, call):
                for _ in range(self.pick(0, 1, 1, 2)):
                    where = self.pick(tell.size > 0, tell.size == 1) if effect is tell and self.some(0.3) else None
                    wires.append(Wire(part, effect, self.pick(*parts, *channels), self.event_of(effect), where=where))
                if channels and self.some(0.08):
                    wires.append(Empties(part, effect, self.pick(*channels)))
        used = tuple(c for c in channels if any(isinstance(w, Wire) and w.to is c for w in wires))
        wires = [w for w in wires if not isinstance(w, Empties) or w.channel in used]
        monitor, copies = self.monitor(parts)
        system: dict[str, Any] = {
            "name": name, "parts": parts, "wires": tuple(wires), "channels": used, "spontaneous": self.spontaneous(parts, switch, shared),
            "monitors": (monitor,) if monitor else (), "copies": copies, "cascade": self.pick(4, 8, 100),
        }  # fmt: skip
        mays = [m for c in used for m in (c.lossy, c.droppable) if m is not None]
        system["switches"] = (switch,) if any(x.switch is switch for x in (*system["spontaneous"], *mays)) else ()
        return System(**system, **self.declared(system))

    def channel(self, name: str, parts: tuple[AnyPart, ...], switch: Switch) -> Channel:
        return Channel(
            name, self.pick(*parts), capacity=self.pick(1, 2, 2), reordered=self.some(0.3),
            when=self.guard(parts) if self.some(0.2) else None,
            lossy=May(switch=switch if self.some(0.3) else None, budget=Budget(f"{name} losses", 1) if self.some(0.5) else None)
            if self.some(0.4) else None,
            droppable=May(when=self.guard(parts) if self.some(0.5) else None) if self.some(0.3) else None,
        )  # fmt: skip

    def spontaneous(self, parts: tuple[AnyPart, ...], switch: Switch, shared: Budget) -> tuple[Spontaneous, ...]:
        made: list[Spontaneous] = []
        for part in parts:
            for _ in range(self.pick(1, 2, 3)):
                event = self.pick(Plain, Sized, Sized(1), Sized(parts[0].now.size), Named, Named("a"), sized)
                when = self.guard(parts) if self.some(0.4) else None
                if event is sized and self.some(0.7):
                    when = sized.size > 0
                budget = self.pick(shared, None, None, None, Budget(f"b{len(made)}", self.pick(1, 2)))
                made.append(Spontaneous(part, event, when=when, budget=budget, switch=switch if self.some(0.2) else None))
        return tuple(made)

    def monitor(self, parts: tuple[AnyPart, ...]) -> tuple[AnyPart | None, tuple[Copy, ...]]:
        if self.some(0.5):
            return None, ()
        rows: tuple[Row[Any, Any], ...] = (
            Row(Plain, at=Phase.RED, to=Phase.GREEN),
            Row(Plain, at=Phase.GREEN, when=not_(thing.flag), data=evolve(thing, flag=True)),
            Row(Plain, ignore="seen"),
        )
        machine: AnyMachine = Machine(name="monitor", initial=Thing(), now=thing, events=(Plain,), effects=(), rows=rows)
        monitor: AnyPart = Part("monitor", machine)
        what = self.pick(Ping, Sized, Ticked, tell)
        where = tell.size > 0 if what is tell else None
        return monitor, (Copy(self.pick(*parts), what, monitor, Plain(), where=where, said=self.pick(None, Said.TAKEN)),)

    @staticmethod
    def declared(system: dict[str, Any]) -> dict[str, Any]:
        """What nobody receives and nobody sends, declared; but an effect that is wired anywhere must be carried, or is an error."""
        absorbed, unsent = [], []
        for part in system["parts"]:
            emitted = {type(getattr(i, "effect", i)) for row in part.machine.rows for i in row.emit} & set(EFFECTS)
            wired = {w.effect_class for w in system["wires"] if w.source is part}
            absorbed.append(Absorbs(part, *(cls for cls in EFFECTS if cls in emitted - wired)))
            sent = {w.event_class for w in system["wires"] if isinstance(w, Wire) and w.target is part}
            sent |= {s.event_class for s in system["spontaneous"] if s.to is part}
            unsent.append(Unsent(part, *(cls for cls in (Plain, Sized, Named) if cls not in sent)))
        return {"absorbed": tuple(absorbed), "unsent": tuple(unsent)}

    # ── questions ──

    def state_formula(self, system: System) -> Formula:
        found: Any = self.guard(system.everyone)
        if system.channels and self.some(0.3):
            found = found & (self.pick(*system.channels).length >= 1)
        return formula(found, "a question")

    def step_formula(self, system: System) -> Formula:
        part, other = self.pick(*system.parts), self.pick(*system.parts)
        terms: list[Any] = [
            part.on(self.pick(*EVENTS)),
            part.took(Sized, size=self.pick(0, 1)),
            part.ignored(self.pick(*EVENTS)),
            part.refused(self.pick(*EVENTS)),
            part.emits(Ping),
            part.count(Tell, size=part.now.size) == 1,
            part.received(Plain) == 2,
            part.received(Plain) < other.received(Plain) + 1,
            part.next.size > part.now.size,
            part.next.tag != other.now.tag,
            other.next.phase == Phase.BLUE,
        ]
        if system.channels:
            channel = self.pick(*system.channels)
            terms += [channel.delivers, channel.loses, channel.drops]
        found = self.pick(*terms)
        found = found & self.pick(*terms) if self.some(0.5) else found | self.pick(*terms) if self.some(0.2) else found
        found = found & self.guard(system.everyone) if self.some(0.3) else found
        return formula(not_(found) if self.some(0.15) else found, "a question")


def described(system: System) -> str:
    """Which features a system uses, for a test that every feature is met."""
    features = [type(w).__name__ for w in system.wires]
    for channel in system.channels:
        kinds = {"reordered": channel.reordered, "lossy": channel.lossy, "droppable": channel.droppable, "held": channel.when is not None}
        features += [name for name, used in kinds.items() if used]
    features += ["monitor"] * len(system.monitors) + ["switch"] * len(system.switches)
    return " ".join(sorted({*features, *(["budget"] if system.budgets else [])}))


__all__ = ["Maker", "attrs", "described"]
