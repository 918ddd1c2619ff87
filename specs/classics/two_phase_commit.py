"""Two-phase commit, without failures of the network: resource managers vote, one coordinator decides, and nobody disagrees.

After J. Gray and L. Lamport, "Consensus on transaction commit" (2006), and their TLA+ module ``TwoPhase``. There a message, once
sent, may be received again and again; here a vote lies in a channel until the coordinator, still undecided, takes it, and a
decision is read from the coordinator itself. The reachable states correspond one to one, so the counts must be those of
``TwoPhase``: 288 for 3 managers, 8,832 for 5, 296,448 for 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Annotated

from attrs import evolve, frozen

from turnproof.machines.kernel import Machine, Range, Row, all_of, any_of, choose, implies, not_, one_of, symbol
from turnproof.specs.language import Always, Fair, LeadsTo, Sometimes
from turnproof.specs.system import Channel, Interchangeable, NoDeadlock, Part, Spontaneous, System, SystemSpec, SystemVariant, Wire

MOST = 16
"""Managers that one coordinator can count."""


# ── the coordinator ──


class Decision(Enum):
    """What the coordinator has decided."""

    NONE = "none"
    COMMIT = "commit"
    ABORT = "abort"


@frozen
class Coordinator:
    """Counts votes until it decides."""

    phase: Decision = Decision.NONE
    votes: Annotated[int, Range(0, MOST)] = 0


@frozen
class VoteArrived:
    """A manager is prepared."""


@frozen
class CommitChosen:
    """All have voted; the coordinator commits."""


@frozen
class AbortChosen:
    """The coordinator gives up, for whatever reason."""


coordinator = symbol(Coordinator)
COORDINATOR: Machine[Coordinator, object, object] = Machine(
    name="coordinator",
    initial=Coordinator(),
    now=coordinator,
    events=(VoteArrived, CommitChosen, AbortChosen),
    effects=(),
    rows=(
        Row(VoteArrived, at=Decision.NONE, when=coordinator.votes < MOST, data=evolve(coordinator, votes=coordinator.votes + 1)),
        Row(VoteArrived, refuse="it is decided"),
        Row(CommitChosen, at=Decision.NONE, to=Decision.COMMIT),
        Row(CommitChosen, refuse="it is decided"),
        Row(AbortChosen, at=Decision.NONE, to=Decision.ABORT),
        Row(AbortChosen, refuse="it is decided"),
    ),
)


# ── a resource manager ──


class Stage(Enum):
    """How far a manager is."""

    WORKING = "working"
    PREPARED = "prepared"
    COMMITTED = "committed"
    ABORTED = "aborted"


@frozen
class Manager:
    """One participant."""

    phase: Stage = Stage.WORKING
    voted: bool = False
    """It promised to commit, once and for all."""


@frozen
class PrepareChosen:
    """The manager is ready to commit, and says so."""


@frozen
class GaveUp:
    """The manager aborts on its own, which it may only while it has not promised."""


@frozen
class Decided:
    """The manager learns the coordinator's decision."""

    decision: Decision


@frozen
class Vote:
    """Tell the coordinator: prepared."""


manager, decided = symbol(Manager), symbol(Decided)
MANAGER: Machine[Manager, object, object] = Machine(
    name="manager",
    initial=Manager(),
    now=manager,
    events=(PrepareChosen, GaveUp, Decided),
    effects=(Vote,),
    rows=(
        Row(PrepareChosen, at=Stage.WORKING, to=Stage.PREPARED, data=evolve(manager, voted=True), emit=(Vote(),)),
        Row(PrepareChosen, refuse="it has prepared already, or is done"),
        Row(GaveUp, at=Stage.WORKING, to=Stage.ABORTED),
        Row(GaveUp, refuse="it has promised"),
        Row(decided, when=decided.decision == Decision.COMMIT, to=Stage.COMMITTED),
        Row(decided, when=decided.decision == Decision.ABORT, to=Stage.ABORTED),
        Row(Decided, refuse="no decision"),
    ),
)


HASTY = MANAGER.variant(
    "hasty_manager",
    replace={"GaveUp/otherwise": (Row(GaveUp, at=Stage.PREPARED, to=Stage.ABORTED), Row(GaveUp, refuse="it is over", name="GaveUp/over"))},
)
"""A manager that takes its promise back."""


# ── the system ──

REQUIREMENTS: Mapping[str, str] = {
    "2PC-1": "No manager commits where another aborts.",
    "2PC-2": "A manager commits only if every manager was prepared.",
    "2PC-3": "If everybody is prepared and the coordinator lives, everybody ends.",
}


def two_phase_commit(managers: int, *, hasty: bool = False) -> System:
    """The system with that many managers; ``hasty``, they may take their promise back."""
    leader = Part("coordinator", COORDINATOR)
    others = tuple(Part(f"manager_{n}", HASTY if hasty else MANAGER) for n in range(1, managers + 1))
    may_give_up = (Stage.WORKING, Stage.PREPARED) if hasty else (Stage.WORKING,)
    undecided = leader.now.phase == Decision.NONE
    channels = tuple(Channel(f"vote_{n}", leader, capacity=1, when=undecided) for n in range(1, managers + 1))
    return System(
        name=f"two_phase_commit_{managers}" + ("_hasty" if hasty else ""),
        parts=(leader, *others),
        wires=tuple(Wire(one, Vote, channel, VoteArrived) for one, channel in zip(others, channels, strict=True)),
        channels=channels,
        spontaneous=(
            Spontaneous(leader, CommitChosen, when=undecided & (leader.now.votes == managers)),
            Spontaneous(leader, AbortChosen, when=undecided),
            *(Spontaneous(one, PrepareChosen, when=one.now.phase == Stage.WORKING) for one in others),
            *(Spontaneous(one, GaveUp, when=one_of(one.now.phase, *may_give_up)) for one in others),
            *(
                Spontaneous(one, Decided(decision), when=leader.now.phase == decision)
                for one in others
                for decision in (Decision.COMMIT, Decision.ABORT)
            ),
        ),
    )


def lemmas(system: System) -> Iterator[tuple[str, bool]]:
    """Why it holds: an invariant of two conjuncts, and four more for each manager, whatever their number."""
    leader, *others = system.parts
    told = leader.now.votes
    for one, vote in zip(others, system.channels, strict=True):
        told += vote.length + choose(one.now.voted, 0, 1)
        committed, aborted = one.now.phase == Stage.COMMITTED, one.now.phase == Stage.ABORTED
        yield f"{one.name} votes when it prepares", implies(one.now.phase == Stage.WORKING, not_(one.now.voted))
        yield f"{one.name} votes once", implies(vote.length > 0, one.now.voted)
        yield f"{one.name} commits after the coordinator", implies(committed, leader.now.phase == Decision.COMMIT)
        yield f"what {one.name} promised it keeps", implies(aborted & one.now.voted, leader.now.phase == Decision.ABORT)
    yield "every vote that was given is under way or counted", told == len(others)
    yield "a commit rests on everybody's vote", implies(leader.now.phase == Decision.COMMIT, leader.now.votes == len(others))


def specification(managers: int) -> SystemSpec:
    """What must hold of it."""
    system = two_phase_commit(managers)
    leader, *others = system.parts
    committed = tuple(one.now.phase == Stage.COMMITTED for one in others)
    aborted = tuple(one.now.phase == Stage.ABORTED for one in others)
    over = all_of(*(one.now.phase != Stage.WORKING for one in others), *(one.now.phase != Stage.PREPARED for one in others))
    learns = tuple(
        Fair(f"{one.name} learns a decision", (leader.now.phase != Decision.NONE) & (one.now.phase == Stage.PREPARED), one.took(Decided))
        for one in others
    )
    decides = Fair("an undecided coordinator gives up at last", leader.now.phase == Decision.NONE, leader.next.phase != Decision.NONE)
    acts = tuple(Fair(f"{one.name} acts", one.now.phase == Stage.WORKING, one.next.phase != Stage.WORKING) for one in others)
    return SystemSpec(
        system=system,
        requirements=REQUIREMENTS,
        lemmas=tuple(lemmas(system)),
        properties=(
            Always("nobody commits where another aborts", not_(any_of(*committed) & any_of(*aborted)), requirements="2PC-1"),
            Always("who commits, all voted", not_(any_of(*committed)) | all_of(*(one.now.voted for one in others)), requirements="2PC-2"),
            Sometimes("everybody commits", all_of(*committed), requirements="2PC-2"),
            Sometimes("everybody aborts", all_of(*aborted), requirements="2PC-1"),
            NoDeadlock("until everybody is done somebody can act", unless=over, requirements="2PC-3"),
            LeadsTo("everybody ends", leader.now.phase == Decision.NONE, over, fairness=(decides, *acts, *learns), requirements="2PC-3"),
        ),
        interchangeable=(Interchangeable(*zip(others, system.channels, strict=True)),),
        variants=(
            SystemVariant(
                system=two_phase_commit(managers, hasty=True),
                about="a manager that voted aborts all the same",
                # All prepare, all votes arrive, the coordinator commits, one manager learns it and another gives up.
                violates={"nobody commits where another aborts": 2 * managers + 3},
            ),
        ),
    )


SPEC = specification(3)
