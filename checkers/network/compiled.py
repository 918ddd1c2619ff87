"""The walk with the compiled kernel: levels, shards, threads, budgets; and shortest traces by searching back, level by level.

States are divided among a fixed number of shards by a hash. In each round every shard expands some of its states into buffers, one
for each shard, and then every shard takes in what came for it; so no two threads ever write to the same place, and the result does
not depend on how many threads there are. A state keeps no link to where it came from: levels are kept in order, and a trace is
found by expanding the level before once more.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import Any, TypeVar

import attrs
import numpy as np

from turnproof.checkers.network.arrays import Arrays
from turnproof.checkers.network.asked import Asked
from turnproof.checkers.network.folded import Folded, real_trace
from turnproof.checkers.network.kernel.back import predecessor
from turnproof.checkers.network.kernel.fold import fold
from turnproof.checkers.network.kernel.places import (
    B_MISSING,
    CUR,
    CUTS,
    M_EDGES,
    M_EDGES_AT,
    M_FIRST,
    M_FREE,
    M_MOST,
    M_ROW,
    MISSED,
    REDO,
    SHARDS,
    STEPS,
    Ints,
    Small,
)
from turnproof.checkers.network.kernel.step import shard_of
from turnproof.checkers.network.kernel.walk import ask_rows, expand
from turnproof.checkers.network.run import Broken, Fault, Runner, World
from turnproof.checkers.network.shard import Full, Shard
from turnproof.checkers.network.symmetry import Symmetry, chosen, faulty, performable
from turnproof.checkers.network.tables import CODES, Tables
from turnproof.checkers.network.triggers import Kind, Trigger
from turnproof.checkers.network.walk import INTERRUPT, Choice, Flaw, Limits, Question, Trace, Walk, replay, say_how_far
from turnproof.checkers.progress import SILENT, Progress

T = TypeVar("T")

CHUNK = 1 << 14
"""States of a shard expanded in one round."""
ROOM = 1 << 16
"""Successors that a buffer holds."""
RECENT = 1 << 10
"""Successors remembered, so that one found again at once is not looked up."""
ROW = 1 << 7
"""The most local states of a component of which every one has a place of its own where the outcomes of steps are remembered."""
ALONE = 4_000
"""A level smaller than this is not worth a second thread."""


@attrs.define(eq=False)
class Place:
    """What one shard's expansion writes: buffers for every shard, and what it found."""

    work: Ints
    buffer: Ints
    cache: Ints
    filled: Ints
    redo: Small
    memo: Ints
    found: Ints
    again: Small
    representatives: Ints
    """As ``buffer``, for what was folded; empty where nothing is."""
    folded: Ints
    scratch: Ints
    position: int = 0


class CompiledWalk:
    """A walk over one system. ``run`` once; then ``trace`` and the labelled graph."""

    def __init__(
        self,
        runner: Runner,
        triggers: tuple[Trigger, ...],
        questions: tuple[Question, ...],
        *,
        threads: int = 2,
        symmetry: Symmetry | None = None,
    ) -> None:
        self.runner, self.triggers, self.questions, self.threads = runner, triggers, questions, threads
        self.tables = Tables(runner.system, triggers, counter=runner.counter)
        self.folds = None if symmetry is None else Folded(symmetry, self.tables)
        self.asked = Asked(self.tables.compiler, questions, len(triggers), len(CODES))
        self.arrays = Arrays(self.tables, self.asked.free)
        self.questions_array = self.asked.array(self.arrays.words)
        self.shards = [Shard(self.arrays.layout) for _ in range(SHARDS)]
        self.places = [self._place() for _ in range(SHARDS)]
        self.walk = Walk("compiled")
        self.found: dict[int, tuple[int, int, int]] = {}
        """Number of a question -> shard, row and trigger of its hit."""
        self.home = self._begin()

    def _place(self) -> Place:
        words = self.arrays.layout.words
        return Place(
            work=self.arrays.work(),
            buffer=np.zeros((SHARDS, ROOM + len(self.triggers), words), np.int64),
            cache=np.full((RECENT, words), -1, np.int64),
            filled=np.zeros(SHARDS, np.int64),
            redo=np.zeros(CHUNK, np.int32),
            memo=self._forget(np.zeros(M_MOST, np.int64)),
            found=self.asked.found(),
            again=np.zeros(0, np.int32),
            representatives=self._representatives(),
            folded=np.zeros(SHARDS, np.int64),
            scratch=np.zeros(0, np.int64) if self.folds is None else self.folds.scratch(),
        )

    def _representatives(self) -> Ints:
        room = 0 if self.folds is None else SHARDS * (ROOM + len(self.triggers))
        return np.zeros((SHARDS, room, self.arrays.layout.words), np.int64)

    def _forget(self, memo: Ints) -> Ints:
        """No outcome of a step is known any more."""
        memo[:] = 0
        memo[M_EDGES_AT], memo[M_ROW] = M_FIRST + len(self.triggers), ROW
        memo[M_FREE] = memo[M_EDGES_AT] + M_EDGES
        return memo

    def _begin(self) -> int:
        layout = self.arrays.layout
        row: Ints = np.zeros((1, layout.words), np.int64)
        spread = 0
        for comp, local in enumerate(self.tables.start):
            row[0, layout.word[comp]] += local << int(layout.shift[comp])
            spread += local * self.arrays.spread[comp]
        home = int(shard_of(_wrapped(spread)))
        self.shards[home].add(row, 1)
        for shard in self.shards:
            shard.levels = [0]
        return home

    # ── the walk ──

    def run(self, limits: Limits, progress: Progress = SILENT) -> Walk:
        """Walk until every reachable state is expanded, or a limit or Ctrl-C ends it."""
        began, walk = time.monotonic(), self.walk
        walk.levels = [1]
        for shard in self.shards:
            shard.allowed = limits.memory // SHARDS if limits.memory else 1 << 62
            self._end_if(limits.held(SHARDS * shard.memory))
        try:
            with ThreadPoolExecutor(self.threads) as pool:
                while walk.complete and self._level(pool, limits, began, progress):
                    self._end_if(limits.enough({self.questions[n].key for n in self.found}))
        except KeyboardInterrupt:
            walk.complete, walk.why = False, INTERRUPT
        except Full:
            self._end_if(limits.held(1 << 62))
        if not walk.complete:
            self._ask_the_rest()
        self._finish(time.monotonic() - began)
        return walk

    def _end_if(self, why: str) -> None:
        if why and self.walk.complete:
            self.walk.complete, self.walk.why = False, why

    def _ask_the_rest(self) -> None:
        """What was reached and not expanded is covered as far as states go."""
        a, b = self.arrays.a, self.arrays.b
        for place, shard in zip(self.places, self.shards, strict=True):
            ask_rows(a, b, place.work, shard.keys, place.position, shard.count, self.questions_array, place.found)
        self._gather()

    def _level(self, pool: ThreadPoolExecutor, limits: Limits, began: float, progress: Progress) -> bool:
        ends = [shard.count for shard in self.shards]
        for place, shard in zip(self.places, self.shards, strict=True):
            place.position, place.again = shard.levels[-1], np.zeros(0, np.int32)
        size = sum(end - place.position for end, place in zip(ends, self.places, strict=True))
        call: Caller[Any] = partial(_together, pool) if self.threads > 1 and size > ALONE else _one_by_one
        try:
            while self.walk.complete and any(p.position < end or len(p.again) for p, end in zip(self.places, ends, strict=True)):
                self._round(call, ends)
                known = sum(shard.count for shard in self.shards)
                queue = known - sum(ends) + sum(end - p.position for p, end in zip(self.places, ends, strict=True))
                passed = time.monotonic() - began
                say_how_far(progress, known, len(self.walk.levels), queue, passed, self.memory)
                self.walk.why = limits.reached(known, passed)
                self.walk.complete = not self.walk.why
        finally:
            # Also when the level is not done: whatever is known beyond ``ends`` is one step farther away.
            self._gather()
            new = sum(shard.count - end for shard, end in zip(self.shards, ends, strict=True))
            for shard, end in zip(self.shards, ends, strict=True):
                shard.levels.append(end)
            if new:
                self.walk.levels.append(new)
        return new > 0

    def _round(self, call: Caller[Any], ends: list[int]) -> None:
        dealt = call([partial(self._expand, s, ends[s]) for s in range(SHARDS)])
        for place, (done, again) in zip(self.places, dealt, strict=True):
            place.position += max(0, done - again)
            place.again = np.concatenate([place.again[min(done, again) :], place.redo[: int(place.work[REDO])]])
            place.work[REDO] = 0
        call([partial(self._take_in, s) for s in range(SHARDS)])
        self._fill()

    def _expand(self, s: int, end: int) -> tuple[int, int]:
        place, shard = self.places[s], self.shards[s]
        again = min(len(place.again), CHUNK)
        new = min(end - place.position, CHUNK - again)
        done = expand(
            self.arrays.a, self.arrays.b, place.work, shard.keys, place.position, place.again, again, new, place.redo, place.memo,
            place.cache, place.buffer, place.filled, self.questions_array, place.found,
        )  # fmt: skip
        if self.folds is not None:
            for d in range(SHARDS):
                fold(
                    self.arrays.b, self.folds.f, self.folds.images, place.buffer[d], int(place.filled[d]), place.scratch,
                    place.representatives, place.folded,
                )  # fmt: skip
        return int(done), again

    def _take_in(self, d: int) -> None:
        for place in self.places:
            if self.folds is None:
                self.shards[d].add(place.buffer[d], int(place.filled[d]))
            else:
                self.shards[d].add(place.representatives[d], int(place.folded[d]))
            place.filled[d] = place.folded[d] = 0

    def _fill(self) -> None:
        first, asked = int(self.arrays.b[B_MISSING]), set[tuple[int, int, int]]()
        for place in self.places:
            count = int(place.work[MISSED])
            asked |= {(c, local, given) for c, local, given in place.work[first : first + 3 * count].reshape(-1, 3).tolist()}
            place.work[MISSED] = 0
        if not asked:
            return
        self.tables.fill(sorted(asked))
        if self.folds is not None:
            self.folds.close()
        laid, narrow = self.arrays.laid, self.arrays.sync()
        if narrow:
            self._widen()
        for place in self.places:
            if len(place.work) != self.arrays.work_size:
                place.work = _kept(place.work, self.arrays.work())
            if laid != self.arrays.laid:
                self._forget(place.memo)

    def _widen(self) -> None:
        layout = self.arrays.widened()
        for shard in self.shards:
            shard.relay(self.arrays.b, layout)
        self.arrays.relay(layout)
        for place in self.places:
            place.buffer = np.zeros((*place.buffer.shape[:2], layout.words), np.int64)
            place.cache = np.full((RECENT, layout.words), -1, np.int64)
            place.representatives = self._representatives()

    # ── what was found ──

    def _gather(self) -> None:
        """Collect hits and faults at the end of a level: whichever shard found one, it is as near to the start as any."""
        for s, place in enumerate(self.places):
            hits = self.asked.hits(place.found)
            for n in np.flatnonzero(hits[:, 0] >= 0).tolist():
                self.found.setdefault(n, (s, int(hits[n, 0]), int(hits[n, 1])))
        for place in self.places:
            self.asked.hits(place.found)[list(self.found), 0] = 0
        for fault, code in CODES.items():
            for s, place in enumerate(self.places):
                row, t = self.asked.faulty(place.found)[code].tolist()
                if fault is not None and row >= 0 and fault not in self.walk.flaws:
                    self._flaw(fault, s, row, t)

    def _flaw(self, fault: Fault, s: int, row: int, t: int) -> None:
        before = self.trace(s, row)
        steps = replay(self.runner, before)
        world = steps[-1].after if steps else self.runner.initial()
        last = self.choice(s, row, t) if self.folds is None else faulty(self.runner, self.triggers, world, fault)
        trace = (*before, last)
        try:
            self.runner.perform(world, self.runner.located(world, trace[-1].trigger, trace[-1].event))
        except Broken as broken:
            if broken.fault is fault:
                self.walk.flaws[fault] = Flaw(fault, str(broken), trace)
                return
        raise RuntimeError(f"internal error: `{fault.value}` is broken in the tables, but not when it is replayed")

    def _finish(self, seconds: float) -> None:
        walk, tables = self.walk, self.tables
        walk.states, walk.seconds, walk.memory = sum(s.count for s in self.shards), seconds, self.memory
        walk.transitions = sum(int(p.work[STEPS]) for p in self.places)
        walk.cut = sum(int(p.work[CUTS]) for p in self.places)
        for t in range(len(self.triggers)):
            seen = int(np.bitwise_or.reduce([self.asked.taken(p.found)[t] for p in self.places]))
            if seen:
                walk.taken[t] = seen > 1
        walk.handled = tables.handled()
        walk.wires, walk.copies = tables.used_wires, tables.used_copies
        for n, (s, row, t) in self.found.items():
            walk.hits[self.questions[n].key] = partial(self._hit, self.questions[n], s, row, t)

    def _hit(self, question: Question, s: int, row: int, t: int) -> Trace:
        trace = self.trace(s, row)
        if t < 0:
            return trace
        if self.folds is None:
            return (*trace, self.choice(s, row, t))
        steps = replay(self.runner, trace)
        world = steps[-1].after if steps else self.runner.initial()
        for trigger, step in performable(self.runner, self.triggers, world):
            if self.runner.holds_of(question.holds, step):
                return (*trace, chosen(self.runner, world, trigger))
        raise RuntimeError(f"internal error: {question.key} holds of a step from a representative, but of none from its like")

    def recompiled(self) -> None:
        """After more formulas were compiled: lay the arrays out anew."""
        self.arrays.rebuild()
        for place in self.places:
            place.work = _kept(place.work, self.arrays.work())

    @property
    def memory(self) -> int:
        """Bytes held: states, indices, buffers and tables."""
        buffers = sum(p.buffer.nbytes + p.cache.nbytes + p.memo.nbytes for p in self.places)
        return sum(shard.memory for shard in self.shards) + buffers + self.arrays.memory

    # ── looking back ──

    def world(self, s: int, row: int) -> World:
        """The state of the system in that row of that shard."""
        return self.tables.world(self.locals(s, row))

    def locals(self, s: int, row: int) -> list[int]:
        """The numbers of the local states in that row of that shard."""
        layout, key = self.arrays.layout, self.shards[s].keys[row]
        return [int(key[layout.word[comp]]) >> int(layout.shift[comp]) & ((1 << width) - 1) for comp, width in enumerate(layout.widths)]

    def choice(self, s: int, row: int, t: int) -> Choice:
        """Trigger ``t`` in that state, with the event it takes out of a channel."""
        trigger = self.triggers[t]
        if trigger.kind in (Kind.DELIVER, Kind.LOSE):
            content = self.world(s, row).channels[self.runner.channel[trigger.where]]
            return Choice(trigger, content[trigger.position])
        return Choice(trigger, trigger.event)

    def trace(self, s: int, row: int) -> Trace:
        """A shortest way to that state."""
        level = bisect_right(self.shards[s].levels, row) - 1
        if self.folds is not None:
            return real_trace(self, self.folds, level, s, row)
        back: list[Choice] = []
        while level > 0:
            s, row, t = self._before(level - 1, self.shards[s].keys[row].copy())
            back.append(self.choice(s, row, t))
            level -= 1
        return tuple(reversed(back))

    @staticmethod
    def end_of(level: int, shard: Shard) -> int:
        """Where that level ends in the shard."""
        return shard.levels[level + 1] if level + 1 < len(shard.levels) else shard.count

    def _before(self, level: int, target: Ints) -> tuple[int, int, int]:
        for s, shard in enumerate(self.shards):
            last = self.end_of(level, shard)
            row, t = predecessor(self.arrays.a, self.arrays.b, self.places[0].work, shard.keys, shard.levels[level], last, target)
            if row >= 0:
                return s, int(row), int(t)
        raise RuntimeError("internal error: a state has no predecessor in the level before")


Caller = Callable[[list[Callable[[], T]]], list[T]]


def _one_by_one(jobs: list[Callable[[], T]]) -> list[T]:
    return [job() for job in jobs]


def _together(pool: ThreadPoolExecutor, jobs: list[Callable[[], T]]) -> list[T]:
    futures = [pool.submit(job) for job in jobs]
    # An interrupt of one must not leave the others writing.
    wait(futures)
    return [future.result() for future in futures]


def _kept(old: Ints, new: Ints) -> Ints:
    """The notes of one work, carried over into another."""
    new[:CUR] = old[:CUR]
    return new


def _wrapped(number: int) -> int:
    """The number as 64 bits with a sign, as the kernel has it."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)
