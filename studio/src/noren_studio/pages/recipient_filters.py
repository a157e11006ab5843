"""Filters of a question: a column, how it is compared, and with what."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from nicegui import ui

from noren.results import visible
from noren_studio.asks import QUESTION, ask
from noren_studio.parts import button, div, line
from noren_studio.rebuild import keyed
from noren_studio.session import Session
from noren_studio.texts import recipient as words

Found = Mapping[str, Any]


def filters(session: Session, found: Found, question: Mapping[str, Any]) -> None:
    """One line for each filter; records must meet all of them."""
    given = list(question.get("filters", ()))
    with div("n-col tight"):
        if given:
            line(words.FILTERS, "n-soft")
        for number, one in enumerate(given):
            with keyed(div("n-row").props(f'data-filter="{number}"'), one.get("column", number)):
                _filter(session, found, one, number)
        button(words.ADD_FILTER, partial(_add, session), "plain", icon="add")


def _add(session: Session) -> None:
    ask(session, words.ADD_FILTER, QUESTION, lambda q: q.setdefault("filters", []).append({"how": "in"}))


def _put(session: Session, number: int, told: str, rebuild: bool, **values: Any) -> None:
    ask(session, words.chosen(words.FILTERS, told), QUESTION, lambda q: q["filters"][number].update(values), rebuild)


def _filter(session: Session, found: Found, one: Mapping[str, Any], number: int) -> None:
    columns = {c["name"]: c for c in found["columns"] if c["countable"] or c["terms"]}
    chosen = columns.get(one.get("column", ""))
    shown = {name: visible(name) for name in columns}

    def column(event: Any) -> None:
        def start(question: dict[str, Any]) -> None:
            question["filters"][number] = {"column": event.value, "how": "in"}

        ask(session, words.chosen(words.FILTERS, event.value), QUESTION, start)

    now = one.get("column") if chosen else None
    select = ui.select(shown, label=words.FILTER_COLUMN, value=now, on_change=column)
    select.props("dense outlined options-dense").style("min-width: 170px")
    select.classes("n-grow")
    remove = ui.button(icon="close", on_click=partial(_remove, session, number), color=None).props("flat round dense")
    remove.props(f'aria-label="{words.REMOVE}"')
    if chosen is not None:
        _compared(session, chosen, one, number)


def _remove(session: Session, number: int) -> None:
    ask(session, words.REMOVE, QUESTION, lambda q: q["filters"].pop(number))


def _compared(session: Session, column: Mapping[str, Any], one: Mapping[str, Any], number: int) -> None:
    hows = ["in", *(["range"] if column["ranged"] else []), *(["all"] if column["terms"] else [])]
    how = one.get("how", "in")
    if len(hows) > 1:
        options = {name: words.HOWS[name] for name in hows}
        ui.select(options, value=how, label=words.FILTER_HOW,
                  on_change=lambda e: _put(session, number, words.HOWS[e.value], True, how=e.value)).props(
            "dense outlined options-dense"
        ).classes("n-full")  # fmt: skip
    if how == "range":
        for sign, label in ((">=", words.AT_LEAST), ("<", words.BELOW)):
            _end(session, one, number, sign, label)
        return
    labels = [*column["values"], *(text for level in column["levels"] for text in level["labels"])]
    shown = {text: visible(text) for text in dict.fromkeys(labels)}
    given = [value for value in one.get("values", ()) if value in shown]
    if not shown:
        _typed(session, one, number)
        return
    select = ui.select(
        shown,
        label=words.VALUES,
        value=given,
        multiple=True,
        with_input=True,
        on_change=lambda e: _put(session, number, ", ".join(map(str, e.value)), False, values=list(e.value)),
    )
    select.props("dense outlined options-dense use-chips").classes("n-grow").style("min-width: 260px")


def _end(session: Session, one: Mapping[str, Any], number: int, sign: str, label: str) -> None:
    field = ui.input(label, value=str(one.get(sign, ""))).props("dense outlined").style("width: 118px")

    def told() -> None:
        _put(session, number, f"{label} {field.value}", False, **{sign: (field.value or "").strip()})

    field.on("blur", told).on("keydown.enter", told)


def _typed(session: Session, one: Mapping[str, Any], number: int) -> None:
    """Values of a column that lists none: one per comma."""
    field = ui.input(words.VALUES, value=", ".join(map(str, one.get("values", ())))).props("dense outlined")
    field.classes("n-grow")

    def told() -> None:
        values = [part.strip() for part in (field.value or "").split(",") if part.strip()]
        _put(session, number, ", ".join(values), False, values=values)

    field.on("blur", told).on("keydown.enter", told)
