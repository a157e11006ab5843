"""The recipient's page: open a release, see what it is, ask, take charts and tables along."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from noren_studio.pages.recipient_answer import answered
from noren_studio.pages.recipient_ask import asking
from noren_studio.pages.release_place import another, opened, signature_words, status
from noren_studio.parts import card, div, line, text, title
from noren_studio.session import Session
from noren_studio.texts import recipient as words


def build(session: Session) -> None:
    """Builds the page; `session.kept["release"]` is the release that was named on the command line, if one was."""
    found = opened(session)
    if found is None:
        return
    _what_it_is(session, found)
    with div("n-beside"):
        asking(session, found)
        with div("n-col"):
            answered(session, found)
    another(session)


def _what_it_is(session: Session, found: dict[str, Any]) -> None:
    """Ten lines, and below them the columns."""
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
    with div("n-scroll"), ui.element("table").classes("n-table"):
        with ui.element("thead"), ui.element("tr"):
            for head, classes in words.COLUMN_HEADS:
                text(head, classes, tag="th").props("scope=col")
        with ui.element("tbody"):
            for one in found["columns"]:
                with ui.element("tr"):
                    text(one["name"], "n-key", tag="td")
                    text(one["published"], "n-soft", tag="td")
                    text("-" if one["distinct"] is None else f"{one['distinct']:,}", "n", tag="td")
                    with ui.element("td"):
                        for level in one["levels"]:
                            line(words.at_level(one["name"], level["level"], level["count"], level["some"]), "n-small")
