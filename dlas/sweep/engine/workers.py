"""The processes in which a session's steps run: spawned, forked, or this one."""

from __future__ import annotations

from typing import Literal

from dlas.bench.processes.interface import Runner

Steps = Literal["spawned", "forked", "inline"]
"""Where the steps run: in children of a new interpreter, in children of this process, or in this process."""


class Workers:
    """What runs steps: opened when there is work, and shared by all that a session does.

    A process that has run kernels must not fork: its children would lack the threads of its libraries, and
    hang.  So a fork is made when the session is opened, before anything is predicted, exported or evaluated
    here; where one is needed later, because the first was interrupted, it is a new interpreter.

    Parameters
    ----------
    steps : {"spawned", "forked", "inline"}
    """

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self._runner: Runner | None = None

    @property
    def inline(self) -> bool:
        """Whether steps run in this process: one at a time, and without limits."""
        return self.steps == "inline"

    @property
    def started(self) -> bool:
        """Whether anything can run steps already."""
        return self._runner is not None

    def start(self) -> None:
        """Fork, if that is to be done at all."""
        if self.steps == "forked" and not self.started:
            self._runner = self._made(spawned=False)

    def runner(self) -> Runner:
        """Return what runs steps."""
        if self._runner is None:
            self._runner = self._made(spawned=True)
        return self._runner

    def close(self) -> None:
        """End all steps."""
        if self._runner is not None:
            self._runner.close()
        self._runner = None

    def _made(self, spawned: bool) -> Runner:
        if self.inline:
            from dlas.bench.processes.inline import Inline

            return Inline()
        from dlas.bench.processes.server import WorkerServer

        return WorkerServer(spawned=spawned)
