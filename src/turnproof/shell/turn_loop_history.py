"""The history of a turn loop, in memory: messages in the order in which the model must see them, and the step that is being made."""

from __future__ import annotations

import attrs

from turnproof.machines.finish_reason import Finish
from turnproof.machines.tool_call import DONE, FAILED, REJECTED
from turnproof.shell.turn_loop_words import CallRecord, ContinueNote, Message, Step, Summary, UserMessage

RESULTS = (DONE, FAILED, REJECTED)


@attrs.define
class Draft:
    """A step that is being made."""

    text: str = ""
    reasoning: str = ""
    calls: list[CallRecord] = attrs.field(factory=list)
    finish: Finish | None = None


class History:
    """Messages, and the step that is being made. A message that comes while the model answers stands behind that answer."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._at = 0
        self.draft: Draft | None = None
        """The step that is being made."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """All of them."""
        return tuple(self._messages)

    def keep(self, content: object) -> None:
        """A user message."""
        self._messages.append(UserMessage(content))

    def add(self, message: Message) -> None:
        """Any message."""
        self._messages.append(message)

    def begin_step(self, at: int) -> None:
        """A step begins; its place is behind the first ``at`` messages, which its request holds."""
        self._at, self.draft = at, Draft()

    def follows_results(self) -> bool:
        """The step being made answers nothing but results of calls."""
        before = self._messages[self._at - 1] if 0 < self._at <= len(self._messages) else None
        return isinstance(before, Step) and any(call.end in RESULTS for call in before.calls)

    def record(self) -> None:
        """Write the step down that is being made, if one is."""
        draft, self.draft = self.draft, None
        if draft is not None:
            self._messages.insert(self._at, Step(draft.text, draft.reasoning, tuple(draft.calls), draft.finish))

    def discard(self) -> None:
        """Take the step out that was written down last."""
        self._messages.pop(self._at)

    def append_continue(self) -> None:
        """The step that was written down last was interrupted."""
        self._messages.insert(self._at + 1, ContinueNote())

    def replace(self, count: int, messages: tuple[Message, ...]) -> None:
        """Others stand for the first ``count`` messages."""
        self._messages[:count] = messages

    def last_text(self) -> str:
        """The text of the last step."""
        found = next((message for message in reversed(self._messages) if isinstance(message, (Step, Summary))), None)
        return "" if found is None else found.text
