"""The recipient's page: open a release, describe it, ask questions, save charts and tables."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from noren_studio.pages.recipient_answer import answered
from noren_studio.pages.recipient_ask import asking
from noren_studio.pages.release_place import another, opened, signature_words, status
from noren_studio.parts import card, div, follow, lines, table, text, title
from noren_studio.session import Session
from noren_studio.texts import recipient as words


def build(session: Session) -> None:
    """Build the page; `session.kept["release"]` is a release from the command line."""
    found = opened(session)
    if found is None:
        return
    _what_it_is(session, found)
    with div("n-beside"):
        asking(session, found)
        with div("n-col"):
            follow("answer", answered, session, found)
    another(session)


def _what_it_is(session: Session, found: dict[str, Any]) -> None:
    """Show the summary of ten lines, and the columns."""
    with card() as box:
        box.props("data-release")
        with div("n-row"):
            title(found["name"])
            with div("n-grow"):
                status(session, found)
        with ui.element("dl").classes("n-facts"):
            for name, value in words.facts(found["facts"], found["name"]):
                text(name, tag="dt")
                text(value, tag="dd")
        signature_words(found)
        with ui.expansion(words.COLUMNS).props("dense dense-toggle").classes("n-full"):
            _columns(found)


def _columns(found: dict[str, Any]) -> None:
    rows = [
        (
            one["name"],
            one["published"],
            "-" if one["distinct"] is None else f"{one['distinct']:,}",
            lines(*((words.at_level(one["name"], *map(level.get, ("level", "count", "some"))), "n-small")
                    for level in one["levels"])),
        )
        for one in found["columns"]
    ]  # fmt: skip
    with div("n-scroll"):
        table(words.COLUMN_HEADS, rows)
