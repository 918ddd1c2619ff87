"""``turnproof step``: play events against a machine and see what it does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import click

from turnproof.checkers.report import Paint
from turnproof.checkers.written import WrittenError, read_events, show_event, show_value
from turnproof.cli import names
from turnproof.cli.app import SETTINGS, example
from turnproof.cli.misuse import Misuse
from turnproof.cli.output import paint, say, say_json
from turnproof.machines.kernel import Refused, Taken, fields_of
from turnproof.specs.language import AnyMachine

FORMAT, VERSION = "turnproof.step", 1
COLORS = {"taken": "32", "ignored": "33", "refused": "31"}


@attrs.frozen
class Played:
    """One event and what the machine made of it."""

    event: object
    answer: str
    """``taken``, ``ignored`` or ``refused``."""
    why: str
    """The reason of a row that ignores or refuses; else the remark of the row, if it has one."""
    row: str
    changes: tuple[tuple[str, object, object], ...]
    """(field, before, after)."""
    effects: tuple[object, ...]
    state: Any


def play(machine: AnyMachine, events: Sequence[object]) -> Iterator[Played]:
    """Step through the events from the initial state."""
    state = machine.initial
    for event in events:
        answer = machine.step(state, event)
        if isinstance(answer, Taken):
            pairs = ((name, getattr(state, name), getattr(answer.state, name)) for name in fields_of(machine.state))
            changes = tuple((name, before, after) for name, before, after in pairs if before != after)
            state = answer.state
            yield Played(event, "taken", answer.row.because, answer.row.name, changes, answer.effects, state)
        else:
            said = "refused" if isinstance(answer, Refused) else "ignored"
            yield Played(event, said, answer.why, answer.row.name, (), (), state)


@example(
    "turnproof step reply_operation 'BackendAttached(backend=a)' 'AbortRequested(reason=user)'",
    "turnproof step reply_operation backend_attached backend=a abort_requested reason=user",
    "turnproof step reply_operation 'AbortRequested(user)' Completed barrier=no --json",
)
@click.command(context_settings=SETTINGS)
@click.argument("machine")
@click.argument("events", nargs=-1, required=True, metavar="EVENT...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def step(machine: str, events: Sequence[str], as_json: bool) -> int:
    """Play events from the initial state; show answer, row, changes and effects of each.

    An event is written with its fields in brackets, by name or in order, or with field=value behind it. Upper and lower
    case, snake_case and CamelCase are the same; none stands for nobody.
    """
    spec = names.one(machine)
    try:
        read = read_events(spec.machine, events)
    except WrittenError as error:
        raise Misuse(str(error)) from None
    played = list(play(spec.machine, read))
    if as_json:
        say_json(_json(spec.machine, played))
    else:
        say("\n".join(_text(spec.machine, played, paint())))
    return 0


def _text(machine: AnyMachine, played: Sequence[Played], paint: Paint) -> Iterator[str]:
    yield f"{machine.name}: {machine.phase} {show_value(getattr(machine.initial, machine.phase))}"
    for number, one in enumerate(played, 1):
        why = f" ({one.why})" if one.why and one.answer != "taken" else ""
        yield f"{number}. {paint(show_event(one.event), '1')}: {paint(one.answer, COLORS[one.answer])} by row {one.row}{why}"
        width = max((len(name) for name, _, _ in one.changes), default=0)
        for name, before, after in one.changes:
            yield f"     {name:<{width}}  {show_value(before)} -> {show_value(after)}"
        if one.why and one.answer == "taken":
            yield paint(f"     because: {one.why}", "2")
        if one.effects:
            yield f"     effects: {', '.join(show_event(effect) for effect in one.effects)}"


def _json(machine: AnyMachine, played: Sequence[Played]) -> dict[str, object]:
    last = played[-1].state if played else machine.initial
    return {
        "format": FORMAT,
        "version": VERSION,
        "machine": machine.name,
        "initial": _fields(machine.initial),
        "steps": [
            {
                "number": number,
                "event": show_event(one.event),
                "answer": one.answer,
                "why": one.why,
                "row": one.row,
                "changes": {name: {"before": _plain(before), "after": _plain(after)} for name, before, after in one.changes},
                "effects": [{"effect": type(effect).__name__, **_fields(effect)} for effect in one.effects],
            }
            for number, one in enumerate(played, 1)
        ],
        "final": _fields(last),
    }


def _fields(thing: object) -> dict[str, object]:
    return {name: _plain(getattr(thing, name)) for name in fields_of(type(thing))}


def _plain(value: object) -> object:
    return value if value is None or isinstance(value, (bool, int, float, str)) else show_value(value)


__all__ = ["Played", "play", "step"]
