"""How long an OpenCode session keeps anybody waiting, whoever stays silent: bounds computed from the timers, around the target.

Of the waits in R-SES-15 the machines have these: a Stop's reply, and the question of a start. What a start prepares, and a reconnect with
its attempts, are awaits of the HTTP client, which brings its own limits; they are steps here, and no timer of these machines ends
them. Those of a reconnect are in ``session_reconnect``.
"""

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
STOPPED, BEGUN = "the user waits for a Stop for ever", "the user waits for a turn that does not begin"
OWN = (start_words.ActiveRead, start_words.AnswerHandled, start_words.Prepared, start_words.SendDue)
"""What a start does by itself, once it can."""


def bounds(world: World) -> tuple[Property, ...]:
    """L6 of this world."""
    found: list[Property] = []
    for stop, which in zip(world.stopping, ("a Stop", "a second Stop"), strict=False):
        made = stop.took(stop_words.StopRequested)
        found += [
            Within(f"{which} is over within 10 s, although nobody answers", made, stop.now.phase != stop_words.WAITING,
                   requirements="R-SES-15", milliseconds=10_000, harm=STOPPED),
            Within(f"the turn of {which} that nobody answers is over within 10 s", made, world.session.now.phase == Turn.NONE,
                   requirements="R-SES-15", milliseconds=10_000, harm=STOPPED),
        ]  # fmt: skip
    asks = (start.now.phase != start_words.ASKING) & (start.next.phase == start_words.ASKING)
    answered = (start.now.phase == start_words.IDLE) | (start.now.phase == start_words.PREPARING)
    prepares = (start.now.phase != start_words.PREPARING) & (start.next.phase == start_words.PREPARING)
    return (
        *found,
        Within("the question of a start is over within 5 s, although nobody answers", asks, answered, requirements="R-SES-15",
               milliseconds=5_000, harm=BEGUN),
        Within("once its question is over, a start waits for nobody", prepares, start.now.phase == start_words.IDLE,
               requirements="R-SES-15", milliseconds=0, at_once=OWN, harm=BEGUN),
    )  # fmt: skip


PROPERTIES: tuple[Property, ...] = (
    *bounds(WORLD),
    Sometimes("a turn ends while its Stop waits", stop_1.took(TurnOver) & WORLD.session.emits(ReportTurn), requirements="R-SES-15"),
)

SPEC = SystemSpec(system=WORLD.system("session_times"), requirements=requirements(15), properties=PROPERTIES, tokens=3, counter=3)
