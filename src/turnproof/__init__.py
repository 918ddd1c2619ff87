"""The lifecycles of an agent runtime as finite state machines, each defined one time.

Import a machine by its full name, ``from turnproof.machines.reply_operation import MACHINE``. Nothing is imported here, so that
a runtime loads only the machines it uses.
"""

__version__ = "0.1.0"
