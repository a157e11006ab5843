"""The command studio, an entry point of the group `noren.commands`."""

from __future__ import annotations

import click

from noren.cli import echo_json, say


@click.command(epilog="Example: noren studio patients.csv")
@click.argument("place", type=click.Path(), required=False, metavar="[FILE|RELEASE|URI]")
@click.option("--port", type=click.IntRange(1, 65535), help="The port to listen on; default: one that is free.")
@click.option("--no-browser", is_flag=True, help="Only print the address; each is good for one browser, once.")
@click.option("--json", "as_json", is_flag=True, help="Print every address as JSON.")
def studio(place: str | None, port: int | None, no_browser: bool, as_json: bool) -> None:
    """Open Noren Studio, a page for this machine only: for the holder, the recipient and the auditor.

    FILE is a table to open, RELEASE a release directory, URI an address of PostgreSQL. Enter prints another one-time
    address, Ctrl-C ends the studio and removes what it kept.
    """
    from noren_studio.server import serve
    from noren_studio.texts import at_address

    def announce(address: str) -> None:
        if as_json:
            echo_json({"address": address})
        else:
            say(at_address(address))

    serve(place or "", port, not no_browser, announce)
