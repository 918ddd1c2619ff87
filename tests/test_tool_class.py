"""The mutation table: every entry, and what must hold of any name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnproof.machines.tool_class import READS, TABLE, When, mutation
from turnproof.machines.tool_execution import Mutation

MUTATING, NONE = Mutation.MUTATING, Mutation.NONE


@pytest.mark.parametrize("name", ["write", "edit", "apply_patch", "exec", "bash", "sessions_send", "message_reply", "resend_mail", "send"])
def test_these_names_always_mutate(name: str) -> None:
    assert mutation(name) is mutation(name, "list") is MUTATING


@pytest.mark.parametrize(
    ("name", "action", "answer"),
    [
        *[("process", action, MUTATING) for action in ("write", "send_keys", "submit", "paste", "kill")],
        ("process", "poll", NONE),
        ("process", "", NONE),
        *[("message", action, MUTATING) for action in ("send", "reply", "thread_reply", "edit", "delete", "react", "pin", "unpin")],
        ("message", "read", NONE),
        *[(name, action, NONE) for name in ("cron", "gateway", "canvas", "calendar_actions") for action in READS],
        *[(name, action, MUTATING) for name in ("cron", "gateway", "canvas", "calendar_actions") for action in ("", "add", "restart")],
        ("nodes", "list", NONE),
        ("nodes", "get", MUTATING),
        ("nodes", "", MUTATING),
        ("read", "", NONE),
        ("a tool nobody knows", "delete everything", NONE),
    ],
)
def test_an_action_decides(name: str, action: str, answer: Mutation) -> None:
    assert mutation(name, action) is answer


def test_a_message_with_text_mutates_whatever_its_action() -> None:
    assert mutation("message", "read", has_text=True) is MUTATING
    assert mutation("process", "poll", has_text=True) is NONE


def test_a_status_mutates_where_it_sets_a_model() -> None:
    assert (mutation("session_status"), mutation("session_status", sets_model=True)) == (NONE, MUTATING)


@given(name=st.text(max_size=12), action=st.text(max_size=12), text=st.booleans(), model=st.booleans())
def test_every_name_has_one_answer_whatever_its_case(name: str, action: str, text: bool, model: bool) -> None:
    answer = mutation(name, action, has_text=text, sets_model=model)
    assert answer in (MUTATING, NONE)
    if name.upper().lower() == name.lower() and action.upper().lower() == action.lower():
        assert answer is mutation(f" {name.upper()} ", action.upper(), has_text=text, sets_model=model)


def test_no_two_entries_know_a_name() -> None:
    names = [name for entry in TABLE for name in entry.names]
    assert len(names) == len(set(names))
    assert {entry.when for entry in TABLE} == set(When)
