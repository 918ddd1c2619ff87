"""What the approved rule of the mark (V4) still gets wrong: distinct defects, each with the powers of the environment that it needs.

A violation is grouped by the rule that breaks, not by the property that shows it. ``needs`` are the powers with which it is found at
``length`` steps, all others taken away; without any one of them it is not found, which a test shows by exploring the rest whole. Nothing
here was found by reading: each is the answer of a search over V4 with every power, made smaller by taking powers away.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from turnproof.specs import session_properties as p
from turnproof.specs.session_history import V4, Marked, design
from turnproof.specs.session_parts import ASKS, MORE, N1, N2, N3, N4, N6, N7, N8, N9, N10, N11, N12, POWERS, STOPS, World
from turnproof.specs.system import Switch, SystemVariant


@attrs.frozen(eq=False, kw_only=True)
class Defect:
    """One thing that V4 gets wrong."""

    name: str
    breaks: str
    """The property that shows it."""
    needs: tuple[Switch, ...]
    length: int
    """Steps of the shortest story with these powers alone."""
    about: str
    harm: str
    rule: int
    """The rule of the target that removes it; the rules stand in ``turnproof.machines.session``."""

    @property
    def world(self) -> World:
        """V4 in an environment that has these powers alone."""
        return only(*self.needs)


def only(*powers: Switch, machine: Marked = V4) -> World:
    """A version of the mark in an environment that has these powers alone, with two Stops and one drop."""
    return World(design(machine), [s for s in (*POWERS, *MORE) if s not in powers], drops=1)


WRONG, STUCK, KILLED, UNSENT, TOGETHER = "wrong turn ended", "turn stuck", "reply killed", "prompt never sent", "two prompts run at once"

DEFECTS = (
    Defect(
        name="end_of_another",
        breaks=p.OWN_END,
        needs=(N7,),
        length=8,
        rule=1,
        harm=f"{WRONG}; {UNSENT}",
        about="An end ends whatever turn is installed. A background report runs while the user's turn is being prepared; its "
        "end completes the user's turn, and the prompt is never sent.",
    ),
    Defect(
        name="stop_outlives_its_turn",
        breaks=p.OWN_STOP,
        needs=(STOPS,),
        length=12,
        rule=2,
        harm=f"{WRONG}; {KILLED}; {STUCK}",
        about="A Stop that times out ends the turn that is installed then, and does not ask whether it is the one it was for. "
        "The mark it sets eats the end of the next turn's own run, and that turn is stuck.",
    ),
    Defect(
        name="stopped_before_sending",
        breaks=p.USER_RESTS,
        needs=(STOPS, N4),
        length=6,
        rule=2,
        harm=f"{STUCK}; {UNSENT}",
        about="A start that finds its turn stopped returns and says nothing. If the Stop's interrupt then fails, the Stop is "
        "withdrawn: the turn goes on, and nobody is going to send its prompt.",
    ),
    Defect(
        name="reconnect_before_admission",
        breaks=p.ASKED,
        needs=(N6, N10),
        length=13,
        rule=3,
        harm=f"{TOGETHER}; a turn is reported interrupted whose prompt runs",
        about="A reconnect that finds the session idle ends a turn whose prompt is still on its way, and sets no mark. The "
        "prompt is admitted, runs as a wake, and the next one goes out beside it.",
    ),
    Defect(
        name="settling_is_active",
        breaks=p.USER_RESTS,
        needs=(N6, N12),
        length=11,
        rule=3,
        harm=STUCK,
        about="A reconnect finds a session active that has published its end and only settles. The turn is kept, and no end "
        "comes any more.",
    ),
    Defect(
        name="successor_is_active",
        breaks=p.OWN_WAKE,
        needs=(N1, N3, N6, N7),
        length=18,
        rule=3,
        harm=f"{WRONG}; reply lost",
        about="A reconnect finds the session active with another execution than the one the continuation took. The turn is "
        "kept, and the other's end ends it.",
    ),
    Defect(
        name="restart_reads_as_success",
        breaks=p.TRUE_PAST,
        needs=(N7, N11),
        length=14,
        rule=3,
        harm="an answer is lost and called complete",
        about="The server restarts and loses the run. The idle item of a later execution follows the prompt in the history, and "
        "the turn is reported completed.",
    ),
    Defect(
        name="parked_prompt",
        breaks=p.PARKED,
        needs=(STOPS, N8, N10),
        length=18,
        rule=4,
        harm=STUCK,
        about="A late interrupt meets a session that settles and drops its doorbell. The prompt that rang it stays in the "
        "inbox; nothing runs, and nothing asks.",
    ),
    Defect(
        name="mark_spent_on_another",
        breaks=p.FAILED_ASKED,
        needs=(N1, N7, N8, N10),
        length=14,
        rule=5,
        harm=TOGETHER,
        about="There is one mark, and any end spends it: the end of a background report clears the mark of a prompt whose reply "
        "was lost. The next prompt goes out without a question while the first one waits or runs.",
    ),
    Defect(
        name="idle_promotes_the_mark",
        breaks=p.FAILED_ASKED,
        needs=(N2, N6, N9, N10),
        length=15,
        rule=5,
        harm=TOGETHER,
        about="A reconnect that finds the session idle takes the marked run for started, or over. A prompt that is admitted "
        "after that starts, and its own start clears the mark: the next prompt goes out unchecked. Needs admission after "
        "the error reply.",
    ),
    Defect(
        name="deaf_after_a_drop",
        breaks=p.OWN_ASK,
        needs=(N6, STOPS, ASKS),
        length=17,
        rule=6,
        harm=f"{KILLED}; the user is never asked",
        about="A turn installed after a mark takes everything before the next start for the old run's tail. A drop takes that "
        "start, and the reconnect does not touch the flag: the turn's own permission request is rejected.",
    ),
    Defect(
        name="wakes_forgotten",
        breaks=p.WAKES_KEPT,
        needs=(N6, N7),
        length=7,
        rule=6,
        harm="reply lost",
        about="A reconnect forgets every held wake, also one that still runs: its background reply is never shown.",
    ),
)
"""Sorted by the rule that removes them. Found at all: with every power on. Found at this length: with those it needs."""

ALONE: Mapping[str, Mapping[str, int]] = {
    "N2": {p.OWN_END: 15, p.SENT: 15},
    "N7": {p.OWN_END: 8, p.SENT: 8},
    "stops": {p.OWN_STOP: 12},
}
"""What each power breaks in V4 with every other one taken away, and in how many steps; a power that is not here breaks nothing alone."""


def question(machine: Marked, late: bool) -> World:
    """Where section 10.7 is answered for this version: an earlier prompt, a reconnect, a later prompt. ``late``: admission may be late.

    One Stop and one drop, and everything else that needs no restart, no settling snapshot and no child.
    """
    without = [N4, N7, N11, N12, ASKS, *(s for s in (*POWERS, *MORE) if s.name in ("N13", "death"))]
    return World(design(machine), without if late else [*without, N2], stops=1, drops=1)


def variants() -> tuple[SystemVariant, ...]:
    """Each defect as a system that must fail, in its own small world."""
    return tuple(
        SystemVariant(
            system=defect.world.system(f"session_v4_{defect.name}"),
            about=defect.about,
            violates={defect.breaks: defect.length},
            properties=tuple(q for q in p.properties(defect.world) if q.name == defect.breaks),
        )
        for defect in DEFECTS
    )
