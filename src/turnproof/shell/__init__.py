"""The asyncio shell: runs machines. It applies an event, stores the state, then performs the effects in order.

``Runner`` is one instance of one machine; ``turnproof.shell.reply_operation`` has the typed way to one reply. ``virtual_time`` and
``run_virtual`` make tests take no time; ``turnproof.shell.fixtures`` has the pytest fixture. Needs attrs and the standard library,
nothing else, and loads no machine that you do not import.
"""

from turnproof.shell.clock import ClockStalled, VirtualClock, VirtualLoop, run_virtual, virtual_time
from turnproof.shell.handlers import Failure, Handler, HandlersError, Performed, log_failure
from turnproof.shell.runner import Runner, RunnerClosed, TraceStep

__all__ = [
    "ClockStalled",
    "Failure",
    "Handler",
    "HandlersError",
    "Performed",
    "Runner",
    "RunnerClosed",
    "TraceStep",
    "VirtualClock",
    "VirtualLoop",
    "log_failure",
    "run_virtual",
    "virtual_time",
]
