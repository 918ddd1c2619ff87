"""A counterexample as a person reads it: numbered steps, who sent what, only what changed, and last the sentence that broke.

:func:`tell` makes a story of a run that was played through ``machine.step``. The renderers read stories and nothing else: plain
text, a pytest to paste into the project, a Mermaid sequence diagram, and ITF, the trace format of Apalache
(https://apalache-mc.org/docs/adr/015adr-trace.html).
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, cast

import attrs

from turnproof.checkers.predicates import Pasts
from turnproof.checkers.replay import Played, Run
from turnproof.checkers.verdict import Change, Story, StoryStep
from turnproof.checkers.written import show_event, show_value
from turnproof.machines.kernel import fields_of
from turnproof.specs.language import AnyMachine, Said, Spec

Value = str | int | bool
WIDTH = 120
"""Columns of the plain text, where it can be broken."""
NOTHING_MORE = "nothing happens any more, for ever"
ENVIRONMENT = "environment"


# ── telling ──


def tell(run: Run, broken: str, claim: str, *, loop_from: int = 0, names: Sequence[type] = ()) -> Story:
    """The story of a run that breaks ``broken``.

    ``claim`` is the line of Python, over ``run``, that fails because of it; ``names`` are the classes it speaks of.
    """
    module, setup = _setup(run, names)
    return Story(
        machine=run.machine.name,
        initial=", ".join(f"{name}={_text(value)}" for name, value in _fields(run.machine.initial, run.memory.initial)),
        steps=tuple(_step(run, number, step) for number, step in enumerate(run.played, 1)),
        broken=broken,
        loop_from=loop_from,
        module=module,
        start=_fields(run.machine.initial, run.memory.initial),
        setup=setup,
        claim=claim,
    )


def _step(run: Run, number: int, step: Played) -> StoryStep:
    before, after = dict(_fields(step.before, step.pasts)), _fields(step.after, step.pasts_after)
    return StoryStep(
        number=number,
        actor=actor(run.spec, run.machine, step.event),
        event=show_event(step.event),
        answer="taken" if step.said is Said.TAKEN else f"{step.said.value}: {step.answer.why}",
        row=step.answer.row.name,
        changes=tuple(Change(name, _text(before[name]), _text(value)) for name, value in after if before[name] != value),
        effects=tuple(show_event(effect) for effect in step.effects),
        code=expression(step.event),
        state=after,
    )


def actor(spec: Spec, machine: AnyMachine, event: object) -> str:
    """Who sends an event: a timer its expiry, the actor that the specification names, else the environment."""
    for rule in machine.timers:
        if type(event) is rule.expires:
            return f"timer {rule.timer.name.lower()}"
    return spec.actors.get(type(event), ENVIRONMENT)


def _fields(state: object, pasts: Pasts) -> tuple[tuple[str, Value], ...]:
    """Every field with its value; a history variable's field carries the name of its class if the state has one of that name."""
    made: dict[str, Value] = {name: _value(getattr(state, name)) for name in fields_of(type(state))}
    for past in pasts:
        for name in fields_of(type(past)):
            made[f"{type(past).__name__}.{name}" if name in made else name] = _value(getattr(past, name))
    return tuple(made.items())


def _value(value: object) -> Value:
    return value if isinstance(value, (bool, int)) and not isinstance(value, Enum) else show_value(value)


def _text(value: Value) -> str:
    return value if isinstance(value, str) else show_value(value)


def expression(value: object) -> str:
    """``value`` as Python source: ``AbortRequested(reason=AbortReason.USER)``."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if not attrs.has(type(value)):
        return repr(value)
    cls = cast(Any, type(value))
    return f"{cls.__name__}({', '.join(f'{f.alias}={expression(getattr(value, f.name))}' for f in attrs.fields(cls))})"


def _setup(run: Run, names: Sequence[type]) -> tuple[str, tuple[str, ...]]:
    """Import path of the specification, and the lines that bind ``run``."""
    place = locate(run.spec)
    module, name = place if place is not None else ("", "SPEC")
    imports: dict[str, set[str]] = {"turnproof.checkers.replay": {"Run"}}
    if module:
        imports.setdefault(module, set()).add(name)
    for cls in {*names, *(cls for step in run.played for cls in _classes(step.event))}:
        imports.setdefault(cls.__module__, set()).add(cls.__name__)
    lines = [f"from {path} import {', '.join(sorted(these))}" for path, these in sorted(imports.items())]
    if not module:
        lines.append("SPEC = ...  # the specification stands in no module: bind it here")
    other = ""
    if run.machine is not run.spec.machine:
        number = next((n for n, variant in enumerate(run.spec.variants) if variant.machine is run.machine), None)
        other = ", machine=..." if number is None else f", machine={name}.variants[{number}].machine"
    return module, (*lines, f"run = Run({name}{other})")


def locate(thing: object) -> tuple[str, str] | None:
    """Module and name under which ``thing`` can be imported; the module of specifications before any that imported it from there."""
    found = [
        (not path.startswith("turnproof.specs."), len(path), path, name)
        for path, module in list(sys.modules.items())
        if path != "__main__" and module is not None
        for name, value in list(getattr(module, "__dict__", {}).items())
        if value is thing
    ]
    return min(found)[2:] if found else None


def _classes(value: object) -> Iterator[type]:
    if isinstance(value, Enum):
        yield type(value)
    elif attrs.has(type(value)):
        yield type(value)
        for f in attrs.fields(cast(Any, type(value))):
            yield from _classes(getattr(value, f.name))


# ── rendering ──


def render_text(story: Story) -> str:
    """Plain text, no colour, one line an event and one for each thing it changed or emitted.

    An event is told whole; of what comes of it, the fields that hold something. The other forms of a story have them all.
    """
    width = max((len(f"{step.actor}: {step.event}") for step in story.steps), default=0)
    lines = textwrap.wrap(f"{story.machine} begins: {_beginning(story)}", WIDTH, subsequent_indent="        ")
    for step in story.steps:
        if step.number == story.loop_from:
            lines.append("  and then for ever:")
        said = f"{step.actor}: {step.event}"
        lines.append(f"  {step.number:>2}. {said:<{width}}  {step.answer}  [{step.row}]")
        lines += [f"        {change.field}: {held(change.before)} -> {held(change.after)}" for change in step.changes]
        lines += [f"        emits {held(effect)}" for effect in step.effects]
    if story.loop_from == len(story.steps) + 1:
        lines.append(f"  and then {NOTHING_MORE}")
    lines.append(f"broken: {story.broken}")
    return "\n".join(lines)


def held(text: str) -> str:
    """``text`` without the fields of effects that hold nobody or nothing beside others that hold something: ``Sent(what=end)``."""

    def fields(found: re.Match[str]) -> str:
        every = found[1].split(", ")
        kept = [field for field in every if not field.endswith("=none")]
        return f"({', '.join(kept or every)})"

    return re.sub(r"(?<=\w)\((\w+=[^()\"]*)\)", fields, text)


def _beginning(story: Story) -> str:
    """The fields at the start that hold something; where most hold nobody or nothing, who reads on is told so once."""
    held = [f"{name}={_text(value)}" for name, value in story.start if value != "none"]
    empty = len(story.start) - len(held)
    return ", ".join(held) + f"; {empty} other{'s' * (empty != 1)} none" if held and empty > 1 else story.initial


def render_pytest(story: Story) -> str:
    """A test that replays the story. It fails as long as the machine breaks the sentence, and passes once it does not."""
    *imports, bind = story.setup
    lines = [
        *imports,
        "",
        "",
        f"def test_{slug(story.broken.split(' (')[0])}() -> None:",
        f'    """{_quoted(story.broken)}"""',
        f"    {bind}",
    ]
    for step in story.steps:
        if step.number == story.loop_from:
            lines.append("    # and then for ever:")
        lines.append(f"    run.send({step.code})  # {step.number}. {_remark(step)}")
    if story.loop_from == len(story.steps) + 1:
        lines.append(f"    # and then {NOTHING_MORE}")
    lines.append(f"    {story.claim}")
    return "\n".join(lines) + "\n"


def _remark(step: StoryStep) -> str:
    parts = [step.answer, *(f"{c.field} {c.before} -> {c.after}" for c in step.changes)]
    return "; ".join(parts + ([f"emits {', '.join(step.effects)}"] if step.effects else []))


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def slug(text: str) -> str:
    """The words of a sentence, as the name of a function."""
    words = re.sub(r"\W+", "_", text.casefold(), flags=re.ASCII).strip("_")
    return words[:80].rstrip("_") or "counterexample"


def render_mermaid(story: Story) -> str:
    """A sequence diagram: events from their actors to the machine, effects from the machine to the shell."""
    actors = list(dict.fromkeys(step.actor for step in story.steps)) or [ENVIRONMENT]
    names = {name: f"a{n}" for n, name in enumerate(actors)}
    lines = ["sequenceDiagram", *(f"    participant {names[name]} as {_mermaid(name)}" for name in actors)]
    lines += [f"    participant m as {_mermaid(story.machine)}", "    participant shell"]
    inner = "    "
    for step in story.steps:
        if step.number == story.loop_from:
            lines.append("    loop for ever")
            inner = "        "
        lines += [inner + line for line in _arrows(step, names[step.actor])]
    if inner != "    ":
        lines.append("    end")
    if story.loop_from == len(story.steps) + 1:
        lines.append(f"    Note over m: {NOTHING_MORE}")
    lines.append(f"    Note over {names[actors[0]]},shell: broken: {_mermaid(story.broken)}")
    return "\n".join(lines) + "\n"


def _arrows(step: StoryStep, sender: str) -> Iterator[str]:
    if step.answer == "taken":
        yield f"{sender}->>m: {_mermaid(step.event)}"
    else:
        yield f"{sender}-xm: {_mermaid(f'{step.event} ({step.answer})')}"
    if step.changes:
        yield "Note over m: " + _mermaid(", ".join(f"{c.field}: {c.before} → {c.after}" for c in step.changes))
    for effect in step.effects:
        yield f"m->>shell: {_mermaid(effect)}"


def _mermaid(text: str) -> str:
    """Text inside a Mermaid line: a semicolon or a line break would end it, a number sign would begin an entity."""
    return text.translate({ord("#"): "#35;", ord(";"): "#59;", ord("\n"): " "})


def render_itf(story: Story) -> dict[str, object]:
    """The trace in the Informal Trace Format, ready for ``json.dumps``. ``event`` holds what led to a state; "" for the first."""
    states: list[Mapping[str, object]] = [{"#meta": {"index": 0}, "event": "", **_itf(story.start)}]
    states += [
        {"#meta": {"index": step.number, "answer": step.answer, "row": step.row}, "event": step.event, **_itf(step.state)}
        for step in story.steps
    ]
    trace: dict[str, object] = {
        "#meta": {"format": "ITF", "description": story.broken, "source": story.machine},
        "vars": ["event", *(name for name, _ in story.start)],
        "states": states,
    }
    if story.loop_from:
        # The last state is the one before the loop again, so what follows it is the first state inside the loop.
        trace["loop"] = min(story.loop_from, len(story.steps))
    return trace


def _itf(fields: Iterable[tuple[str, Value]]) -> dict[str, object]:
    return {name: {"#bigint": str(value)} if isinstance(value, int) and not isinstance(value, bool) else value for name, value in fields}


__all__ = ["actor", "expression", "held", "locate", "render_itf", "render_mermaid", "render_pytest", "render_text", "slug", "tell"]
