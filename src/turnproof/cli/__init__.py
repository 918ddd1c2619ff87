"""The command line."""

HELP = "usage: turnproof COMMAND\n\nNo command is built yet."


def main() -> int:
    """Print the help text; the exit status is 2, for no command ran."""
    print(HELP)
    return 2
