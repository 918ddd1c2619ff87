"""Who performs the effects of a machine: an object with one method an effect, or a mapping from effect class to function.

The object is the typed way. Its Protocol has one method for each effect class, named after it in snake_case (``CancelBackend``
is performed by ``cancel_backend``), so a type checker names the one that was forgotten, and so does building a runner. A handler is
an ordinary function or a coroutine function, takes the effect, and returns nothing.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import attrs

from turnproof.machines.kernel import TIMER_EFFECTS, Machine

Performed = Awaitable[None] | None
"""What a handler returns: nothing, or something to await."""

Handler = Callable[[Any], Performed]
"""Performs one effect. ``Any`` because the handlers of one machine take different effects; the Protocol of a machine is exact."""

LOG = logging.getLogger("turnproof.shell")


class HandlersError(TypeError):
    """A handler is missing, or handles nothing. The message names the effect class and what to write."""


@attrs.frozen
class Failure:
    """Something that the runner called has raised. The machine has been stepped all the same, and later effects are performed."""

    machine: str
    key: str
    effect: object
    """The effect whose handler failed; None if it was the trace hook."""
    error: BaseException


def log_failure(failure: Failure) -> None:
    """What a runner does with a failure unless told otherwise: one logged error with its traceback, on ``turnproof.shell``."""
    what = "the trace hook" if failure.effect is None else f"the handler of {failure.effect!r}"
    LOG.error("%s %s: %s failed", failure.machine, failure.key, what, exc_info=failure.error)


def method_name(effect: type) -> str:
    """``CancelBackend`` -> ``cancel_backend``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", effect.__name__).lower()


@lru_cache(maxsize=256)
def method_names(machine: Machine[Any, Any, Any]) -> Mapping[type, str]:
    """Effect class -> name of the method that performs it. The timer effects are the runner's own and left out."""
    return {effect: method_name(effect) for effect in machine.effects if effect not in TIMER_EFFECTS}


def check_handlers(machine: Machine[Any, Any, Any], handlers: object) -> None:
    """Raise :class:`HandlersError` unless every effect of the machine has a handler; the message names all that lack one."""
    own: dict[str, object] = getattr(handlers, "__dict__", {})
    if type(handlers) in _COMPLETE.get(machine, ()) and own.keys().isdisjoint(method_names(machine).values()):
        return
    mistakes = list(_mapping_mistakes(machine, handlers) if isinstance(handlers, Mapping) else _object_mistakes(machine, handlers))
    if mistakes:
        raise HandlersError(f"{machine.name}: " + "; ".join(mistakes))
    if not isinstance(handlers, Mapping) and own.keys().isdisjoint(method_names(machine).values()):
        _COMPLETE.setdefault(machine, WeakSet()).add(type(handlers))


_COMPLETE: WeakKeyDictionary[Machine[Any, Any, Any], WeakSet[type]] = WeakKeyDictionary()
"""Machine -> classes whose methods were found complete: whoever makes replies by the thousand is asked once."""


def _object_mistakes(machine: Machine[Any, Any, Any], handlers: object) -> Iterator[str]:
    owner = type(handlers).__name__
    for effect, name in method_names(machine).items():
        found = getattr(handlers, name, None)
        if found is None:
            near = difflib.get_close_matches(name, [n for n in dir(handlers) if not n.startswith("_")], n=1)
            hint = f" (it has {near[0]})" if near else ""
            yield f"no handler for {effect.__name__}: {owner} needs the method {name}(self, effect: {effect.__name__}){hint}"
        elif not callable(found):
            yield f"the handler for {effect.__name__}, {owner}.{name}, is {found!r} and cannot be called"


def _mapping_mistakes(machine: Machine[Any, Any, Any], handlers: Mapping[object, object]) -> Iterator[str]:
    wanted = method_names(machine)
    for effect in wanted:
        if effect not in handlers:
            yield f"no handler for {effect.__name__}: add it to the mapping"
        elif not callable(handlers[effect]):
            yield f"the handler for {effect.__name__} is {handlers[effect]!r} and cannot be called"
    for key in handlers:
        if key in TIMER_EFFECTS:
            yield f"{getattr(key, '__name__', key)} is performed by the runner itself: take it out of the mapping"
        elif key not in wanted:
            names = [effect.__name__ for effect in wanted]
            near = difflib.get_close_matches(str(getattr(key, "__name__", key)), names, n=1)
            yield f"{getattr(key, '__name__', key)} is no effect of it" + (f"; did you mean {near[0]}?" if near else "")
