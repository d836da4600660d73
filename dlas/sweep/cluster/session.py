"""A session whose points are measured on the machines of a cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from dlas.errors import InputError, Unfinished
from dlas.stack.hardware import machine_name
from dlas.sweep.cluster.actors import RemotePost, make_helper
from dlas.sweep.cluster.connection import joined
from dlas.sweep.cluster.nodes import ClusterNode, check_alike, check_offered, nodes
from dlas.sweep.cluster.spread import Gone
from dlas.sweep.cluster.sweep import ClusterSweep
from dlas.sweep.engine.planned import Examples
from dlas.sweep.engine.progress import Progress
from dlas.sweep.engine.session import RunsPoints, Session
from dlas.sweep.engine.sweep import SweepOptions
from dlas.sweep.engine.writers import RowWriter
from dlas.sweep.rows.machines import differences, machine_id
from dlas.sweep.study.point import Point
from dlas.sweep.study.study import Study

PATIENCE_S = 600.0
"""How long a machine that is lost may take to come back."""
STARTED_S = 10.0
"""How long a station is waited for before that is said."""
MEASURING = ("measure", "tune")
"""Last steps that need a device; what ends before is done on this machine."""


@dataclass(frozen=True)
class ClusterSession(Session):
    """A session on the machines of a cluster.

    Networks and programs are made where there is room, and points are measured on the machines that offer
    their hardware; rows are written here.
    """

    address: str = ""
    """``host:port`` of a Ray cluster, ``auto`` or ``local``."""
    shared_cache: str | None = None
    """The cache of all machines, a path that each of them has; None where each has its own."""
    patience_s: float = PATIENCE_S
    """How long a machine that is lost may take to come back."""
    _joined: ExitStack = field(default_factory=ExitStack)
    _posts: dict[str, RemotePost] = field(default_factory=dict)
    _helpers: dict[str, Any] = field(default_factory=dict)
    _alike: set[str] = field(default_factory=set)
    _others: set[str] = field(default_factory=set)
    """Ids of machines whose code is that of this one, and whose code is not."""

    def __exit__(self, *details: object) -> None:
        self._posts.clear()
        self._helpers.clear()
        self._joined.close()
        super().__exit__(*details)

    def check_parts(self, study: Study) -> None:
        """Refuse a study that the machines which offer its hardware cannot run.

        Raises
        ------
        InputError
        """
        for name, refusal in self._answers(study, "refusal"):
            if refusal:
                raise InputError(f"{name}: {refusal}")

    def devices(self, study: Study) -> list[tuple[str, Mapping[str, Any]]]:
        """Return the devices that a study can use, each with the name of its hardware.

        Raises
        ------
        InputError
            If machines that offer the same hardware are not alike: a study's rows would be of both.
        """
        first: dict[str, tuple[str, Mapping[str, Any]]] = {}
        found = []
        for name, hardware, described in self._described(study):
            other, before = first.setdefault(hardware, (name, described))
            if machine_id(before) != machine_id(described):
                apart = ", ".join(differences(before, described))
                raise InputError(
                    f"{hardware} is offered by {other}, {machine_name(before)}, and by {name}, "
                    f"{machine_name(described)}, which differ in {apart}: let one of them offer it"
                )
            found.append((hardware, described))
        return found

    def plan(self, study: Study, points: Sequence[Point] | None = None, *, kernels: bool = False) -> Examples:
        """Return what is known of points without building or measuring them; it is found out here.

        Raises
        ------
        InputError
            Also if the machine that measures is another than this one, whose kernels are others.
        """
        here = dict(super().devices(study))
        for hardware, there in self.devices(study):
            if machine_id(here.get(hardware, {})) != machine_id(there):
                own = machine_name(here[hardware]) if hardware in here else "no such hardware"
                raise InputError(
                    f"{hardware} is {machine_name(there)} in the cluster and {own} here, where points are "
                    "planned: give this command on a machine like that one"
                )
        return super().plan(study, points, kernels=kernels)

    def _described(self, study: Study) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """Yield machines with a name of hardware that they offer, and what that is there."""
        for name, described in self._answers(study, "devices"):
            for hardware, device in described:
                if hardware in self._posts[name].hardware:
                    yield name, hardware, device

    def _answers(self, study: Study, method: str) -> Iterator[tuple[str, Any]]:
        """Yield what a method of each station says to a study.

        Raises
        ------
        Unfinished
            If its machine is lost meanwhile.
        """
        self._open(study)
        for post in self._posts.values():
            try:
                yield post.name, post.call(method, study.toml())
            except Gone as error:
                raise Unfinished(f"{post.name} is lost: {error}") from None

    def _open(self, study: Study) -> None:
        """Join the cluster, check its machines, and have a station on each that offers what a study needs."""
        if self._posts:
            return
        hardware = _hardware(study)
        self._joined.enter_context(joined(self.address, hardware))
        self.display.status("asking the machines of the cluster")
        try:
            found = nodes()
            check_offered(hardware, found)
            check_alike(found)
            self._alike.update(node.id for node in found)
            self._station(hardware, found)
            for post in self._posts.values():
                while not post.started(STARTED_S):
                    self.display.status(f"waiting for {post.name}, where another study is measured")
        finally:
            self.display.status("")

    def _station(self, hardware: Collection[str], found: Sequence[ClusterNode]) -> None:
        """Have a station on each machine that offers hardware, and helpers on those that offer none."""
        stationed = [node for node in found if set(node.hardware) & set(hardware)]
        for node in found:
            # A machine that offers other hardware may be measuring for somebody else.
            if not node.hardware and node.cores and node.name not in self._helpers:
                self._helpers[node.name] = make_helper(node, self.shared_cache)
        others = [
            (self._helpers[node.name], node.name, max(1, node.cores // max(1, len(stationed))))
            for node in found
            if node.name in self._helpers
        ]
        for node in stationed:
            if node.name not in self._posts:
                offered = [name for name in node.hardware if name in hardware]
                post = RemotePost(node, offered, self.shared_cache, self.cache_bytes, others)
                self._posts[node.name] = post

    def _alike_now(self) -> list[ClusterNode]:
        """Return the machines that are there; one that has come with other code is told of and left out."""
        found = nodes()
        for node in found:
            if node.id not in self._alike and node.id not in self._others:
                try:
                    check_alike([node])
                    self._alike.add(node.id)
                except InputError as error:
                    self.display.warn(str(error))
                    self._others.add(node.id)
        return [node for node in found if node.id in self._alike]

    def make_sweep(
        self, study: Study, writer: RowWriter, progress: Progress, options: SweepOptions
    ) -> RunsPoints:
        """Return what runs the points of a study on the machines that offer its hardware."""
        if options.until not in MEASURING:
            return super().make_sweep(study, writer, progress, options)
        self._open(study)
        begun: set[str] = set()

        def find(known: Collection[str]) -> list[RemotePost]:
            for name in begun - set(known):
                self._posts.pop(name, None)  # it was lost
            self._station(_hardware(study), self._alike_now())
            new = [post for name, post in self._posts.items() if name not in known and post.started(0)]
            for post in new:
                begun.add(post.name)
                post.begin(study.toml(), options)
            return new

        return ClusterSweep(study, writer, self.cache(), find, progress, self.patience_s)


def _hardware(study: Study) -> list[str]:
    """Return the names of the hardware that a study measures on."""
    return sorted({choice.name for choice in study.values("hardware")})
