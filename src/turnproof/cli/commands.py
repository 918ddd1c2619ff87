"""Every command, put together."""

from __future__ import annotations

import click

from turnproof.cli.app import EPILOG, PROGRAM, SETTINGS, Root, __version__
from turnproof.cli.look import coverage, explain, list_machines
from turnproof.cli.mutants import mutants
from turnproof.cli.oracle import oracle
from turnproof.cli.play import step
from turnproof.cli.records import recheck, replay
from turnproof.cli.verify import verify
from turnproof.cli.walks import estimate
from turnproof.cli.write import draw, golden


@click.group(cls=Root, context_settings=SETTINGS, epilog=EPILOG, no_args_is_help=True)
@click.version_option(__version__, "-V", "--version", prog_name=PROGRAM, message="%(prog)s %(version)s")
def root() -> None:
    """The lifecycles of an agent runtime as finite state machines: explored, proved, fuzzed, drawn, and checked against logs."""


for command in (verify, estimate, draw, explain, step, replay, recheck, oracle, list_machines, coverage, mutants, golden):
    root.add_command(command)

__all__ = ["root"]
