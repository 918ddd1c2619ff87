"""How long an OpenCode session keeps anybody waiting, whoever stays silent: bounds computed from the timers, around the target."""

from __future__ import annotations

from turnproof.machines import session_start as start_words
from turnproof.machines import session_stop as stop_words
from turnproof.machines.session_stop import TurnOver
from turnproof.machines.session_words import ReportTurn, Turn
from turnproof.specs.language import Property, Sometimes
from turnproof.specs.session_parts import MORE, N1, N4, N6, N7, N8, N10, N12, POWERS, STOPS, World, start, stop_1
from turnproof.specs.session_requirements import requirements
from turnproof.specs.session_target import TARGET
from turnproof.specs.system import SystemSpec, Within

WORLD = World(TARGET, [s for s in (*POWERS, *MORE) if s not in (N1, N4, N6, N7, N8, N10, N12, STOPS)], stops=1, drops=1)
over = (start.now.phase == start_words.IDLE) | (start.now.phase == start_words.PREPARING)
stops = stop_1.took(stop_words.StopRequested)
asks = (start.now.phase != start_words.ASKING) & (start.next.phase == start_words.ASKING)
STOPPED = "the user waits for a Stop for ever"

PROPERTIES: tuple[Property, ...] = (
    Within("a Stop is over within 10 s, although nobody answers", stops, stop_1.now.phase != stop_words.WAITING,
           requirements="R-SES-15", milliseconds=10_000, harm=STOPPED),
    Within("the turn of a Stop that nobody answers is over within 10 s", stops, WORLD.session.now.phase == Turn.NONE,
           requirements="R-SES-15", milliseconds=10_000, harm=STOPPED),
    Within("the question of a start is over within 5 s, although nobody answers", asks, over, requirements="R-SES-15",
           milliseconds=5_000, harm="the user waits for a turn that does not begin"),
    Sometimes("a turn ends while its Stop waits", stop_1.took(TurnOver) & WORLD.session.emits(ReportTurn), requirements="R-SES-15"),
)  # fmt: skip

SPEC = SystemSpec(
    system=WORLD.system("session_times"), requirements=requirements(15), properties=PROPERTIES, tokens=3, counter=3
)  # fmt: skip
