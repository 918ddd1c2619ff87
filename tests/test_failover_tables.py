"""The three failover tables against the published ones, written here a second time as plain conditions: every ending, error and setting.

Published: the stages and their handler of July 2026 (@01379ada) and of September 2026. The target is September with one veto in front.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import attrs
import pytest

from turnproof.machines.attempt_terminal import ABORTED_RUNTIME, EXTERNAL, TIMEOUT_IDLE, TIMEOUT_RUN_BUDGET, TIMEOUTS, During, Ending
from turnproof.machines.embedded_attempt_words import Stage
from turnproof.machines.failover import MACHINE, RUNNING, Table
from turnproof.machines.failover_words import Action, AttemptEnded, BeginAttempt, Decided, Failover, Failure, How
from turnproof.machines.kernel import Taken
from turnproof.specs.failover import JULY, SEPTEMBER
from turnproof.specs.language import AnyMachine

MACHINES = {Table.JULY: JULY, Table.SEPTEMBER: SEPTEMBER, Table.TARGET: MACHINE}
Answer = tuple[Action, How | None]


def inputs() -> Iterator[tuple[Failover, AttemptEnded]]:
    """Every state in which an attempt may report, and every report."""
    settings = itertools.product(range(2), range(2), range(2), (False, True), Failure, (False, True))
    reports = [AttemptEnded("a", *fields) for fields in itertools.product((Stage.PROMPT, Stage.ASSISTANT), Ending, During, (False, True))]
    for profiles, models, retries, harness, failure, limit in settings:
        state = Failover(RUNNING, "a", profiles, models, retries, harness_owned=harness, failure=failure, at_limit=limit)
        for report in reports:
            yield state, report


class Facts:
    """What the published rules speak of."""

    def __init__(self, state: Failover, report: AttemptEnded) -> None:
        self.state, self.report = state, report
        self.external = report.ending in EXTERNAL
        self.timed_out = report.ending in TIMEOUTS
        self.idle = report.ending is TIMEOUT_IDLE
        self.aborted = self.timed_out or report.ending in (ABORTED_RUNTIME, *EXTERNAL)
        self.failover_failure = state.failure not in (Failure.NONE, Failure.PLAIN, Failure.CLI_STOPPED)
        self.concrete = self.failover_failure and state.failure not in (Failure.UNKNOWN, Failure.TIMEOUT)
        self.terminal_format = state.failure is Failure.FORMAT
        self.refusal = state.failure in (Failure.REFUSAL, Failure.REFUSAL_SHOWN)
        # TO: idleTimedOut, or timedOut and neither during compaction nor during a tool.
        self.timeout_failure = self.idle or (self.timed_out and report.during is During.PROMPT)
        self.ordinary = (
            self.timed_out and report.during is During.PROMPT and state.failure in (Failure.NONE, Failure.TIMEOUT) and state.retries > 0
        )

    def should_rotate(self, table: Table) -> bool:
        """SR."""
        if table is not Table.JULY and self.report.ending is TIMEOUT_RUN_BUDGET:
            return False
        if self.terminal_format or (table is Table.JULY and self.refusal):
            return False
        if self.state.harness_owned and self.timeout_failure and not self.concrete:
            return False
        return (not self.aborted and self.failover_failure) or self.timeout_failure


def rotated(how: How) -> Answer:
    return Action.FALLBACK_MODEL if how is How.NEXT_MODEL else Action.ROTATE_PROFILE, how


def retry_limit(facts: Facts) -> Answer:
    excluded = (Failure.TIMEOUT, Failure.FORMAT, Failure.FORMAT_RETRYABLE, Failure.SESSION_EXPIRED)
    if facts.state.models and facts.failover_failure and facts.state.failure not in excluded:
        return rotated(How.NEXT_MODEL)
    return Action.RETURN_ERROR_PAYLOAD, None


def prompt(table: Table, facts: Facts) -> Answer:
    state = facts.state
    stopped = facts.report.ending is TIMEOUT_RUN_BUDGET or state.failure is Failure.CLI_STOPPED
    if facts.external or (table is not Table.JULY and stopped):
        return Action.SURFACE_ERROR, None
    if state.harness_owned and state.failure is Failure.TIMEOUT:
        return rotated(How.NEXT_MODEL) if facts.report.replay_safe and state.models else (Action.SURFACE_ERROR, None)
    tls = table is not Table.JULY and state.failure is Failure.TLS_CERTIFICATE
    if state.profiles and facts.failover_failure and state.failure is not Failure.TIMEOUT and not facts.terminal_format and not tls:
        return rotated(How.NEXT_PROFILE)
    if state.models and facts.failover_failure and not facts.terminal_format:
        return rotated(How.NEXT_MODEL)
    # The handler: on surface, one retry of an ordinary timeout.
    return Action.SURFACE_ERROR, How.SAME_MODEL if facts.ordinary else None


def assistant(table: Table, facts: Facts) -> Answer:
    state = facts.state
    if facts.external or facts.terminal_format:
        return Action.SURFACE_ERROR, None
    if table is Table.JULY and facts.refusal:
        shown = state.failure is Failure.REFUSAL_SHOWN
        return rotated(How.NEXT_MODEL) if state.models and not shown else (Action.SURFACE_ERROR, None)
    if table is not Table.JULY and state.failure is Failure.TLS_CERTIFICATE:
        return rotated(How.NEXT_MODEL) if state.models else (Action.SURFACE_ERROR, None)
    if not facts.should_rotate(table):
        return Action.CONTINUE_NORMAL, None
    # The handler: on rotate, one retry of an ordinary timeout comes first.
    if facts.ordinary:
        return Action.ROTATE_PROFILE, How.SAME_MODEL
    if state.profiles:
        return rotated(How.NEXT_PROFILE)
    return rotated(How.NEXT_MODEL) if state.models else (Action.SURFACE_ERROR, None)


def published(table: Table, facts: Facts) -> Answer:
    """What the table of that date decides."""
    if facts.state.at_limit:
        return retry_limit(facts)
    return prompt(table, facts) if facts.report.stage is Stage.PROMPT else assistant(table, facts)


def target(facts: Facts) -> Answer:
    """September, with the veto in front of every row that tries again, and an external abort that always surfaces."""
    if facts.external:
        return Action.SURFACE_ERROR, None
    decided = published(Table.SEPTEMBER, facts)
    in_assistant = not facts.state.at_limit and facts.report.stage is Stage.ASSISTANT
    compaction = facts.report.during is During.COMPACTION
    tool = facts.report.during is During.TOOL_EXECUTION and not facts.idle
    ended_in_tool = facts.timed_out and (compaction or tool)
    if in_assistant and ended_in_tool and not facts.terminal_format:
        return Action.CONTINUE_NORMAL, None
    if decided[1] is not None and (not facts.report.replay_safe or ended_in_tool):
        return (Action.CONTINUE_NORMAL if in_assistant else Action.SURFACE_ERROR), None
    return decided


def answer(machine: AnyMachine, state: Failover, report: AttemptEnded) -> Answer:
    step = machine.step(state, report)
    assert isinstance(step, Taken)
    decided = [e.action for e in step.effects if isinstance(e, Decided)]
    begun = [e.how for e in step.effects if isinstance(e, BeginAttempt)]
    assert len(decided) == 1
    return decided[0], begun[0] if begun else None


def differences(machine: AnyMachine, table: Table) -> list[tuple[Failover, AttemptEnded]]:
    found = []
    for state, report in inputs():
        facts = Facts(state, report)
        expected = target(facts) if table is Table.TARGET else published(table, facts)
        if answer(machine, state, report) != expected:
            found.append((state, report))
    return found


@pytest.mark.parametrize("table", Table, ids=lambda table: table.value)
def test_the_table_decides_as_published(table: Table) -> None:
    """R-ATT-20: on every input, by the first row that matches."""
    assert differences(MACHINES[table], table) == []


def test_a_changed_row_would_be_seen() -> None:
    changed = MACHINE.variant("failover_changed", drop=("prompt/tool or compaction",))
    assert differences(changed, Table.TARGET)
    assert differences(SEPTEMBER, Table.JULY)


def test_every_input_is_tried() -> None:
    assert sum(1 for _ in inputs()) == 2 * 2 * 2 * 2 * len(Failure) * 2 * 2 * len(Ending) * len(During) * 2
    assert attrs.fields_dict(Failover).keys() >= {"profiles", "models", "retries", "harness_owned", "failure", "at_limit"}
