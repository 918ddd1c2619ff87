"""What every test run needs."""

from __future__ import annotations

import signal
import threading

if threading.current_thread() is threading.main_thread():
    # A run that was started in the background inherits an ignored SIGINT, and so would the programs that tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
