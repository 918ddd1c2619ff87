"""The graph of promises about the future: how it is built by several threads. What it says is compared in ``test_network_random``."""

from __future__ import annotations

from threading import Event

import pytest

from turnproof.checkers.network.promised import by_shard


@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError])
def test_when_one_shard_fails_the_others_end(failure: type[BaseException]) -> None:
    told: list[bool] = []

    def job(shard: int, ended: Event) -> int:
        if shard == 0:
            raise failure
        told.append(ended.wait(60))
        return shard

    with pytest.raises(failure):
        by_shard(2, range(4), job)
    assert told == [True] * 3


def test_what_each_shard_gives_comes_in_their_order() -> None:
    assert by_shard(2, [2, 0, 1], lambda shard, _: 10 * shard) == [20, 0, 10]
