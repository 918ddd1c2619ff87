"""The rule machines of the composed shells once more, every step judged by the specification of its machine, as production would."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import pytest
from rules_attempts import Turns
from rules_loop import Loops
from rules_registry import Registry
from rules_session import Sessions

from turnproof.checkers.stateful.composed import Stage, check
from turnproof.checkers.traces import Monitor
from turnproof.checkers.verdict import Outcome
from turnproof.shell import TraceStep
from turnproof.shell.common import Hooks
from turnproof.specs.catalog import specifications
from turnproof.specs.reply_operation import SPEC as REPLY

STAGES: tuple[type[Stage], ...] = (Registry, Turns, Loops, Sessions)
QUICK = STAGES[::3]
"""The others are judged in storms (``test_shell_monitored``): to compile their promises takes longer than all else here."""
STEPS, DEEP_STEPS = 150, 60_000
SEED = 77_000
"""Other runs than those that are compared with the tables."""

pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """The shells log what befalls them."""
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


@contextmanager
def watched(told: Callable[[TraceStep[Any, Any, Any]], object]) -> Iterator[None]:
    """Tell of each step of each runner of a composed shell that is built meanwhile; each runner has a key of its own."""
    build, numbers = Hooks.runner, itertools.count(1)

    def built(hooks: Hooks, machine: Any, handlers: object, key: str, *, trace: Any = None) -> Any:
        name = f"{next(numbers)} {key}"

        def stepped(step: TraceStep[Any, Any, Any]) -> None:
            told(attrs.evolve(step, key=name))
            if trace is not None:
                trace(step)

        return build(hooks, machine, handlers, key, trace=stepped)

    setattr(Hooks, "runner", built)  # noqa: B010  # a frozen class, and mypy knows that methods are not assigned
    try:
        yield
    finally:
        setattr(Hooks, "runner", build)  # noqa: B010


def judged(stage: type[Stage], steps: int, seed: int = SEED) -> Monitor:
    """Sample so many steps of a stage, each told to a monitor of all its machines."""
    specs = specifications()
    monitor = Monitor(*(specs[machine.name] for machine in stage.machines), situations=1_000)
    with watched(monitor):
        verdict = check(stage, steps=steps, seed=seed)
    assert verdict.outcome is Outcome.HOLDS, verdict.detail
    return monitor


def holds(monitor: Monitor, steps: int) -> None:
    assert (monitor.first, monitor.unjudged) == (None, 0), str(monitor.first)
    assert monitor.steps >= steps


@pytest.mark.parametrize("stage", QUICK)
def test_no_machine_of_a_composed_shell_breaks_a_promise(stage: type[Stage]) -> None:
    holds(judged(stage, STEPS), STEPS)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(SEED + 10_000, SEED + 14_000, 1_000))
@pytest.mark.parametrize("stage", STAGES)
def test_no_machine_of_a_composed_shell_breaks_a_promise_for_long(stage: type[Stage], seed: int) -> None:
    holds(judged(stage, DEEP_STEPS, seed), DEEP_STEPS)


def test_a_shell_that_runs_an_older_table_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell does what its table says, so that its own comparison finds nothing: only the specification knows better."""
    older = attrs.evolve(REPLY.variants[0].machine, name=REPLY.machine.name)
    monkeypatch.setattr("turnproof.shell.reply_registry_reply.MACHINE", older)
    monitor = judged(Registry, 1_000)
    assert monitor.first is not None
    assert monitor.first.machine == REPLY.machine.name
