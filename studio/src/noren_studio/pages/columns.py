"""Step 2, the columns: roles by menu or keyboard, and generalisation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from nicegui import events, ui

from noren.schema import CALENDAR, NUMERIC
from noren_studio import texts
from noren_studio.edits import QUASI, set_option, set_role
from noren_studio.pages.column_table import ColumnTable
from noren_studio.pages.hierarchy import hierarchy_card
from noren_studio.parts import card, div, edit, line, problems
from noren_studio.rebuild import Part
from noren_studio.session import Session
from noren_studio.work.opening import roles

STAY = "(e) => { if (e.key === 'ArrowUp' || e.key === 'ArrowDown') e.event.preventDefault(); }"
"""Arrows walk through the columns and do not scroll the page."""
KEYS = {str(number): role for number, role in enumerate(texts.ROLES, 1)}


def build(session: Session) -> None:
    def pick(name: str) -> None:
        if name != selected(session):
            session.kept["column"] = name
            listed.show(name)
            detail.refresh()

    problems(session.rules.about("attributes", "people", "together"))
    selected(session)
    with div("n-split"):
        with ui.element("section").classes("n-card tight"):
            line(texts.KEYS, "n-soft n-small")
            listed = ColumnTable(session, wide=False, pick=pick)
        with div("n-col"):
            detail = Part(_detail, session)
    keys = ui.keyboard(partial(_key, session, listed, pick), ignore=["input", "textarea", "select"])
    keys.on("key", js_handler=STAY)


def _detail(session: Session) -> None:
    name = selected(session)
    role = roles(session.draft.policy)[name]
    _role(session, name, role)
    if role in QUASI or role == "sensitive":
        hierarchy_card(session, name)


def selected(session: Session) -> str:
    """Return the selected column; by default the first one that needs attention."""
    now = roles(session.draft.policy)
    if session.kept.get("column") not in now:
        names = list(now)
        session.kept["column"] = next((name for name in names if now[name] not in ("identifier", "drop")), names[0])
    name: str = session.kept["column"]
    return name


def _key(session: Session, listed: ColumnTable, pick: Callable[[str], None], event: events.KeyEventArguments) -> None:
    """Handle keys: arrows select a column, a digit sets the role with that number."""
    if not event.action.keydown or event.modifiers.ctrl or event.modifiers.meta or event.modifiers.alt:
        return
    names, name, key = listed.names, selected(session), str(event.key.name)
    if key in KEYS:
        _become(session, name, KEYS[key])
    elif key in ("ArrowDown", "ArrowUp") and names:
        at = names.index(name) if name in names else -1
        pick(names[min(len(names) - 1, at + 1) if key == "ArrowDown" else max(0, at - 1)])


def _become(session: Session, name: str, role: str) -> None:
    session.accepted.add(name)
    edit(session, texts.set_to(name, texts.ROLES[role][0].lower()), partial(set_role, name=name, role=role))


def _role(session: Session, name: str, role: str) -> None:
    with card(name, why_role(session, name, role)):
        options = {
            one: f"{number}  {short}: {says}" for number, (one, (short, says)) in enumerate(texts.ROLES.items(), 1)
        }
        ui.radio(options, value=role, on_change=lambda e: _become(session, name, e.value)).props("dense")
        if role not in ("identifier", "drop", "plain"):
            _writing(session, name)


def _writing(session: Session, name: str) -> None:
    """Show how missing and rare values are treated, and how cells are written."""
    declared = session.draft.policy["attributes"][name]
    given = declared if isinstance(declared, dict) else {}
    kind = given.get("kind") or (column_of(session, name) or {}).get("kind")
    beside = {"decimal": NUMERIC, "format": CALENDAR}
    with div("n-row"):
        for option, listed in texts.COLUMN_OPTIONS.items():
            if kind not in beside.get(option, (kind,)):
                continue
            default = next(iter(listed))
            choices = listed if given.get(option, default) in listed else {**listed, given[option]: given[option]}

            def change(event: events.ValueChangeEventArguments, option: str = option, default: str = default) -> None:
                value = None if event.value == default else event.value
                words = texts.set_to(name, f"{option} {event.value}")
                edit(session, words, partial(set_option, name=name, option=option, value=value))

            select = ui.select(choices, value=given.get(option, default), label=texts.OPTION_NAMES[option])
            select.on_value_change(change).props("dense outlined options-dense").style("min-width: 220px")


def column_of(session: Session, name: str) -> dict[str, Any] | None:
    """Return what the table shows of a column."""
    return next((one for one in (session.table or {}).get("columns", []) if one["name"] == name), None)


def why_role(session: Session, name: str, role: str) -> str:
    """Explain the role with figures of this table."""
    column = column_of(session, name)
    if column is None or session.table is None:
        return texts.ROLES[role][1]
    rows, risk = session.table["rows"], session.result("risk")
    if role in QUASI and risk:
        told = next((one for one in risk["columns"] if one[0] == name), None)
        if told is not None:
            return texts.why_quasi(risk["uniques"], told[4], told[2])
    if role in ("sensitive", "sensitive-quasi-identifier") and column["values"]:
        value, count = column["values"][0]
        return texts.why_sensitive(column["distinct"], value, count / max(1, rows))
    if role == "plain":
        return texts.why_plain(column["distinct"], sum(count < 5 for _, count in column["values"]))
    return texts.why_identifier(column["distinct"], rows)
