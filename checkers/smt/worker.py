"""The child process: reads one task from standard input, writes one JSON line an answer. Started by :mod:`.children` alone."""

from __future__ import annotations

import contextlib
import json
import resource
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

Task = Mapping[str, Any]


class Shell(Protocol):
    """A solver that reads commands."""

    def run(self, commands: str) -> str:
        """What it prints."""

    def ask(self, assertions: Sequence[str]) -> Iterator[tuple[str, float]]:
        """Whether each assertion can hold beside what was asserted, and how many milliseconds that took."""


def script(task: Task) -> Iterator[list[object]]:
    """Runs the groups of queries of a certificate; of each group ``[number, [[answer, milliseconds], ...]]``."""
    shell = _shell(task["solver"])
    limit = int(task["query_ms"])
    shell.run(f"(set-option :timeout {limit})" if task["solver"] == "z3" else f"(set-option :tlimit-per {limit})")
    shell.run(task["prelude"])
    for number, (preamble, queries) in enumerate(task["groups"]):
        shell.run("(push 1)\n" + preamble)
        yield [number, [[answer, round(ms, 3)] for answer, ms in shell.ask(queries)]]
        shell.run("(pop 1)")


def _shell(name: str) -> Shell:
    if name == "z3":
        from turnproof.checkers.smt import z3api

        return z3api.Script()
    from turnproof.checkers.smt import cvc5api

    return cvc5api.Script()


def search(task: Task) -> Iterator[object]:
    """Looks for an inductive invariant."""
    from turnproof.checkers.smt.search import answers

    return answers(task)


def search_network(task: Task) -> Iterator[object]:
    """Looks for an inductive invariant of a system."""
    from turnproof.checkers.smt_network.search import answers

    return answers(task)


KINDS: Mapping[str, Callable[[Task], Iterator[object]]] = {"script": script, "search": search, "search network": search_network}


def main() -> None:
    """Answer the task on standard input."""
    task = json.load(sys.stdin)
    limit = int(task["memory_mb"]) << 20
    # macOS refuses to limit the address space; the limit of time stands there too.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for answer in KINDS[task["kind"]](task):
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
