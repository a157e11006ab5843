"""Command of whoever installs: warm."""

from __future__ import annotations

import time

import click

from noren.cli.render import echo_json, say, stages


@click.command(epilog="Example: noren warm mondrian decoys")
@click.argument("methods", nargs=-1)
@click.option("--workers", type=click.IntRange(1), help="Processes side by side; default: one per core.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
def warm(methods: tuple[str, ...], workers: int | None, as_json: bool) -> None:
    """Compile the kernels of METHODS, or all, before they are needed: in a container build, or after an update."""
    from noren.kernels.compiled import folder
    from noren.workflow.warm import warm as run

    begin = time.monotonic()
    count = run(methods, workers=workers, stage=stages(as_json))
    seconds, place = time.monotonic() - begin, folder()
    if as_json:
        echo_json({"kernels": count, "seconds": seconds, "folder": None if place is None else str(place)})
        return
    if place is None:
        say("Compiled kernels cannot be kept here. Set NOREN_CACHE_DIR to a directory of yours.")
    else:
        say(f"{count} kernels compiled in {seconds:.0f} s, kept in {place}")
