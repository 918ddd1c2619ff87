"""Which pictures a machine gets, and what stands in them.

A small machine is one picture: every phase with what it answers without leaving, every edge with its full label. A big one is an
overview (phases and event names) and one picture a phase (full labels, everything that can happen there). Either way the edges are
those that the ``transitions`` library has in the markup of a GraphMachine made of what was reached.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Any, cast

import attrs
from transitions.extensions.diagrams import GraphMachine

from turnproof.checkers.draw import comments, timers, words
from turnproof.checkers.draw.bundle import Bundle, bundles
from turnproof.checkers.draw.reach import Armed, Move, Place, Reach
from turnproof.checkers.draw.scene import Box, Frame, Kind, Line, Link, Scene, Span, Tone, line, wrap
from turnproof.machines.kernel import show_constant

ONE_PICTURE = 100
"""A machine whose picture has at most this many lines of text fits one picture; longer ones were tried and are hard to read."""
LABEL_WIDTH, BOX_WIDTH, NAMES_WIDTH = 380, 420, 240
"""Longest line in pixels: of an edge's label, inside a phase, of a list of event names."""
Edges = Iterable[tuple[Place, int, Place]]
"""Source, item, destination."""
FEW_CHANGES = 2
"""A row that stays shows what it changes if that is at most so many fields; the table shows all."""


def scenes(reach: Reach) -> tuple[Scene, ...]:
    """Every picture of the machine; the first is the one to open first."""
    draft = Draft(reach)
    clocks = (timers.scene(reach),) if reach.machine.timers else ()
    whole = draft.whole()
    if sum(len(section) for box in whole.boxes for section in box.sections) <= ONE_PICTURE:
        return (whole, *clocks)
    phases = dict.fromkeys(place.phase for place in reach.places)
    return (draft.overview(), *(draft.phase(phase) for phase in phases), *clocks)


def drawn(reach: Reach) -> tuple[Move, ...]:
    """The reached moves by way of a GraphMachine: the edges of its markup."""
    places = {place.id: place for place in reach.places}
    machine = GraphMachine(
        model=None,
        states=[*places],
        initial=reach.initial.id,
        transitions=[
            {
                "trigger": reach.row(m).event.__name__,
                "source": m.source.id,
                "dest": None if m.dest == m.source else m.dest.id,
                "label": str(m.row),
            }
            for m in reach.moves
        ],
        auto_transitions=False,
        graph_engine="graphviz",
    )
    markup = cast(Any, machine.get_markup_config())["transitions"]
    return tuple(Move(int(t["label"]), places[t["source"]], places[t.get("dest", t["source"])]) for t in markup)


@attrs.define
class Draft:
    """Makes the scenes of one machine."""

    reach: Reach
    moves: tuple[Move, ...] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        order = {move: n for n, move in enumerate(self.reach.moves)}
        self.moves = tuple(sorted(drawn(self.reach), key=order.__getitem__))

    # ── which ──

    def whole(self) -> Scene:
        """The whole machine in one picture."""
        machine, places = self.reach.machine, self.places
        made = Parts(self)
        made.start()
        for place in places:
            made.box(self.full_box(place))
            made.refusals(self, place)
        made.bundles(bundles(self.between(places, places), self.live), self.row_label)
        columns = tuple((p.id, f"{p.id}.refused") for p in places if f"{p.id}.refused" in made.boxes)
        scene = made.scene(machine.name, machine.name, "Reachable phases and edges only.")
        return attrs.evolve(scene, columns=columns, downwards=None)

    def overview(self) -> Scene:
        """Phases and event names."""
        machine, places = self.reach.machine, self.places
        edges = self.named(self.between(places, places))
        made = Parts(self)
        made.start()
        for place in places:
            made.box(self.short_box(place))
        made.bundles(bundles(edges, self.live), self.event_label)
        ends = tuple(p for p in places if p not in self.live)
        frames = (made.frame("live phases", self.live), made.frame("terminal phases", ends)) if ends else ()
        note = (
            "Phases and the events that lead from one to another; reachable edges only. Guards, effects and refusals: one picture a phase."
        )
        scene = made.scene(machine.name, f"{machine.name}: overview", note, frames)
        return attrs.evolve(scene, labels="events that lead there")

    def phase(self, phase: Enum) -> Scene:
        """Everything that can happen in one phase."""
        focus = [p for p in self.places if p.phase is phase]
        made = Parts(self)
        columns = []
        for place in focus:
            self.entries(made, place)
            made.box(self.full_box(place, focus=True))
            made.refusals(self, place)
            columns.append(tuple(name for name in (f"{place.id}.entered", place.id, f"{place.id}.refused") if name in made.boxes))
        made.bundles(bundles(self.between(focus, self.places), self.live), self.row_label, forward=True)
        word = show_constant(phase)
        note = comments.fields(type(phase)).get(phase.name, "").split("\n\n")[0].replace("\n", " ").replace("``", "")
        name = self.reach.machine.name
        return attrs.evolve(made.scene(f"{name}-{word}", f"{name}: {word}", note), columns=tuple(columns))

    def entries(self, made: Parts, place: Place) -> None:
        """From where a place is entered, by which events, in one box above it."""
        lines: list[Line] = []
        if place == self.reach.initial:
            lines += wrap([Span("the beginning", Tone.STRONG)], BOX_WIDTH)
        sources: dict[tuple[int, ...], list[tuple[Place, ...]]] = {}
        for bundle in bundles(self.named(self.between(self.places, self.places)), self.live):
            if place in bundle.dests and any(source.phase is not place.phase for source in bundle.sources):
                sources.setdefault(bundle.items, []).append(bundle.sources)
        for items, groups in sources.items():
            names = ", ".join(self.reach.machine.events[n].__name__ for n in items)
            lines += wrap([Span(names, Tone.STRONG), Span(" from " + self.sources(groups, place))], BOX_WIDTH)
        if lines:
            box = Box(f"{place.id}.entered", Kind.LABEL, ((line("entered by", Tone.QUIET), *lines),))
            made.links.append(Link(made.box(box), place.id))

    def sources(self, groups: list[tuple[Place, ...]], dest: Place) -> str:
        """The places of one or several bundles in words."""
        every = "every other live phase" if dest in self.live else "every live phase"
        found = [every] if self.live in groups else []
        found += [str(place) for group in groups if group != self.live for place in group if place != dest]
        return words.listed(found, "or")

    # ── what ──

    @property
    def places(self) -> tuple[Place, ...]:
        """Every place, in order."""
        return tuple(self.reach.places)

    @property
    def live(self) -> tuple[Place, ...]:
        """Places of phases that can be left, in order."""
        return tuple(p for p in self.places if p.phase not in self.reach.terminal)

    def between(self, sources: Sequence[Place], dests: Sequence[Place]) -> Edges:
        """The taken moves from one of ``sources`` to another place among ``dests``."""
        inner = [m for m in self.moves if m.source in sources and m.dest in dests and m.source != m.dest]
        return [(m.source, m.row, m.dest) for m in inner]

    def named(self, edges: Edges) -> Edges:
        """The same edges with the number of the row's event in place of the row's."""
        events = {event: n for n, event in enumerate(self.reach.machine.events)}
        return [(source, events[self.reach.machine.rows[row - 1].event], dest) for source, row, dest in edges]

    def kind(self, place: Place) -> Kind:
        """How the box of a place looks."""
        return Kind.TERMINAL if place.phase in self.reach.terminal else Kind.PHASE

    def title(self, place: Place) -> tuple[Line, ...]:
        """The name of a place, and which timers run there."""
        lines = [line(show_constant(place.phase), Tone.TITLE)]
        if place.split:
            lines.append(line("released" if place.released else "not released", Tone.STRONG))
        clocks = [*self.timers(place)]
        if clocks:
            lines += wrap([Span("timers: " + ", ".join(clocks), Tone.QUIET)], NAMES_WIDTH)
        return tuple(lines)

    def timers(self, place: Place) -> Iterator[str]:
        """Each timer that runs at a place; with a question mark where it does in some states only."""
        for rule in self.reach.machine.timers:
            armed = self.reach.timers[place, rule.timer]
            word = show_constant(rule.timer)
            maybe = "" if len(armed) == 1 else "?"
            if Armed.RUNS in armed:
                yield word + maybe
            elif Armed.PAUSED in armed:
                yield f"{word} paused{maybe}"

    def short_box(self, place: Place) -> Box:
        """A place in an overview."""
        return Box(place.id, self.kind(place), (self.title(place),))

    def name_box(self, place: Place) -> Box:
        """A place as the neighbour of another."""
        return Box(place.id, self.kind(place), (self.title(place)[: 1 + place.split],))

    def full_box(self, place: Place, *, focus: bool = False) -> Box:
        """A place with what it answers without being left."""
        inside = [m for m in self.moves if m.source == m.dest == place and self.reach.row(m).answer == "taken"]
        late = dict.fromkeys(
            self.reach.row(m).event.__name__ for m in self.moves if m.source == place and self.reach.row(m).answer == "ignored"
        )
        sections = [self.title(place)]
        if inside:
            sections.append(tuple(text for m in inside for text in self.row_label(m.row, stays=True)))
        if late:
            sections.append(wrap([Span("ignored: " + ", ".join(late), Tone.QUIET)], BOX_WIDTH))
        return Box(place.id, self.kind(place), tuple(sections), focus)

    def row_label(self, number: int, *, stays: bool = False) -> tuple[Line, ...]:
        """``7 Event [guard] / effects``; a row that stays also tells what it changes, if that is little."""
        machine = self.reach.machine
        row = machine.rows[number - 1]
        guard = words.guard(row)
        done = [effect + ("?" if condition else "") for effect, condition in words.effects(row, short=True)]
        if stays:
            changed = [f"{name} := {value}" for name, value in words.changes(machine, row, short=True) if name != machine.phase]
            done = [*(changed if len(changed) <= FEW_CHANGES else [f"{len(changed)} fields"]), *done]
        spans = [Span(f"{number} ", Tone.QUIET), Span(row.event.__name__, Tone.STRONG)]
        spans += [Span(f" [{guard}]")] if guard else []
        spans += [Span(" / " + ", ".join(done))] if done else []
        return wrap(spans, BOX_WIDTH if stays else LABEL_WIDTH, row=number)

    def event_label(self, number: int) -> tuple[Line, ...]:
        """The name of an event, by its place in the machine's union."""
        return (line(self.reach.machine.events[number].__name__, Tone.STRONG),)

    def refusal(self, number: int) -> tuple[Line, ...]:
        """``7 Event [guard]: why``."""
        row = self.reach.machine.rows[number - 1]
        guard = words.guard(row)
        spans = [
            Span(f"{number} ", Tone.QUIET),
            Span(row.event.__name__, Tone.STRONG),
            *([Span(f" [{guard}]")] if guard else []),
            Span(f": {row.refuse}"),
        ]
        return wrap(spans, LABEL_WIDTH, row=number)


class Parts:
    """Boxes and links as they are added."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.boxes: dict[str, Box] = {}
        self.links: list[Link] = []

    def box(self, box: Box) -> str:
        """Add a box, unless one of that name is there already."""
        self.boxes.setdefault(box.id, box)
        return box.id

    def start(self) -> None:
        """The dot that points to the initial place."""
        self.links.append(Link(self.box(Box("start", Kind.START)), self.draft.reach.initial.id))

    def refusals(self, draft: Draft, place: Place) -> None:
        """What a place refuses, in a dashed box on a dashed edge."""
        numbers = dict.fromkeys(m.row for m in draft.reach.of(place, "refused"))
        if numbers:
            lines = (line("refused", Tone.STRONG), *(text for n in numbers for text in draft.refusal(n)))
            self.links.append(Link(place.id, self.box(Box(f"{place.id}.refused", Kind.REFUSED, (lines,))), dashed=True))

    def bundles(self, found: Iterable[Bundle], label: Callable[[int], tuple[Line, ...]], *, forward: bool = False) -> None:
        """A label for each bundle, linked to what it comes from and leads to. ``forward``: all destinations lie ahead."""
        order = {place: n for n, place in enumerate(self.draft.reach.places)}
        for bundle in found:
            text = Box(f"label.{len(self.boxes)}", Kind.LABEL, (tuple(t for item in bundle.items for t in label(item)),))
            back = [not forward and order[dest] < min(order[place] for place in bundle.sources) for dest in bundle.dests]
            self.links.append(Link(self.source(bundle.sources), self.box(text), arrow=False, back=all(back)))
            for dest, against in zip(bundle.dests, back, strict=True):
                self.links.append(Link(text.id, self.box(self.draft.name_box(dest)), back=against and all(back)))

    def source(self, places: tuple[Place, ...]) -> str:
        """The box of one place, or of a hub for several."""
        if len(places) == 1:
            return self.box(self.draft.name_box(places[0]))
        if places == self.draft.live:
            return self.box(Box("hub.live", Kind.HUB, ((line("every live phase", Tone.STRONG),),)))
        names = tuple(line(str(place)) for place in places)
        return self.box(Box("hub." + "+".join(p.id for p in places), Kind.HUB, ((line("any of", Tone.STRONG), *names),)))

    def frame(self, title: str, places: Sequence[Place]) -> Frame:
        """A frame around places, and around the labels that link nothing but them."""
        inside = {place.id for place in places}
        ends: defaultdict[str, set[str]] = defaultdict(set)
        for link in self.links:
            ends[link.head].add(link.tail)
            ends[link.tail].add(link.head)
        labels = [name for name, box in self.boxes.items() if box.kind is Kind.LABEL and ends[name] <= inside]
        return Frame(title, (*(place.id for place in places), *labels))

    def scene(self, name: str, title: str, note: str, frames: tuple[Frame, ...] = ()) -> Scene:
        """All of it."""
        return Scene(name, title, note, tuple(self.boxes.values()), tuple(self.links), frames)
