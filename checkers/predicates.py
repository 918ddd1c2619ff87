"""The Python reading of a specification's formulas: one compiled function each, over one step at a time.

Explored and replayed runs use it: environment assumptions, history variables, and the check of a counterexample before it is
shown. It shares the operators with the kernel's generated source and nothing with the column reading, so each of the two
catches a slip in the other. Python's own ``and`` and ``or`` make ``on(Event) & (event.field == ...)`` safe where the event is
another.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from itertools import count as numbers
from typing import Any, cast

import attrs

from turnproof.machines.kernel import Formula, Variable, fields_of, read
from turnproof.machines.kernel.source import SOURCE, Names
from turnproof.specs.language import Answered, AnyMachine, Emitted, History, OnEvent, Said, Spec

Pasts = tuple[object, ...]
"""One value for each history variable of a specification, in its order."""

StepTest = Callable[[object, Pasts, object, Said, tuple[object, ...], object, Pasts], bool]
"""before, pasts, event, said, effects, after, pasts after -> whether the formula holds of the step."""

_SERIAL = numbers(1)


class Predicates:
    """Compiles formulas over one machine and its history variables."""

    def __init__(self, machine: AnyMachine, histories: Sequence[History]) -> None:
        self.state = machine.state
        self.events = machine.events
        self.places = {type(history.initial): n for n, history in enumerate(histories)}
        self.names = Names()
        self._tests: dict[int, tuple[object, StepTest]] = {}

    def test(self, node: object) -> StepTest:
        """A formula over a step; one over a state reads only ``before`` and ``pasts``. Compiled once."""
        known = self._tests.get(id(node))
        if known is None:
            body = f"    return bool({self.expression(node)})\n"
            # The node is kept beside its test, so that no other can come to have its id.
            known = self._tests[id(node)] = (node, cast(StepTest, self._compile("s, p, e, said, effects, t, q", body)))
        return known[1]

    def advance(self, history: History) -> Callable[..., object]:
        """before, pasts, event, said, effects, after -> the history's value after the step."""
        lines = []
        for condition, update in history.rules:
            lines += [f"    if {self.expression(condition)}:", f"        return {self.template(update)}"]
        lines.append(f"    return p[{self.places[type(history.initial)]}]")
        return self._compile("s, p, e, said, effects, t", "\n".join(lines) + "\n")

    def expression(self, node: object) -> str:
        """Source for a formula or a constant."""
        return read(node, self.variable, SOURCE, self.names.constant)

    def template(self, update: object) -> str:
        """Source that builds an instance from ``evolve(now, ...)``."""
        cls = type(update)
        fields = (self.expression(getattr(update, f.name)) for f in attrs.fields(cast(Any, cls)))
        return f"{self.names.of(cls, cls.__name__)}({', '.join(fields)})"

    def variable(self, variable: Variable) -> str:
        """Source for one variable."""
        if isinstance(variable, OnEvent):
            return f"(type(e) is {self.names.of(variable.owner, variable.owner.__name__)})"
        if isinstance(variable, Answered):
            return f"(said is {self.names.constant(variable.said)})"
        if isinstance(variable, Emitted):
            cls = self.names.of(variable.owner, variable.owner.__name__)
            tests = "".join(f" and f.{name} == {self.expression(node)}" for name, node in variable.fields)
            return f"sum([type(f) is {cls}{tests} for f in effects])"
        after = variable.scope == "next"
        if variable.owner in self.places:
            return f"{'q' if after else 'p'}[{self.places[variable.owner]}].{variable.name}"
        if variable.owner is self.state:
            return f"{'t' if after else 's'}.{variable.name}"
        return f"e.{variable.name}"

    def _compile(self, parameters: str, body: str) -> Callable[..., Any]:
        text = f"def formula({parameters}):\n{body}"
        filename = f"<turnproof formula {next(_SERIAL)}>"
        # So that a traceback through a formula shows it.
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        space: dict[str, Any] = dict(self.names.table)
        exec(compile(text, filename, "exec"), space)
        return cast("Callable[..., Any]", space["formula"])


class Memory:
    """Advances all history variables of a specification by one step."""

    def __init__(self, machine: AnyMachine, spec: Spec) -> None:
        predicates = Predicates(machine, spec.histories)
        self.initial: Pasts = tuple(history.initial for history in spec.histories)
        self.rules = [predicates.advance(history) for history in spec.histories]
        self.blind = not any(_looks(node, machine) for history in spec.histories for rule in history.rules for node in rule)
        """No rule reads the machine's state or a field of an event, so the outcome depends on kinds alone and can be remembered."""

    def after(self, before: object, pasts: Pasts, event: object, said: Said, effects: tuple[object, ...], after: object) -> Pasts:
        """The values after the step."""
        return tuple([rule(before, pasts, event, said, effects, after) for rule in self.rules])


def _looks(node: object, machine: AnyMachine) -> bool:
    if isinstance(node, Formula):
        return any(_looks(arg, machine) for arg in node.args)
    if isinstance(node, Variable):
        if isinstance(node, (OnEvent, Answered)):
            return False
        if isinstance(node, Emitted):
            return any(_looks(inner, machine) for inner in node.inner())
        return node.owner is machine.state or node.owner in machine.events
    if attrs.has(type(node)):
        return any(_looks(getattr(node, name), machine) for name in fields_of(type(node)))
    return False


__all__ = ["Memory", "Pasts", "Predicates", "StepTest"]
