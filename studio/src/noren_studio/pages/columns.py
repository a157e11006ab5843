"""Step 2, the columns: what each is, by menu or by keyboard, and how general values are made of it."""

from __future__ import annotations

from functools import partial
from typing import Any

from nicegui import events, ui

from noren.schema import CALENDAR, NUMERIC
from noren_studio import texts
from noren_studio.edits import QUASI, set_option, set_role
from noren_studio.pages.hierarchy import hierarchy_card
from noren_studio.parts import card, div, edit, line, problems, refresh, tag
from noren_studio.rebuild import keyed
from noren_studio.session import Session
from noren_studio.work.opening import roles

STAY = "(e) => { if (e.key === 'ArrowUp' || e.key === 'ArrowDown') e.event.preventDefault(); }"
"""Arrows walk through the columns and do not scroll the page."""
KEYS = {str(number): role for number, role in enumerate(texts.ROLES, 1)}
TONES: dict[str, texts.Tone] = {"identifier": "", "drop": "", "plain": "", "quasi-identifier": "accent",
         "sensitive": "warn", "sensitive-quasi-identifier": "warn", "quasi-sensitive": "warn"}  # fmt: skip


def build(session: Session) -> None:
    found = roles(session.draft.policy)
    name = selected(session, list(found))
    problems(session.rules.about("attributes", "people", "together"))
    with div("n-row top").style("flex-wrap: nowrap; align-items: flex-start"):
        _list(session, found, name)
        with div("n-col n-grow"):
            _role(session, name, found[name])
            if found[name] in QUASI or found[name] == "sensitive":
                hierarchy_card(session, name)
    keys = ui.keyboard(partial(_key, session, list(found)), ignore=["input", "textarea", "select"])
    keys.on("key", js_handler=STAY)


def selected(session: Session, names: list[str]) -> str:
    """The column that is looked at; the first one of which something depends, before any was picked."""
    now = roles(session.draft.policy)
    first = next((name for name in names if now[name] not in ("identifier", "drop")), names[0])
    found = session.kept.get("column")
    return found if found in names else first


def _pick(session: Session, name: str) -> None:
    if name != selected(session, list(roles(session.draft.policy))):
        session.kept["column"] = name
        refresh()


def _key(session: Session, names: list[str], event: events.KeyEventArguments) -> None:
    """Arrows walk through the columns, a digit gives the role of that number."""
    if not event.action.keydown or event.modifiers.ctrl or event.modifiers.meta or event.modifiers.alt:
        return
    at, key = names.index(selected(session, names)), str(event.key.name)
    if key == "ArrowDown":
        _pick(session, names[min(len(names) - 1, at + 1)])
    elif key == "ArrowUp":
        _pick(session, names[max(0, at - 1)])
    elif key in KEYS:
        _become(session, names[at], KEYS[key])


def _become(session: Session, name: str, role: str) -> None:
    edit(session, texts.role_of(name, texts.ROLES[role][0]), partial(set_role, name=name, role=role))


def _list(session: Session, found: dict[str, str], name: str) -> None:
    with ui.element("section").classes("n-card tight").style("flex: 0 0 268px; max-height: 74vh; overflow-y: auto"):
        line(texts.KEYS, "n-soft n-small")
        for one, role in found.items():
            row = ui.element("div").classes("n-step" + (" on" if one == name else "")).props("role=button tabindex=0")
            keyed(row, one)
            row.on("click", partial(_pick, session, one)).on("keydown.enter", partial(_pick, session, one))
            with row:
                line(one, "n-grow n-cut")
                tag(texts.ROLES[role][0], TONES[role])


def _role(session: Session, name: str, role: str) -> None:
    with card(name, why_role(session, name, role)):
        options = {
            one: f"{number}  {short}: {says}" for number, (one, (short, says)) in enumerate(texts.ROLES.items(), 1)
        }
        ui.radio(options, value=role, on_change=lambda e: _become(session, name, e.value)).props("dense")
        if role not in ("identifier", "drop", "plain"):
            _writing(session, name)


def _writing(session: Session, name: str) -> None:
    """How missing and rare values are treated, and how cells are written where that was understood wrongly."""
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
                words = texts.option_of(name, option, event.value)
                edit(session, words, partial(set_option, name=name, option=option, value=value))

            select = ui.select(choices, value=given.get(option, default), label=texts.OPTION_NAMES[option])
            select.on_value_change(change).props("dense outlined options-dense").style("min-width: 220px")


def column_of(session: Session, name: str) -> dict[str, Any] | None:
    """What the table told of a column."""
    return next((one for one in (session.table or {}).get("columns", []) if one["name"] == name), None)


def why_role(session: Session, name: str, role: str) -> str:
    """Why the role matters, with the number for this table."""
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
