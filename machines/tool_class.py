"""Which tool calls change the world, by name and action.

What it is. A table, not a machine: for a name and its action, whether the call mutates. ``tool_execution`` puts it together with what
marks and lists say: a call is safe to repeat only if it is marked or listed as safe and does not mutate.

Which runtime. OpenClaw's mutation table (@01296396; newer versions differ in details).

What it promises.
  1. Every name and action gives exactly one answer, whatever their case or spacing.
  2. Where an action decides and none is given, the call counts as mutating.

Rule 1: every answer is an entry of ``TABLE``; the first that matches a name decides.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from attrs import frozen

from turnproof.machines.tool_execution import Mutation


class When(Enum):
    """What makes a call of an entry mutate."""

    ALWAYS = "always"
    ACTION = "action"
    """One of the entry's actions."""
    ACTION_OR_TEXT = "action_or_text"
    """One of the entry's actions, or a content or message text in it."""
    OTHER_ACTION = "other_action"
    """Any action but the entry's, or none."""
    SETS_MODEL = "sets_model"


READS = ("get", "list", "read", "status", "show", "fetch", "search", "query", "view", "poll", "log", "inspect", "check", "probe")
"""Actions that only look."""


@frozen
class Entry:
    """Names that mutate in the same way."""

    names: tuple[str, ...]
    when: When
    actions: tuple[str, ...] = ()
    matches: Callable[[str], bool] | None = None
    """Names by their form, beside ``names``."""

    def knows(self, name: str) -> bool:
        """Whether the entry is about this name."""
        return name in self.names or (self.matches is not None and self.matches(name))


TABLE: tuple[Entry, ...] = (
    Entry(("write", "edit", "apply_patch", "exec", "bash", "sessions_send"), When.ALWAYS),
    Entry(("process",), When.ACTION, ("write", "send_keys", "submit", "paste", "kill")),
    Entry(("message",), When.ACTION_OR_TEXT, ("send", "reply", "thread_reply", "edit", "delete", "react", "pin", "unpin")),
    Entry(("session_status",), When.SETS_MODEL),
    Entry(("cron", "gateway", "canvas"), When.OTHER_ACTION, READS, matches=lambda name: name.endswith("_actions")),
    Entry(("nodes",), When.OTHER_ACTION, ("list",)),
    Entry((), When.ALWAYS, matches=lambda name: name.startswith("message_") or "send" in name),
)


def mutation(name: str, action: str = "", *, has_text: bool = False, sets_model: bool = False) -> Mutation:
    """What the call does to the world. ``has_text``: it carries a content or a message text; ``sets_model``: it sets a model.

    A name that no entry knows does not mutate by this test; it is not safe to repeat for that, unless it is marked or listed.

    >>> mutation("exec").value, mutation("process", "poll").value, mutation("cron").value
    ('mutating', 'none', 'mutating')
    """
    name, action = name.strip().lower(), action.strip().lower()
    entry = next((entry for entry in TABLE if entry.knows(name)), None)
    return Mutation.MUTATING if entry is not None and _mutates(entry, action, has_text, sets_model) else Mutation.NONE


def _mutates(entry: Entry, action: str, has_text: bool, sets_model: bool) -> bool:
    if entry.when is When.ALWAYS:
        return True
    if entry.when is When.SETS_MODEL:
        return sets_model
    if entry.when is When.OTHER_ACTION:
        return action not in entry.actions
    return action in entry.actions or (entry.when is When.ACTION_OR_TEXT and has_text)


__all__ = ["READS", "TABLE", "Entry", "When", "mutation"]
