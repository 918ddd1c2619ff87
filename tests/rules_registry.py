"""A registry of replies on a stage: every event of a reply by the call that sends it, and callers that wait, queue and leave."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Any

from turnproof.checkers.stateful.chance import Chance
from turnproof.checkers.stateful.composed import Stage
from turnproof.machines import reply_operation_words as words
from turnproof.machines.reply_operation import MACHINE
from turnproof.machines.reply_slot import SlotPhase, TurnKind
from turnproof.shell import ReplyRegistry
from turnproof.shell.common import Signal
from turnproof.shell.reply_registry import MACHINES
from turnproof.shell.reply_registry_reply import Reply
from turnproof.shell.reply_registry_words import RegistryError

KEYS, IDS = ("chat", "mail"), ("s1", "s2", "s3")
CHANCE = Chance(MACHINE)

CALLS: Mapping[type, Callable[[Registry, Reply, Any], object]] = {
    words.PhaseEntered: lambda stage, reply, event: reply.enter(event.phase),
    words.MaintenanceWaitBegan: lambda stage, reply, event: reply.maintenance_wait(True),
    words.MaintenanceWaitEnded: lambda stage, reply, event: reply.maintenance_wait(False),
    words.LaneWaitBegan: lambda stage, reply, event: reply.lane_wait(True),
    words.LaneWaitEnded: lambda stage, reply, event: reply.lane_wait(False),
    words.OwnedWaitBegan: lambda stage, reply, event: reply.owned_wait(True),
    words.OwnedWaitEnded: lambda stage, reply, event: reply.owned_wait(False),
    words.BackendAttached: lambda stage, reply, event: reply.attach(event.backend or "run", Backend(stage)),
    words.BackendDetached: lambda stage, reply, event: reply.detach(event.backend or reply.state.backend),
    words.ConsentReported: lambda stage, reply, event: reply.report_consent(),
    words.ActivityRecorded: lambda stage, reply, event: reply.record_activity(),
    words.WorkBegan: lambda stage, reply, event: reply.work_began(event.latest_deadline_ms),
    words.WorkEnded: lambda stage, reply, event: reply.work_ended(event.latest_deadline_ms),
    words.OutcomeCommitted: lambda stage, reply, event: reply.commit(),
    words.AbortRequested: lambda stage, reply, event: reply.abort(event.reason),
    words.UpstreamAborted: lambda stage, reply, event: reply.abort_upstream(event.reason),
    words.SupersedeRequested: lambda stage, reply, event: reply.supersede(),
    words.RecoveryRequested: lambda stage, reply, event: reply.recover(),
    words.ExpiryRequested: lambda stage, reply, event: reply.expire(event.reason, stage.guard()),
    words.Completed: lambda stage, reply, event: reply.complete(stage.guard() if event.barrier else None),
    words.Failed: lambda stage, reply, event: reply.fail(event.code),
    words.RetainFailureRequested: lambda stage, reply, event: reply.retain_failure(),
    words.RetainUntilCompleteRequested: lambda stage, reply, event: reply.retain_until_complete(),
    words.ForceCleared: lambda stage, reply, event: reply.force_clear(),
    words.Evicted: lambda stage, reply, event: reply.evict(),
    words.SteerRequested: lambda stage, reply, event: reply.steer("message"),
    words.SessionRotationRequested: lambda stage, reply, event: reply.rotate(stage.rng.choice(IDS)),
    words.KeyChangeRequested: lambda stage, reply, event: reply.move(KEYS[reply.key == KEYS[0]]),
}
"""How each event of a reply is sent by whoever has it."""
OWN = {words.BarrierSettled, words.SettleExpired, words.LeaseExpired, words.WindowExpired}
"""Events that the registry sends itself."""


class Backend:
    """Counts its cancels, and makes trouble in whatever it is asked."""

    def __init__(self, stage: Registry) -> None:
        self.stage, self.answer = stage, stage.rng.random() < 0.8

    def cancel(self, reason: words.CancelReason) -> Any:
        self.stage.done["cancel"] += 1
        rng = self.stage.rng
        if rng.random() < 0.5:
            return self.stage.delay(random.Random(rng.random()))
        self.stage.trouble(rng)
        return None

    def consents(self) -> bool:
        self.stage.faulty(0.1)
        return self.answer

    def accepts(self) -> bool:
        return self.answer

    def steer(self, message: object) -> Any:
        self.stage.done["steer"] += 1
        return self.stage.delay(random.Random(self.stage.rng.random()))


class Registry(Stage):
    """Two keys, three ids."""

    machines = MACHINES
    refusals = (RegistryError,)

    async def open(self) -> None:
        self.registry = ReplyRegistry(durations_ms=self.durations_ms(*MACHINES), on_error=self.failed)
        self.replies: list[Reply] = []
        self.awaited: list[Reply] = []
        self.upstream: list[Signal[words.UpstreamReason]] = []

    async def close(self) -> None:
        await self.registry.shutdown(grace_ms=self.rng.choice(self.times))
        for reply in self.awaited:  # a reply is settled when its owner says so, and not before
            reply.complete()

    def judge(self) -> None:
        self.once("cancel", words.CancelBackend, exactly=False)
        self.once("steer", words.DeliverSteer)
        for key in KEYS:
            holder = self.registry.slot_state(key).holder
            if (self.registry.holder(key) is None) != (holder == ""):
                self.shadow.wrong.append(f"slot {key} is held by {holder!r}, and the registry knows {self.registry.holder(key)!r}")

        waiting = [key for key, slot in self.registry._slots.items() if slot.waiters and slot.state.phase is SlotPhase.FREE]
        self.shadow.wrong += [f"somebody waits for {key}, which is free" for key in waiting]
        lost = [reply for reply in self.registry.replies if self.registry.by_session(reply.session_id) is not reply]
        self.shadow.wrong += [f"{reply!r} is not found by {reply.session_id}" for reply in lost]

    def judge_end(self) -> None:
        self.shadow.wrong += [f"shut down, and {reply!r} holds its slot" for reply in self.registry.replies]

    def guard(self) -> Any:
        """A cleanup that a release waits for, now and then."""
        return self.delay(random.Random(self.rng.random())) if self.rng.random() < 0.6 else None

    def faulty(self, share: float) -> None:
        if self.rng.random() < share:
            self.trouble(self.rng)

    def event(self, rng: random.Random, kind: type) -> None:
        """Send a reply, most likely the newest one, an event."""
        if self.replies:
            reply = self.replies[-1] if rng.random() < 0.7 else rng.choice(self.replies)
            event = rng.choice(CHANCE.events[kind])
            try:
                CALLS[kind](self, reply, event)
            except RegistryError:
                self.done["refused"] += 1

    def reenter(self, rng: random.Random) -> None:
        self.event(rng, rng.choice(list(CALLS)))

    # ── callers ──

    def upstream_of(self, rng: random.Random) -> Signal[words.UpstreamReason] | None:
        if rng.random() < 0.5:
            return None
        self.upstream.append(Signal())
        return self.upstream[-1]

    async def do_begin(self, rng: random.Random) -> None:
        try:
            kind = rng.choice((TurnKind.VISIBLE, TurnKind.FOLLOW_UP))
            reply = self.registry.begin(rng.choice(KEYS), rng.choice(IDS), kind=kind, upstream=self.upstream_of(rng))
        except RegistryError:
            return
        self.kept(reply)

    def kept(self, reply: Reply) -> Reply:
        reply.signal.listen(lambda result: self.faulty(0.3))
        self.replies = [*self.replies[-7:], reply]
        return reply

    async def do_begin_waiting(self, rng: random.Random) -> None:
        key, session, upstream = rng.choice(KEYS), rng.choice(IDS), self.upstream_of(rng)
        match rng.randrange(3):
            case 0:
                begun = self.registry.begin_queued(key, session, upstream=upstream)
            case 1:
                begun = self.registry.begin_visible(key, session, timeout_ms=rng.choice(self.times), upstream=upstream)
            case _:
                begun = self.registry.begin_follow_up(key, session, timeout_ms=rng.choice(self.times), upstream=upstream)

        async def owned() -> None:
            reply = await begun
            with self.kept(reply):
                reply.enter(words.Phase.RUNNING)
                await asyncio.sleep(rng.choice(self.times) / 1000)
                self.faulty(0.3)

        self.call(owned())

    async def do_wait(self, rng: random.Random) -> None:
        if rng.random() < 0.5:
            self.call(self.registry.wait_for_idle(rng.choice(KEYS), rng.choice(self.times)))
        else:
            self.call(self.registry.wait_for_session_idle(rng.choice(IDS), rng.choice(self.times)))

    async def do_settled(self, rng: random.Random) -> None:
        if self.replies:
            self.awaited.append(rng.choice(self.replies))
            self.call(self.awaited[-1].settled())

    async def do_attempt(self, rng: random.Random) -> None:
        if self.replies:
            reply = self.replies[-1]
            try:
                reply.start_attempt() if rng.random() < 0.5 else reply.end_attempt()
            except RegistryError:
                self.done["refused"] += 1

    async def do_upstream_fires(self, rng: random.Random) -> None:
        if self.upstream:
            rng.choice(self.upstream).fire(rng.choice(list(words.UpstreamReason)))

    async def do_reply_runs(self, rng: random.Random) -> None:
        if self.replies:
            self.replies[-1].enter(words.Phase.RUNNING)
            self.replies[-1].attach("run", Backend(self))


def _event_rule(kind: type) -> Any:
    async def act(self: Registry, rng: random.Random) -> None:
        self.event(rng, kind)

    return act


for _kind in CALLS:
    setattr(Registry, f"do_{_kind.__name__}", _event_rule(_kind))
