"""pytest fixtures for code that waits. Installed with turnproof: pytest finds them by itself (entry point ``pytest11``).

``virtual_clock``: time passes only when nothing else can, so a test that waits an hour takes no time::

    def test_a_reply_is_released_after_a_minute(virtual_clock):
        async def main():
            reply = reply_runner(handlers)
            await reply.send(AbortRequested(AbortReason.USER))
            await virtual_clock.advance(60_000)
            assert reply.state.released

        virtual_clock.run(main())

``any_clock``: the test runs twice, on the virtual clock and on the real one, a minute of which takes 60 ms. It takes its durations from the
clock (``durations_ms=any_clock.durations_ms(MACHINE)``) and asks for order and "not before", never for an exact instant.

Where plugins are not loaded by themselves (``-p no:...``, ``PYTEST_DISABLE_PLUGIN_AUTOLOAD``), put
``pytest_plugins = ["turnproof.shell.fixtures"]`` into the top ``conftest.py``. The only module of the shell that imports pytest.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from turnproof.shell.clock import VirtualClock, virtual_time
from turnproof.shell.real_clock import Clock, RealClock


@pytest.fixture
def virtual_clock() -> Iterator[VirtualClock]:
    """A virtual clock that starts at 0: ``virtual_clock.run(main())``, inside it ``await virtual_clock.advance(ms)``."""
    with virtual_time() as clock:
        yield clock


@pytest.fixture(params=["virtual", "real"])
def any_clock(request: pytest.FixtureRequest) -> Iterator[Clock]:
    """A virtual clock, and then a real one at a thousandth of the time: the test runs on both."""
    clock: VirtualClock | RealClock = VirtualClock() if request.param == "virtual" else RealClock()
    try:
        yield clock
    finally:
        clock.close()
