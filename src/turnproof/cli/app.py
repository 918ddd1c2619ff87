"""The command group, and the one place where every way of ending a command becomes a line and an exit status."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NoReturn, TypeVar

import click

from turnproof import __version__
from turnproof.checkers.jobs import describe
from turnproof.cli.misuse import Misuse, broken_table
from turnproof.cli.output import silence
from turnproof.machines.kernel import TableError

T = TypeVar("T")

PROGRAM = "turnproof"
DEBUG = "TURNPROOF_DEBUG"
"""Environment variable: show the traceback of an internal error."""

EPILOG = """\b
Exit status: 0 holds, 1 violated, 2 misuse, or a process of the run died, 3 undetermined, 70 internal error,
130 interrupted, 143 terminated. `verify` that is interrupted or terminated reports what it covered: 3, or 1.
NO_COLOR turns colours off; TURNPROOF_DEBUG=1 shows the traceback of an internal error."""


class Terminated(KeyboardInterrupt):
    """SIGTERM, as the exception that Ctrl-C raises: engines end the processes they started, and what was covered is kept."""


class Root(click.Group):
    """The group of commands; also what a test runner calls."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order they were added: what one needs first comes first."""
        return list(self.commands)

    def main(self, args: Sequence[str] | None = None, *unused: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """As click's, but every ending goes through :func:`run`."""
        status = run(sys.argv[1:] if args is None else list(args))
        if standalone_mode:
            sys.exit(status)
        return status


def run(arguments: Sequence[str]) -> int:
    """Run one command. Returns the exit status; prints at most one message about what went wrong."""
    _prepare_streams()
    try:
        with _terminable(), warnings.catch_warnings():
            if not sys.warnoptions:
                warnings.simplefilter("ignore")  # those of the libraries below; what a user must know is a verdict or a message
            status = _invoke(arguments)
        _flush()
    except BrokenPipeError:
        return _unread()
    except Terminated:
        return _complain("terminated", 143)
    except KeyboardInterrupt:
        return _complain("interrupted", 130)
    except Exception as problem:
        return _ended(problem)
    return status


def _invoke(arguments: Sequence[str]) -> int:
    root = _root()
    instruction = os.environ.get("_TURNPROOF_COMPLETE")
    if instruction:
        from click.shell_completion import shell_complete

        return shell_complete(root, {}, PROGRAM, "_TURNPROOF_COMPLETE", instruction)
    try:
        with root.make_context(PROGRAM, list(arguments)) as context:
            status = root.invoke(context)
    except click.exceptions.Exit as end:
        return int(end.exit_code)
    return int(status or 0)


def _root() -> click.Group:
    from turnproof.cli import commands

    return commands.root


def _ended(problem: Exception) -> int:
    if isinstance(problem, OSError) and problem.errno == errno.EPIPE:
        return _unread()
    if isinstance(problem, Misuse):
        return _complain(str(problem), 2)
    if isinstance(problem, TableError):
        return _complain(broken_table(problem), 2)
    if isinstance(problem, click.exceptions.NoArgsIsHelpError):
        click.echo(problem.format_message(), err=True)
        return 2
    if isinstance(problem, click.Abort):
        return _complain("interrupted", 130)
    if isinstance(problem, click.ClickException):
        return _complain(_usage(problem), 2)
    if isinstance(problem, ModuleNotFoundError) and problem.name and not problem.name.startswith("turnproof"):
        return _complain(describe(problem), 2)
    if isinstance(problem, BrokenProcessPool):
        return _complain("lost: a worker process was killed (out of memory?); nothing is concluded", 2)
    if os.environ.get(DEBUG):
        raise problem
    if isinstance(problem, OSError) and problem.errno == errno.ENOSPC:
        return _complain("cannot write: no space left on the device", 2)
    return _complain(f"{describe(problem)}; {DEBUG}=1 shows the traceback", 70)


def _usage(problem: click.ClickException) -> str:
    """One line: what is wrong, and which help tells more."""
    text = " ".join(problem.format_message().split()).rstrip(".").replace("(Did", "Did").replace("?)", "?")
    context = getattr(problem, "ctx", None)
    path = context.command_path if context is not None else PROGRAM
    return f"{text}{'' if text.endswith('?') else ';'} `{path} --help` shows how it is used"


def _complain(message: str, status: int) -> int:
    # A reader who is gone cannot be told; the status still stands.
    with contextlib.suppress(OSError):
        click.echo(f"{PROGRAM}: {message}", err=True)
    return status


def _prepare_streams() -> None:
    """A letter that the terminal's encoding lacks is replaced: a report must not die of an arrow."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            with contextlib.suppress(OSError, ValueError):
                reconfigure(errors="replace")


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    def end(*_: object) -> NoReturn:
        raise Terminated

    try:
        before = signal.signal(signal.SIGTERM, end)
    except ValueError:  # not the main thread: whoever embeds us keeps the signal
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _unread() -> int:
    """Standard output was closed under a command that does not mind: end without a word, as a process ended by SIGPIPE does."""
    silence()
    return 141


def example(*lines: str, before: str = "") -> Callable[[T], T]:
    """Give a command examples, shown at the end of its help, after the paragraph ``before``."""

    def give(command: T) -> T:
        text = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
        command.epilog = f"{before}\n\n{text}" if before else text  # type: ignore[attr-defined]
        return command

    return give


SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 110}

__all__ = ["EPILOG", "PROGRAM", "SETTINGS", "Root", "__version__", "example", "run"]
