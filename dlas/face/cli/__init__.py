"""The command line.

- ``app``: the commands that read rows; ``sweeps``: those that run studies; ``parts``, ``tuning``
"""

from typing import NoReturn


def main() -> NoReturn:
    """Run the command line; bad input ends in one message and exit code 2."""
    from dlas.face.cli.app import run_command

    run_command()
