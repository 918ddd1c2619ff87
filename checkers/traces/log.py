"""Replays the lines of a log: partitions them by key, keeps each key's lines in order, follows each instance, notes what was found.

The loop of :meth:`LogReplay._block` is where the time goes. It splits a line at three commas, and a line whose text was met before in the
same situation costs two lookups and a comparison. Everything else (gaps, new situations, errors) is the business of
:meth:`LogReplay._slowly` and what it calls, which decode the line.

Memory does not grow with the lines: live instances are kept, the last :data:`RECENT` that ended too, the others are forgotten. Should
a late line of a forgotten one come, ``suspects`` names its key, and a second reading of the log judges those keys alone.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from turnproof.checkers.progress import SILENT, Progress
from turnproof.checkers.traces.beliefs import Beliefs, Edge, TooLittleKnown
from turnproof.checkers.traces.finding import Breach, Finding, Kind, Place, Seen, Tolerance, came
from turnproof.checkers.traces.follow import Follower, Instance, Order
from turnproof.traces.files import Lines, lines_of
from turnproof.traces.line import LineProblem, TraceError, TraceLine, column_of, read_line
from turnproof.traces.split import NUMBER, TIGHT, Style, Text, parts, style_of, usual

RECENT = 5_000
"""Ended instances that are remembered."""
HELD = 1_000
"""Lines held back for an earlier one, per count of lines."""
HEADS = 4_096
"""Numbers that are kept as they stand at the beginning of a line."""
DETAILED = 20
"""Findings of one kind that are kept; the others are counted."""


class LogReplay:
    """One replay of one log. ``only``: the keys that are judged; None: all. ``ordered``: whether the counts of lines are looked at."""

    def __init__(
        self, beliefs: Beliefs, *, allow: Collection[Tolerance] = (), only: Collection[str] | None = None, ordered: bool = True
    ) -> None:
        self.beliefs, self.follower = beliefs, Follower(beliefs)
        self.allow, self.only, self._ordered = frozenset(allow), only, ordered
        self.ours = {None, beliefs.machine.name, beliefs.spec.machine.name, *(v.machine.name for v in beliefs.spec.variants)}
        self.instances: dict[str, Instance] = {}
        self.findings: list[Finding] = []
        self.counts: Counter[Kind] = Counter()
        self.broken: dict[int, Breach] = {}
        """Number of a promise -> how often it broke, and where first."""
        self.foreign: Counter[str] = Counter()
        """Other machines -> their lines."""
        self.tolerated: Counter[Tolerance] = Counter()
        self.torn: list[Place] = []
        self.suspects: set[str] = set()
        self.lines = self.begun = self.cut_off = self.skipped = self.late = self.blank = 0
        self.shared: Order | None = None
        """The one count of all lines, if it turned out that the file counts them so."""
        self._decided = False
        self._first_seq = -1
        self._nowhere = beliefs.nowhere
        self._recent: deque[str] = deque()
        self._forgotten = False
        self._forgotten_keys: set[str] = set()
        """Only where a first line does not show by its number: where the whole file is counted."""
        self._path, self._base, self._number = Path(), 0, 0
        self._style: Style = TIGHT
        self._form = b""
        self._by_written: dict[bytes, Instance] = {}
        self._heads: list[bytes] = []

    def read(self, paths: Sequence[Path], progress: Progress = SILENT) -> None:
        """Read the files of one log, oldest first. Raises :class:`TraceError`."""
        for path in paths:
            self._path, self._base = path, self.lines
            for some in lines_of(path):
                if some.torn:
                    self.torn.append(Place(path, some.first))
                else:
                    self._read(some)
                progress.say(f"lines of {path.name}", self.lines)
        self._finish()

    def add(self, other: LogReplay) -> None:
        """Take over what a second reading found and this one did not."""
        for finding in other.findings:
            if finding not in self.findings:
                self.findings.append(finding)
                self.counts[finding.kind] += 1
        for number, breach in other.broken.items():
            self.broken.setdefault(number, breach)

    @property
    def judged(self) -> int:
        """Lines that were followed. ``late`` ones, of instances that were forgotten, are not among them."""
        return (
            self.lines
            - self.skipped
            - self.late
            - sum(self.foreign.values())
            - sum(self.follower.unknown.values())
            - self.counts[Kind.DIVERGED]
        )

    def live(self) -> Iterator[Instance]:
        """Instances that had not ended when the log did."""
        return (i for i in self.instances.values() if not i.node.ended and i.node is not self._nowhere)

    # ── lines ──

    def _read(self, some: Lines) -> None:
        if self._first_seq < 0 and some.data:
            self._style = style_of(some.data[0])
            self._form = self._style.head + b"%d"
            self._heads = [self._form % number for number in range(HEADS)]
        try:
            self._block(some)
        except LineProblem as problem:
            at = problem.at or column_of(some.data[self._number - some.first], problem.field)
            raise TraceError(f"{some.path}:{self._number}:{at}: {problem}") from None

    def _block(self, some: Lines) -> None:
        number, instances, begins, heads = some.first - 1, self._by_written, self._style.ts, self._heads
        take_text, form = self.follower.take_text, self._form
        for line in some.data:
            number += 1
            try:
                head, ts, name, text = line.split(b",", 3)
            except ValueError:
                self._number = number
                self._slowly(line)
                continue
            instance = instances.get(name) or self._begin_at_once(head, name, text)
            if instance is not None:
                order = instance.order
                if head == order.head and ts.rstrip(NUMBER) == begins:
                    edge = instance.node.get(text) or take_text(instance, text)
                    if edge is not None:
                        order.next = following = order.next + 1
                        order.head = heads[following] if following < HEADS else form % following
                        instance.node = edge.node
                        if edge.special:
                            self._number = number
                            self._pass(instance, edge, line)
                        continue
            self._number = number
            self._slowly(line)
        self.lines = self._base + number - self.blank

    def _begin_at_once(self, head: bytes, name: bytes, text: bytes) -> Instance | None:
        """A new instance, if there is nothing to be said about its first line."""
        if not self._is_first(head) or not (text in self.beliefs.start or self.follower.may_begin(text)):
            return None
        key = self._style.key(name)
        if key is None or key in self.instances or key in self._forgotten_keys:
            return None
        self.begun += 1
        instance = self.instances[key] = self._by_written[name] = Instance(
            key, self.beliefs.start, self.shared or Order(self._form, 1, head)
        )
        instance.written = (name,)
        return instance

    def _is_first(self, head: bytes) -> bool:
        """Whether a line with this head, of a key not seen before, begins an instance, and that is all."""
        if self._first_seq < 0 or self.only is not None:
            return False
        return head == (self._heads[1] if self.shared is None else self.shared.head)

    def _new(self, key: str, order: Order, written: tuple[bytes, ...]) -> Instance:
        self.begun += 1
        instance = self.instances[key] = self.follower.begin(key, order)
        instance.written = written
        for name in written:
            self._by_written[name] = instance
        return instance

    def _order(self, after: int) -> Order:
        return Order(self._form, after + 1)

    def _slowly(self, data: bytes) -> None:
        """Any line that is not simply the next of its instance in a situation that was met before."""
        if not data.strip():
            self.blank += 1
            return
        found = None if data.startswith(self._style.head) else parts(data)
        if found is not None and self._parted(*found, data):
            return
        line = read_line(data)
        plain = usual(data, self._style, line.seq, line.key) if found is None else None
        written, text = plain or (None, None if found is None else found[2])
        self._arrive(Seen(Place(self._path, self._number), line, text, written))

    def _parted(self, seq: int, key: str, text: Text, data: bytes) -> bool:
        """The same as :meth:`_block` does, for a line whose fields stand in another order; false if it must be decoded."""
        instance, head = self.instances.get(key), b"%b%d" % (self._style.head, seq)
        if instance is None:
            if key in self._forgotten_keys or not self._is_first(head) or not self.follower.may_begin(text):
                return False
            instance = self._new(key, self.shared or Order(self._form, 1), ())
        if head != instance.order.head:
            return False
        edge = instance.node.get(text) or self.follower.take_text(instance, text)
        if edge is None:
            return False
        instance.order.advance(seq)
        self._pass(instance, edge, data)
        return True

    def _arrive(self, seen: Seen) -> None:
        line = seen.line
        if self._first_seq < 0:
            self._first_seq = line.seq
        if line.machine not in self.ours:
            self._foreign(line)
            return
        if self.only is not None and line.key not in self.only:
            self.skipped += 1
            return
        instance = self.instances.get(line.key)
        before = self.begun
        if instance is None:
            if line.key in self._forgotten_keys or (line.seq > 1 and self._forgotten and self.shared is None):
                self.suspects.add(line.key)
                self.late += 1
                if self.shared is not None:
                    self.shared.advance(max(self.shared.last, line.seq))
                return
            order = self.shared or self._order(line.seq - 1 if line.seq <= 1 else 0)
            instance = self._new(line.key, order, ())
        if seen.written is not None and seen.written not in instance.written:
            instance.written = (*instance.written, seen.written)
            self._by_written[seen.written] = instance
        if not self._ordered:
            instance.order.advance(line.seq - 1)
        if line.seq > instance.order.last + 1 and not self._decided:
            self._find_out_what_is_counted(line.seq, before)
        order = instance.order
        if line.seq == order.last + 1:
            self._judge(instance, seen)
            self._let_go(order)
        elif line.seq <= order.last:
            self._again(instance, seen)
        else:
            self._early(instance, seen)

    def _foreign(self, line: TraceLine) -> None:
        self.foreign[str(line.machine)] += 1
        if self.shared is not None:
            self.shared.advance(max(self.shared.last, line.seq))

    # ── the order of lines ──

    def _find_out_what_is_counted(self, seq: int, instances: int) -> None:
        """Whether the count turns out to be one of the whole file. Asked at the first gap; if so, there were ``instances`` = 1 before."""
        before = self._base + self._number - self.blank - 1
        if not before:
            return
        self._decided = True
        if seq - self._first_seq == before and instances <= 1:
            self.shared = self._order(seq - 1)
            for instance in self.instances.values():
                instance.order = self.shared

    def _again(self, instance: Instance, seen: Seen) -> None:
        """A number that was read before: the key's next life, or a doubled line."""
        seq = seen.line.seq
        over = instance.node.ended or instance.node is self._nowhere
        doubles = bool(self.allow & {Tolerance.DOUBLED, Tolerance.REORDERED})
        if seq <= 1 and self.shared is None and (over or (seq < instance.order.last and not doubles)):
            self.cut_off += not over
            self._judge(self._new(seen.line.key, self._order(seq - 1), instance.written), seen)
        elif Tolerance.DOUBLED in self.allow:
            self.tolerated[Tolerance.DOUBLED] += 1
            self.skipped += 1
        else:
            self.skipped += 1
            self._find(Kind.DOUBLED, seen, f"line {seq} was read before: it is doubled, or comes late")

    def _early(self, instance: Instance, seen: Seen) -> None:
        """A gap in the count before this line."""
        order = instance.order
        if instance.node is self._nowhere and self.shared is None:
            order.advance(seen.line.seq)
            self.skipped += 1
        elif Tolerance.REORDERED in self.allow:
            order.hold(seen.line.seq, seen)
            self.tolerated[Tolerance.REORDERED] += 1
            if len(order.held or ()) > HELD:
                self._give_up(order)
        else:
            self._gap(instance, seen)

    def _let_go(self, order: Order) -> None:
        """Judge the lines that waited for the one just judged."""
        while order.held and order.last + 1 in order.held:
            seen = order.let_go(order.last + 1)
            self._judge(self.instances[seen.line.key], seen)

    def _give_up(self, order: Order) -> None:
        """Stop waiting for the lines before the earliest held one."""
        seen = order.let_go(min(order.held or ()))
        self._gap(self.instances[seen.line.key], seen)
        self._let_go(order)

    def _gap(self, instance: Instance, seen: Seen) -> None:
        order = instance.order
        seq, first = seen.line.seq, order.last + 1
        missing = seq - first
        order.advance(seq - 1)
        if Tolerance.LOST in self.allow:
            self.tolerated[Tolerance.LOST] += missing
            self._lose(tuple(self.instances.values()) if self.shared is not None else (instance,), missing, seen)
        else:
            whose = "of the file" if self.shared is not None else f"of {seen.line.key}"
            which = f"line {first}" if missing == 1 else f"lines {first} to {seq - 1}"
            self._find(Kind.MISSING, seen, f"{which} {whose} {'is' if missing == 1 else 'are'} missing before line {seq}")
            if self.shared is None:
                instance.node = self._nowhere
        self._judge(instance, seen)

    def _lose(self, instances: Sequence[Instance], missing: int, seen: Seen) -> None:
        for instance in instances:
            try:
                if instance.node is not self._nowhere:
                    instance.node = self.beliefs.after_lost(instance.node, missing)
            except TooLittleKnown:
                self._too_little(instance, seen)

    def _too_little(self, instance: Instance, seen: Seen) -> None:
        instance.node = self._nowhere
        self._find(Kind.UNDETERMINED, seen, "after so many unlogged steps the instance may be in nearly any state")

    def _finish(self) -> None:
        waiting = {id(i.order): i.order for i in self.instances.values() if i.order.held}
        for order in waiting.values():
            while order.held:
                self._give_up(order)

    # ── judging ──

    def _judge(self, instance: Instance, seen: Seen) -> None:
        instance.order.advance(seen.line.seq)
        if instance.node is self._nowhere:
            self.skipped += 1
            return
        try:
            taken = self.follower.take(instance, seen.line, seen.text)
        except TooLittleKnown:
            self._too_little(instance, seen)
            return
        if taken.edge is None:
            return
        if not taken.edge.fits:
            self._find(Kind.DIVERGED, seen, f"{seen.line.event} does not fit")
            instance.node = self._nowhere
            return
        self.follower.remember(instance.node, taken.text, taken.edge)
        self._pass(instance, taken.edge, seen.line)

    def _pass(self, instance: Instance, edge: Edge, line: TraceLine | bytes) -> None:
        """Go along ``edge``, and see to what is special about it."""
        self.follower.go(instance, edge)
        for promise in edge.broken:
            breach = self.broken.get(promise)
            if breach is None:
                text = came(read_line(line) if isinstance(line, bytes) else line)
                breach = self.broken[promise] = Breach(Place(self._path, self._number), instance.key, text)
            breach.times += 1
        if edge.ends and self.only is None:
            self._recent.append(instance.key)
            if len(self._recent) > RECENT:
                self._forget(self._recent.popleft())

    def _forget(self, key: str) -> None:
        old = self.instances.get(key)
        if old is not None and old.node.ended and not old.order.held:
            del self.instances[key]
            if self.shared is not None:
                self._forgotten_keys.add(key)
            for name in old.written:
                del self._by_written[name]
            self._forgotten = True

    def _find(self, kind: Kind, seen: Seen, said: str) -> None:
        self.counts[kind] += 1
        if self.counts[kind] <= DETAILED:
            self.findings.append(Finding(kind, seen.place, seen.line.key, seen.line.seq, said))


__all__ = ["LogReplay"]
