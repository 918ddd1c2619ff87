"""What must hold of a caller that waits for a key to be idle."""

from __future__ import annotations

from turnproof.machines.kernel import Row, StartTimer, StopTimer, implies, not_
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
    asked,
    now,
)
from turnproof.specs.harms import with_harms
from turnproof.specs.language import (
    Carries,
    Fair,
    LeadsTo,
    Order,
    Property,
    Sometimes,
    Spec,
    Step,
    Variant,
    after,
    count,
    emits,
    ignored,
    on,
    refuses,
    taken,
)
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
    Step("a caller is on the list of the key exactly while it waits", requirements="R-REPLY-6", holds=
         (count(RegisterWait) <= 1) & (count(WithdrawWait) <= 1)
         & (emits(RegisterWait) == ((now.phase == IDLE) & (then.phase == WAITING)))
         & (emits(WithdrawWait) == ((now.phase == WAITING) & (then.phase == IDLE) & not_(on(KeyReleased)))),
         harm="a caller that is not on the list is never woken; one that stays on it is woken for nothing"),
    refuses("a caller that waits does not begin to wait again", WaitStarted, now.phase == WAITING, requirements="R-REPLY-6"),
    Step("what comes after the answer is ignored", requirements="R-REPLY-6", holds=
         implies(on(KeyReleased, SliceExpired), ignored() == (now.phase == IDLE))),
    Step("the signal of a caller counts once, waiting or not", requirements="R-REPLY-6", holds=
         implies(on(CallerAborted), then.caller_aborted & (ignored() == ((now.phase == IDLE) & now.caller_aborted)))),
    Order("the time of a caller runs before the key is asked", StartTimer, RegisterWait, requirements="R-REPLY-6",
          harm="an idle key answers within the step, and stops a timer that does not run yet"),
    Order("a caller's time stops before it is answered", StopTimer, Resolve, requirements="R-REPLY-6"),
    Order("a caller's time stops before it leaves the list", StopTimer, WithdrawWait, requirements="R-REPLY-6"),
    Order("a caller leaves the list before it is answered", WithdrawWait, Resolve, requirements="R-REPLY-6",
          harm="a caller that waits again at once is taken off the list by its own last wait"),
    LeadsTo("every wait is answered", now.phase == WAITING, now.phase == IDLE, requirements="R-REPLY-6",
            fairness=(Fair("an armed slice timer fires", now.phase == WAITING, on(SliceExpired) & taken()),)),
    Carries("a caller waits until its own deadline", StartTimer, "not_before_ms", asked.deadline_ms, when=on(WaitStarted),
            requirements="R-REPLY-6", harm="a caller is told that the key is held before its time is up, or waits too long"),
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
    properties=with_harms(PROPERTIES),
    variants=(
        Variant(machine=DEAF, violates={"true is answered only by a release": 1}, about="A release wakes a caller that already timed out."),
    ),
    discipline={Timer.SLICE: ("R-REPLY-6",)},
)
