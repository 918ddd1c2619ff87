"""The same interface as the virtual clock on real time, so that a scenario that passed in no time can be played once for real.

Real time is scaled: at ``scale=0.001`` a minute of the scenario takes 60 ms. A scenario for both clocks takes its durations from the clock
(``durations_ms``), and asks for order and for "not before", never for an exact instant: a busy machine is late.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from enum import Enum
from typing import Any, Protocol, TypeVar

from turnproof.machines.kernel import Machine

T = TypeVar("T")

TURNS = 50
"""Turns of the loop after which everything that can happen at once is taken to have happened."""


class Clock(Protocol):
    """What a scenario may ask of a clock, virtual or real."""

    @property
    def now_ms(self) -> int:
        """Milliseconds of the scenario."""

    def durations_ms(self, machine: Machine[Any, Any, Any]) -> Mapping[Enum, int]:
        """The durations of the timers of ``machine`` on the loop, for the ``durations_ms`` of a runner."""

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run ``main`` to its end."""

    async def settle(self) -> None:
        """Let everything happen that can happen at once."""

    async def advance(self, ms: float) -> None:
        """Let ``ms`` milliseconds of the scenario pass, and everything that is due in them happen."""


class RealClock:
    """Runs coroutines on asyncio's own loop. ``scale``: real seconds for a second of the scenario, more than 0."""

    def __init__(self, scale: float = 0.001) -> None:
        if not 0 < scale <= 1:
            raise ValueError(f"scale={scale}: expected more than 0, and 1 at most")
        self.scale = scale
        self._runner = asyncio.Runner()
        self._start = self._runner.get_loop().time()

    @property
    def now_ms(self) -> int:
        """Milliseconds of the scenario since the clock was made, rounded down."""
        return int((self._runner.get_loop().time() - self._start) * 1000 / self.scale)

    def durations_ms(self, machine: Machine[Any, Any, Any]) -> Mapping[Enum, int]:
        """The durations of the machine, scaled; 1 ms at the least."""
        return {rule.timer: max(1, round(rule.duration.milliseconds * self.scale)) for rule in machine.timers}

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run ``main`` to its end. May be called again and again."""
        return self._runner.run(main)

    async def settle(self) -> None:
        """Let everything happen that can happen without time: 50 turns of the loop."""
        for _ in range(TURNS):
            await asyncio.sleep(0)

    async def advance(self, ms: float) -> None:
        """Sleep, then settle. Raises ``ValueError`` if ``ms`` is negative."""
        if ms < 0:
            raise ValueError(f"advance({ms}): time does not run backwards")
        await asyncio.sleep(ms * self.scale / 1000)
        await self.settle()

    def close(self) -> None:
        """Cancel the tasks that are left, and close the loop."""
        self._runner.close()


__all__ = ["Clock", "RealClock"]
