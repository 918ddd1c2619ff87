"""The asyncio shell: runs machines. It applies an event, stores the state, then performs the effects in order.

``Runner`` is one instance of one machine, ``reply_runner`` the typed way to one reply. ``virtual_time`` and ``run_virtual`` make tests
of it take no time; ``turnproof.shell.fixtures`` has the pytest fixture. Needs attrs and the standard library, nothing else.
"""

from turnproof.shell.clock import ClockStalled, VirtualClock, VirtualLoop, run_virtual, virtual_time
from turnproof.shell.handlers import Failure, Handler, HandlersError, Performed, log_failure
from turnproof.shell.reply_operation import ReplyHandlers, ReplyRunner, reply_runner
from turnproof.shell.runner import Runner, RunnerClosed, TraceStep

__all__ = [
    "ClockStalled",
    "Failure",
    "Handler",
    "HandlersError",
    "Performed",
    "ReplyHandlers",
    "ReplyRunner",
    "Runner",
    "RunnerClosed",
    "TraceStep",
    "VirtualClock",
    "VirtualLoop",
    "log_failure",
    "reply_runner",
    "run_virtual",
    "virtual_time",
]
