"""The command studio. It stands here and not with the other commands, because the studio knows the command line."""

from __future__ import annotations

import importlib.util

import click

from noren.cli.options import PLACE
from noren.cli.render import echo_json, say
from noren.errors import NorenError

INSTALL = "pip install 'noren[studio]'"


@click.command(epilog="Example: noren studio patients.csv")
@click.argument("place", type=PLACE, required=False, metavar="[FILE|RELEASE|URI]")
@click.option("--port", type=click.IntRange(1, 65535), help="The port to listen on; default: one that is free.")
@click.option("--no-browser", is_flag=True, help="Only print the address; each is good for one browser, once.")
@click.option("--json", "as_json", is_flag=True, help="Print every address as JSON.")
def studio(place: str | None, port: int | None, no_browser: bool, as_json: bool) -> None:
    """Open Noren Studio, a page of this machine alone: for the holder, the recipient and the auditor.

    FILE is a table to open, RELEASE a release directory, URI an address of PostgreSQL. Enter prints another one-time
    address, Ctrl-C ends the studio and removes what it kept.
    """
    if importlib.util.find_spec("nicegui") is None:
        raise NorenError("the studio needs NiceGUI, which is not installed.", hint=INSTALL)
    from noren.studio.server import serve
    from noren.studio.texts import at_address

    def announce(address: str) -> None:
        if as_json:
            echo_json({"address": address})
        else:
            say(at_address(address))

    serve(place or "", port, not no_browser, announce)
