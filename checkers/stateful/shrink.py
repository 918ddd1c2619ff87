"""Makes a failing script small: fewer actions, quieter handlers, patient callers.

Hypothesis finds the failing run, but its own shrinking works on its draws, of which a burst is one, and takes minutes where this takes a
second: a script can be played again at once. Delta debugging (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input",
2002), then one simplification at a time until none is left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import attrs

from turnproof.checkers.stateful.actions import Action, Advance, Caller, Close, Crowd, Doing, Fault, Jump, LateHandlersEnd, Send

Script = tuple[Action, ...]
Fails = Callable[[Script], bool]

SECONDS_MAX = 10.0
"""How long a script is made smaller; then the smallest so far is shown."""


def smallest(script: Script, fails: Fails, *, seconds: float = SECONDS_MAX) -> Script:
    """A script that still fails and none of whose simplifications does, or the smallest found in ``seconds``."""
    deadline = time.monotonic() + seconds
    seen: set[Script] = set()

    def still_fails(candidate: Script) -> bool:
        if candidate in seen or time.monotonic() > deadline:
            return False
        seen.add(candidate)
        return fails(candidate)

    script = without_chunks(script, still_fails)
    while True:
        simpler = next((candidate for candidate in simplifications(script) if still_fails(candidate)), None)
        if simpler is None:
            return script
        script = without_chunks(simpler, still_fails)


def without_chunks(script: Script, fails: Fails) -> Script:
    """Leave out runs of actions: halves first, single ones last, from the end to the front."""
    size = len(script) // 2 or 1
    while True:
        end, smaller = len(script), False
        while end > 0:
            candidate = script[: max(0, end - size)] + script[end:]
            if fails(candidate):
                script, smaller = candidate, True
            end -= size
        if size == 1 and not smaller:
            return script
        size = size if smaller else size // 2 or 1


def simplifications(script: Script) -> Iterator[Script]:
    """Scripts in which one action is simpler."""
    for n, action in enumerate(script):
        for simpler in simpler_actions(action):
            yield (*script[:n], simpler, *script[n + 1 :])


def simpler_actions(action: Action) -> Iterator[Action]:
    """Actions that do less, the simplest first."""
    if isinstance(action, Send) and action.caller is not Caller.AWAITS:
        yield attrs.evolve(action, caller=Caller.AWAITS)
    if isinstance(action, (Crowd, Close)):
        if len(action.events) == 1 and isinstance(action, Crowd):
            yield Send(action.events[0], plan=action.plan)
        for n in range(len(action.events)):
            yield attrs.evolve(action, events=action.events[:n] + action.events[n + 1 :])
    if isinstance(action, Jump):
        yield Advance(action.ms, action.over_next, action.plan)
    if isinstance(action, Close) and action.leaves > 0:
        yield attrs.evolve(action, leaves=-1)
    if isinstance(action, Close) and action.turns:
        yield attrs.evolve(action, turns=action.turns - 1)
    if isinstance(action, LateHandlersEnd) and action.count > 1:
        yield attrs.evolve(action, count=action.count - 1)
    if isinstance(action, Advance) and action.ms and action.to_next:
        yield attrs.evolve(action, ms=0)
    yield from (attrs.evolve(action, plan=plan) for plan in simpler_plans(action.plan))


def simpler_plans(plan: tuple[Doing, ...]) -> Iterator[tuple[Doing, ...]]:
    """Plans with a handler less, or with one that does nothing special."""
    if plan:
        yield ()
        yield plan[:-1]
    quiet = Doing(Fault.NOTHING)
    for n, doing in enumerate(plan):
        if doing != quiet:
            yield (*plan[:n], quiet, *plan[n + 1 :])
