"""pytest fixtures for code that waits. Put ``pytest_plugins = ["turnproof.shell.fixtures"]`` into the top ``conftest.py``.

The only module of the shell that imports pytest; no other imports it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from turnproof.shell.clock import VirtualClock, virtual_time


@pytest.fixture
def virtual_clock() -> Iterator[VirtualClock]:
    """A virtual clock that starts at 0: ``virtual_clock.run(main())``, inside it ``await virtual_clock.advance(ms)``."""
    with virtual_time() as clock:
        yield clock
