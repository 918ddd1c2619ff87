"""A sample of steps that z3 computes itself: it ties the evaluation of terms, which compares millions of steps, to the solver."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

import attrs

from turnproof.checkers.network.explicit import NetworkGraph
from turnproof.checkers.network.plain import PlainWalk
from turnproof.checkers.network.run import Broken, Cut, Occurrence, World
from turnproof.checkers.smt import compose, z3api
from turnproof.checkers.smt.evaluate import Evaluator
from turnproof.checkers.smt.pieces import RowPiece, Table
from turnproof.checkers.smt.probe import ask
from turnproof.checkers.smt_network.agreement import Comparison, numbers_of
from turnproof.checkers.smt_network.relation import Action, Network, NetworkRow


@attrs.frozen
class Sampled:
    """How many steps z3 confirmed, and what it said of the others; ``why`` says why some have no answer."""

    confirmed: int
    wrong: tuple[str, ...]
    why: str


@attrs.frozen(eq=False)
class _Asked:
    words: str
    action: Action
    row: NetworkRow
    step: Occurrence
    inputs: Mapping[str, int]


def worlds(graph: NetworkGraph, count: int, seed: int) -> list[World]:
    """States drawn at random from those explored, the first one among them."""
    chance, engine = random.Random(seed), graph.engine
    if isinstance(engine, PlainWalk):
        return [engine.worlds[0], *(chance.choice(engine.worlds) for _ in range(count - 1))]
    filled = [s for s, shard in enumerate(engine.shards) if shard.count]
    places = [(s, chance.randrange(engine.shards[s].count)) for s in (chance.choice(filled) for _ in range(count - 1))]
    return [graph.runner.initial(), *(engine.world(s, row) for s, row in places)]


def sample(network: Network, graph: NetworkGraph, comparison: Comparison, table: Table, states: Sequence[World], *, seed: int) -> Sampled:
    """Let z3 compute a step from each of ``states``: the row and the state after can be those of ``machine.step``, and no others."""
    pieces = {id(r): p for r, p in zip((r for a in network.actions for r in a.rows), table.rows, strict=True)}
    asked = [found for world in states if (found := _choose(network, graph, comparison, world, seed)) is not None]
    questions = []
    for one in asked:
        piece = pieces[id(one.row)]
        agreed = f"(and {' '.join(_agreed(network, table, piece, one.step.after))} true)"
        fixed = _fixed(network, one)
        questions.append(("\n".join([*compose.meaning(table, piece), *fixed]), [agreed, f"(not {agreed})"]))
    said = ask(compose.prelude(table, (), ()), questions)
    wrong = [
        f"{one.words}, row {one.row.name}: z3 says {' and '.join(answers)}, expected sat and unsat"
        for one, answers in zip(asked, said.answers, strict=True)
        if answers != ("sat", "unsat")
    ]
    return Sampled(len(asked) - len(wrong), tuple(wrong), said.why)


def _choose(network: Network, graph: NetworkGraph, comparison: Comparison, world: World, seed: int) -> _Asked | None:
    """One step from ``world`` and the row that the terms choose for it."""
    numbers = numbers_of(network, world)
    order = list(enumerate(graph.triggers))
    random.Random(f"{seed} {sorted(numbers)} {[int(c[0]) for c in numbers.values()]}").shuffle(order)
    for number, trigger in order:
        if not graph.runner.enabled(world, trigger):
            continue
        try:
            step = graph.runner.perform(world, trigger)
        except (Broken, Cut):
            continue
        for action, inputs, besides in comparison.actions[number]:
            reader = Evaluator({**numbers, **inputs}, nodes=comparison.nodes)
            if bool(reader.column(besides)[0]):
                row = next(r for r in action.rows if bool(reader.column(r.guard)[0]))
                if not row.stutter and not row.faulty:
                    return _Asked(str(trigger), action, row, step, {name: int(c[0]) for name, c in inputs.items()})
    return None


def _fixed(network: Network, one: _Asked) -> Iterator[str]:
    variables = network.variables
    for name, number in variables.numbers(one.step.before).items():
        yield f"(assert (= now.{name} {z3api.text(variables.literal(variables.by_name[name], number))}))"
    for given in one.action.inputs:
        literal = network.context.literal(one.inputs[given.name], given.term.sort.smt)
        yield f"(assert (= {given.name} {z3api.text(literal)}))"


def _agreed(network: Network, table: Table, piece: RowPiece, after: World) -> Iterator[str]:
    """The row, and the state after it; of a reordered channel only how many events it holds."""
    variables = network.variables
    yield from (f"(not {other.guard})" for other in compose.earlier(table, piece))
    yield piece.guard
    sorted_ = {p.name for s in variables.channels if s.channel.reordered for n in range(s.channel.capacity) for p in s.slot(n)}
    for name, number in variables.numbers(after).items():
        if name not in sorted_:
            yield f"(= next.{name} {z3api.text(variables.literal(variables.by_name[name], number))})"
