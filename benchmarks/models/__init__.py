"""The peers' own models, as somebody who knows their language would write them: nothing of ours is translated."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent


def text(name: str, number: int) -> str:
    """The model of that file with ``@N@`` replaced by ``number``: managers, or philosophers."""
    return (HERE / name).read_text().replace("@N@", str(number))
