"""Random systems with something to exchange: replicas beside a centre, or tokens that stand for nobody in particular."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from random_systems import Call, Maker, Named, Ping, Plain, Sized, Tell, call, named_, sized, tell

from turnproof.specs.system import AnyPart, Budget, Channel, Interchangeable, May, Part, Spontaneous, System, Wire


class SymmetricMaker(Maker):
    """Makes the same random choices for each replica."""

    free = False
    """No choice names a token."""

    def pick(self, *choices: Any) -> Any:
        found = super().pick(*choices)
        if not self.free:
            return found
        return (
            ""
            if isinstance(found, str) and found in ("a", "b")
            else Named
            if isinstance(found, Named) and isinstance(found.tag, str)
            else found
        )

    def alike(self, make: Callable[[Any], Any], replicas: Any) -> list[Any]:
        """``make`` for each of them, with the same luck."""
        luck = self.chance.getstate()
        made = []
        for one in replicas:
            self.chance.setstate(luck)
            made.append(make(one))
        return made

    def symmetric(self) -> tuple[System, tuple[Interchangeable, ...]]:
        """A system, and what may be exchanged in it: replicas, tokens, or both."""
        self.free = self.some(0.5)
        count = self.pick(2, 2, 3)
        centre: AnyPart = Part("centre", self.machine("the_centre"))
        machine = self.machine("replica")
        replicas: list[AnyPart] = [Part(f"replica_{n}", machine) for n in range(count)]
        budget = self.pick(None, 1, 2)
        budgets = [None if budget is None else Budget(f"left_{n}", budget) for n in range(count)]
        ups = self.alike(lambda n: self._channel(f"up_{n}", self.pick(centre, replicas[n]), replicas[n], centre), range(count))
        downs = self.alike(lambda n: self._channel(f"down_{n}", replicas[n], replicas[n], centre), range(count))
        several = self.alike(lambda n: self._wires(replicas[n], ups[n], downs[n], centre), range(count))
        wires = [wire for some in several for wire in some]
        spontaneous = [s for several in self.alike(lambda n: self._comes(replicas[n], budgets[n], centre), range(count)) for s in several]
        spontaneous += self._comes(centre, None, centre)
        monitor, copies = self.monitor((centre,))
        system: dict[str, Any] = {
            "name": "random", "parts": (centre, *replicas), "wires": tuple(wires), "channels": (*ups, *downs),
            "spontaneous": tuple(spontaneous), "monitors": (monitor,) if monitor else (), "copies": copies, "cascade": self.pick(6, 100),
        }  # fmt: skip
        made = System(**system, **self.declared(system))
        used = {b.name for b in made.budgets}
        columns = [(replicas[n], ups[n], downs[n], *([b] if (b := budgets[n]) and b.name in used else ())) for n in range(count)]
        tokens = (Interchangeable("a", "b"),) if self.free else ()
        return made, (Interchangeable(*columns), *tokens)

    def _channel(self, name: str, to: AnyPart, one: AnyPart, centre: AnyPart) -> Channel:
        lossy = May(when=self.guard((centre, one)) if self.some(0.3) else None) if self.some(0.4) else None
        held = self.guard((centre, one)) if self.some(0.2) else None
        return Channel(name, to, capacity=self.pick(1, 2), reordered=self.some(0.3), lossy=lossy, when=held)

    def _wires(self, one: AnyPart, up: Channel, down: Channel, centre: AnyPart) -> list[Wire]:
        made = [self.pick(Wire(one, Ping, up, Plain()), Wire(one, tell, up, Sized(tell.size), where=tell.size > 0))]
        made.append(self.pick(Wire(one, call, up, Named(call.tag)), Wire(one, Call, centre, Plain())))
        made.append(
            self.pick(Wire(centre, Ping, down, Plain()), Wire(centre, Tell, down, Plain()), Wire(centre, call, down, Named(call.tag)))
        )
        return made

    def _comes(self, one: AnyPart, budget: Budget | None, centre: AnyPart) -> list[Spontaneous]:
        made = []
        for _ in range(self.pick(1, 2)):
            event = self.pick(Plain, Sized, Sized(1), Named, named_, Sized(centre.now.size), sized)
            made.append(Spontaneous(one, event, when=self.guard((one, centre)) if self.some(0.5) else None, budget=budget))
        return made


__all__ = ["SymmetricMaker"]
