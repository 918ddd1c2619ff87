"""What must hold of a caller that waits for a key to be idle."""

from __future__ import annotations

from turnproof.machines.kernel import Row, implies, not_
from turnproof.machines.reply_waiter import (
    IDLE,
    MACHINE,
    WAITING,
    CallerAborted,
    Effect,
    KeyReleased,
    RegisterWait,
    ReplyWaiter,
    Resolve,
    SliceExpired,
    Timer,
    WaitStarted,
    WithdrawWait,
    now,
)
from turnproof.specs.language import Fair, LeadsTo, Property, Sometimes, Spec, Step, Variant, after, count, emits, on, taken
from turnproof.specs.reply_operation_requirements import REQUIREMENTS

then = after(ReplyWaiter)
ONCE = "a waiting caller is answered once, and then no longer waits"

PROPERTIES: tuple[Property, ...] = (
    Step("no step answers twice", count(Resolve) <= 1, requirements="R-REPLY-6"),
    Step(ONCE, implies(now.phase == WAITING, emits(Resolve) == (then.phase == IDLE)), requirements="R-REPLY-6",
        harm="a caller starts twice, or never"),
    Step("true is answered only by a release", implies(emits(Resolve, released=True), on(KeyReleased) & (now.phase == WAITING)),
        requirements="R-REPLY-6"),
    Step("a caller whose time is up, or who gave up, gets false", requirements="R-REPLY-6", holds=
         implies(on(SliceExpired, CallerAborted) & (now.phase == WAITING), emits(Resolve, released=False) & emits(WithdrawWait))),
    Step("an aborted caller gets false at once", requirements="R-REPLY-6", holds=
         implies(on(WaitStarted) & now.caller_aborted & (now.phase == IDLE), emits(Resolve, released=False) & not_(emits(RegisterWait)))),
    LeadsTo("every wait is answered", now.phase == WAITING, now.phase == IDLE, requirements="R-REPLY-6",
            fairness=(Fair("an armed slice timer fires", now.phase == WAITING, on(SliceExpired) & taken()),)),
    Sometimes("a caller is told that the key was released", emits(Resolve, released=True), requirements="R-REPLY-6"),
    Sometimes("a caller gives up", emits(WithdrawWait), requirements="R-REPLY-6"),
)  # fmt: skip

DEAF = MACHINE.variant(
    "reply_waiter_answers_twice",
    replace={"KeyReleased/otherwise": Row[ReplyWaiter, Effect](KeyReleased, emit=(Resolve(True),), name="KeyReleased/otherwise")},
)

SPEC = Spec(
    machine=MACHINE,
    requirements={"R-REPLY-6": REQUIREMENTS["R-REPLY-6"]},
    properties=PROPERTIES,
    variants=(
        Variant(machine=DEAF, violates={"true is answered only by a release": 1}, about="A release wakes a caller that already timed out."),
    ),
    discipline={Timer.SLICE: ("R-REPLY-6",)},
)
