"""The auditor's page: verify a release, attack it, or measure a table by another tool."""

from __future__ import annotations

from functools import partial
from typing import Any

from nicegui import ui

from noren_studio import texts
from noren_studio.pages.auditor_attacks import attacking
from noren_studio.pages.auditor_besides import besides, verifying
from noren_studio.pages.auditor_table import foreign
from noren_studio.pages.release_place import another, opened, status
from noren_studio.parts import card, div, line, title
from noren_studio.questions import AUDIT, ask, asked
from noren_studio.session import Session
from noren_studio.texts import auditor as words


def build(session: Session) -> None:
    """Build the page; `session.kept["release"]` is a release from the command line."""
    what = asked(session, AUDIT).get("what", "release")
    with div("n-row"):
        toggle = ui.toggle(words.WHAT, value=what, on_change=partial(_what, session)).classes("n-kind")
        toggle.props("no-caps unelevated dense toggle-text-color=dark")
        line(words.WHAT_WHY[what], "n-soft n-grow")
    if what == "table":
        foreign(session)
        return
    found = opened(session)
    if found is None:
        return
    with card(tight=True), div("n-row"):
        title(found["name"])
        with div("n-grow"):
            status(session, found)
    besides(session, found)
    verifying(session, found)
    attacking(session, found)
    another(session)


def _what(session: Session, event: Any) -> None:
    ask(session, texts.set_to(words.WHAT[event.value], ""), AUDIT, lambda a: a.update(what=event.value))
