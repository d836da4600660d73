"""The command line.

- ``app``: all commands; those that measure are in ``sweeps``, those that read rows in ``rows``
- ``commands``: how a command is made of the function that it calls; ``signatures``, ``values``
"""

from typing import NoReturn


def main() -> NoReturn:
    """Run the command line; bad input ends in one message and exit code 2."""
    from dlas.face.cli.app import run_command

    run_command()
