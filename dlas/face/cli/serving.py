"""The commands that serve or examine a machine: ``dlas serve``, ``dlas watch`` and ``dlas doctor``."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from dlas.bench.clocks.records import recover
from dlas.bench.remote.address import PORT
from dlas.bench.remote.server import LONGEST_S, BoardServer
from dlas.bench.remote.tokens import default_path, read_or_make
from dlas.errors import InputError
from dlas.face.console import terminal

if TYPE_CHECKING:
    from dlas.bench.measuring.doctor import SystemCheck


def serve(
    key: Annotated[str, typer.Option(help="The board's name, which profiles give as their key.")],
    host: Annotated[
        str, typer.Option(help="Where to listen; by default for this machine only.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = PORT,
    token_file: Annotated[
        Path | None, typer.Option(help="The token's file (default: ~/.config/dlas/tokens/KEY).")
    ] = None,
    longest: Annotated[float, typer.Option(min=1.0, help="Seconds that one session may last.")] = LONGEST_S,
    allow_clocks: Annotated[
        bool, typer.Option("--allow-clocks", help="Let studies set this board's clocks; they are restored.")
    ] = False,
    sysfs_root: Annotated[Path, typer.Option(help="The folder that holds sys, for its clocks.")] = Path("/"),
) -> None:
    """Run programs on this board for studies that run elsewhere, until it is interrupted."""
    path = default_path(key)
    path = token_file.expanduser() if token_file else path
    for line in recover():
        terminal.warn(line)
    clocks_root = sysfs_root if allow_clocks else None
    server = BoardServer(key, read_or_make(path), host, port, terminal.say, longest, clocks_root)
    import tvm.rpc  # noqa: F401  # once for all sessions, which are forked

    if not _loopback(host):
        terminal.warn(
            f"{host} is reached over the network, where the token can be read: prefer an SSH tunnel"
        )
    terminal.say(f"token: {path}")
    terminal.say(f"{key} serves at {host}:{server.port}; Ctrl-C ends it")
    try:
        server.serve()
    except KeyboardInterrupt:
        terminal.say("ended")


def doctor(
    device: Annotated[
        str | None,
        typer.Option(help="The profile of a board or an engine: check what reaching it takes, from here."),
    ] = None,
    ray: Annotated[
        str | None, typer.Option(help="The address of a Ray cluster, or auto: check its machines.")
    ] = None,
) -> None:
    """Check toolchain, threads, clocks, load and disk, a board, or a cluster, and say what to do."""
    from dlas.sweep.engine.diagnosis import examine

    if device is not None and ray is not None:
        raise InputError(f"device = {device!r} asks for a board and ray = {ray!r} for a cluster: give one")
    colours = {"ok": "green", "warn": "yellow", "fail": "red"}
    table = Table("", "check", "found", "what to do", box=None, pad_edge=False)
    with terminal.working("examining " + (device or ray or "the toolchain, and what else runs here")):
        results = examine(device) if ray is None else _examine_cluster(ray)
    for check in results:
        colour = colours[check.status]
        table.add_row(
            f"[{colour}]{check.status}[/{colour}]", check.name, escape(check.finding), escape(check.advice)
        )
    terminal.show(table)
    if any(check.status == "fail" for check in results):
        raise typer.Exit(1)


def _examine_cluster(address: str) -> list[SystemCheck]:
    from dlas.sweep.cluster.diagnosis import examine

    return examine(address)


def watch(
    rows: Annotated[list[Path], typer.Argument(help="Folders that `dlas run` writes, or will write.")],
    where: Annotated[
        list[str] | None, typer.Option(help="Show the rows that match: model=cifar_*, compression.level=0.8.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 0,
) -> None:
    """Show the report of a running sweep in a browser on this machine, renewed as rows arrive."""
    from dlas.face.reporting.live import LivePage, LiveServer

    if missing := [folder for folder in rows if not folder.is_dir()]:
        raise InputError(f"{str(missing[0])!r} is no folder: `dlas run STUDY --out FOLDER` makes it")
    server = LiveServer(LivePage(rows, where or ()), port)
    terminal.say(f"{server.link}; Ctrl-C ends it")
    try:
        server.run()
    except KeyboardInterrupt:
        terminal.say("ended")


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
