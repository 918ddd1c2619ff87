"""The questions of a walk as the kernel has them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from turnproof.checkers.network.compile import Compiler
from turnproof.checkers.network.kernel import places as at
from turnproof.checkers.network.kernel.places import Ints
from turnproof.checkers.network.walk import Over, Question

KINDS = {Over.STATE: at.ASK_STATE, Over.STEP: at.ASK_STEP, Over.STUCK: at.ASK_STUCK}


class Asked:
    """Questions, compiled; and what of their hits, of triggers and of ``faults`` kinds of fault lies where in ``found``."""

    def __init__(self, compiler: Compiler, questions: Sequence[Question], triggers: int, faults: int) -> None:
        self.questions, self.triggers, self.faults = len(questions), triggers, faults
        self.free = 0
        """Questions about steps that need nothing counted; they come first."""
        self.rows: dict[Over, list[tuple[int, int, int, list[int], list[int]]]] = {over: [] for over in Over}
        for n, question in enumerate(questions):
            positive, negative, program = compiler.literals(question.holds)
            need = compiler.needed(question.holds) if question.over is Over.STEP else 0
            if question.over is Over.STEP and not need:
                self.free += 1
                self.rows[Over.STEP].insert(0, (2 * n, program, compiler.moved(question.holds), positive, negative))
            else:
                self.rows[question.over].append((2 * n, program, need, positive, negative))

    def array(self, words: int) -> Ints:
        """Everything, once it is known how many words of clauses there are."""
        made: list[int] = [0] * at.A_ROWS
        made[at.A_TAKEN], made[at.A_FAULTS] = 2 * self.questions, 2 * self.questions + self.triggers
        made[at.A_FREE] = self.free
        for row in self.rows[Over.STEP][self.free :]:
            made[at.A_NEEDS] |= row[2]
        always = any(need < 0 for _, _, need, *_ in self.rows[Over.STEP][: self.free])
        made[at.A_QUIET] = at.ALL if always else at.FIRST if self.free else at.NONE
        for over, kind in KINDS.items():
            made[kind], made[kind + 1] = len(made), len(self.rows[over])
            for place, program, need, *sides in self.rows[over]:
                made += [place, program, need]
                for bits in sides:
                    mask = [0] * words
                    for bit in bits:
                        mask[bit >> 6] |= 1 << (bit & 63)
                    made += mask
        return np.array(made, np.int64)

    def found(self) -> Ints:
        """Where one thread notes what it finds: no hit, nothing taken, no fault yet."""
        found: Ints = np.full(2 * self.questions + self.triggers + 2 * self.faults, -1, np.int64)
        found[2 * self.questions : 2 * self.questions + self.triggers] = 0
        return found

    def hits(self, found: Ints) -> Ints:
        """Question -> row and trigger."""
        return found[: 2 * self.questions].reshape(-1, 2)

    def taken(self, found: Ints) -> Ints:
        """Trigger -> 1 if it was taken, and 2 more if that changed anything."""
        return found[2 * self.questions : 2 * self.questions + self.triggers]

    def faulty(self, found: Ints) -> Ints:
        """Kind of fault -> row and trigger."""
        return found[2 * self.questions + self.triggers :].reshape(-1, 2)
