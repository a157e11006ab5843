"""The table builder: columns, levels, filters, estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from nicegui import ui

from noren.errors import QueryError
from noren.results import visible
from noren_studio import texts
from noren_studio.parts import button, card, div, line, refresh, say, take
from noren_studio.questions import GROUPED, LEVEL, MOST_TABLES, QUESTION, TABLES, ask, asked, call_of, script
from noren_studio.rebuild import keyed
from noren_studio.session import Session, mark_of
from noren_studio.texts import recipient as words
from noren_studio.work.answering import answer

ANSWER = "release answer"
FEW_GROUPS = 16
"""Groups of a first picture that a reader takes in at once."""
Found = Mapping[str, Any]


def asking(session: Session, found: Found) -> None:
    """Show the controls of a question, and the button that computes it."""
    _first(session, found)
    question = asked(session, QUESTION)
    kind = question.get("kind", "count")
    with card(words.ASK) as box:
        box.props("data-ask").classes("n-stay")
        kinds = {one: name for one, name in words.KINDS.items() if one != "margins" or found["margins"]}
        toggle = ui.toggle(kinds, value=kind if kind in kinds else "count", on_change=partial(_kind, session)).classes(
            "n-kind"
        )
        toggle.props("no-caps unelevated dense toggle-text-color=dark")
        line(words.KIND_WHY[kind], "n-soft n-small")
        fields = {"count": _count, "number": _number, "model": _model, "test": _test, "tables": _tables,
                  "margins": _margins}  # fmt: skip
        fields[kind](session, found, question)
        if kind not in ("tables", "margins"):
            _weights(session, found, question)
            filters(session, found, question)
        button(words.ESTIMATE, partial(estimate, session, found["place"]), "main")


def _kind(session: Session, event: Any) -> None:
    ask(session, texts.set_to(words.ASK, words.KINDS[event.value]), QUESTION, lambda q: q.update(kind=event.value))


def _first(session: Session, found: Found) -> None:
    """Ask an initial question, once per release."""
    if session.draft.asks.get(QUESTION) or session.kept.get("asked first") == found["place"]:
        return
    session.kept["asked first"] = found["place"]
    name = first_rows(found)
    if name:
        ask(session, texts.set_to(words.ROWS, name), QUESTION, lambda q: q.update(kind="count", rows=[name]), False)
        _start(session, found["place"], asked(session, QUESTION), by_itself=True)


def first_rows(found: Found) -> str | None:
    """Return what is counted at first: a hidden column if there is one, by few values or at a level with few labels."""
    able = [one for one in found["columns"] if one["countable"]]
    named = [(one, one["name"], one["distinct"] or FEW_GROUPS + 1) for one in able]
    named += [(one, f"{one['name']}@{level['level']}", level["count"]) for one in able for level in one["levels"]]
    order = sorted(named, key=lambda of: (bool(of[0]["exact"]), of[2] if of[2] > FEW_GROUPS else 0, able.index(of[0])))
    return order[0][1] if order else None


# ---------------------------------------------------------------------- computing


def estimate(session: Session, place: str) -> None:
    """Ask the release, or say what is not chosen yet."""
    try:
        _start(session, place, asked(session, QUESTION))
    except QueryError as error:
        say(error)
        return
    refresh()


def _start(session: Session, place: str, question: Mapping[str, Any], by_itself: bool = False) -> None:
    call = call_of(question)
    chart = question.get("chart", "auto")
    given = {"place": place, "call": call.to_dict(), "chart": chart}
    mark = mark_of(given)
    told = {"mark": mark, "place": place, "text": call.text(), "question": dict(question), "by itself": by_itself}
    session.kept["asked"] = told | {"script": partial(script, call)}
    session.start(ANSWER, answer, **given, folder=str(session.folder), mark=mark)


# ---------------------------------------------------------------------- controls


def menu(
    session: Session, label: str, options: Mapping[Any, str], now: Any, name: str, several: bool = False,
    rebuild: bool = False, drops: Sequence[str] = (), **more: Any,
) -> ui.select:  # fmt: skip
    """Show a menu of the question; its labels are shown as text."""

    def change(event: Any) -> None:
        value = list(event.value) if several else event.value
        told = [options.get(one, str(one)) for one in value] if several else options.get(value, str(value or ""))

        def put(question: dict[str, Any]) -> None:
            question[name] = value
            for other in drops:
                question.pop(other, None)

        ask(session, texts.set_to(label, told), QUESTION, put, rebuild)

    shown = {key: visible(text) for key, text in options.items()}
    valid = [one for one in now or () if one in shown] if several else (now if now in shown else None)
    select = ui.select(shown, label=label, value=valid, multiple=several, on_change=change, **more)
    select.props("dense outlined options-dense" + (" use-chips" if several else "")).props(f'data-menu="{name}"')
    return select


def askable(found: Found, taken: Sequence[str] = ()) -> dict[str, str]:
    """Return columns, levels and intervals that can still be chosen."""
    out: dict[str, str] = {}
    for one in found["columns"]:
        name = one["name"]
        if not one["countable"]:
            continue
        out[name] = name
        for level in one["levels"]:
            out[f"{name}@{level['level']}"] = words.at_level(name, level["level"], level["count"], level["some"])
        for width in one["widths"]:
            out[f"{name}/{width}"] = words.in_widths(name, width)
    return {key: text for key, text in out.items() if key not in taken}


def _count(session: Session, found: Found, question: Mapping[str, Any]) -> None:
    rows, columns = list(question.get("rows", ())), list(question.get("columns", ()))
    with div("n-fields"):
        menu(session, words.ROWS, askable(found, columns), rows, "rows", several=True, with_input=True)
        menu(session, words.COLUMNS_OF, askable(found, rows), columns, "columns", several=True, with_input=True)
    with div("n-fields two"):
        estimators = {"": words.ESTIMATOR_AUTO} | {name: name for name in found["estimators"]}
        menu(session, words.ESTIMATOR, estimators, question.get("estimator", ""), "estimator")
        menu(session, words.CHART, words.CHARTS, question.get("chart", "auto"), "chart")
        _interval(session, found, question)


def _interval(session: Session, found: Found, question: Mapping[str, Any]) -> None:
    if found["hard"]:
        return
    menu(session, words.LEVEL, words.LEVELS, question.get("level", LEVEL), "level")
    if not found["facts"]["suppressed"]:
        with _switch(session, question, words.POPULATION, "population"):
            ui.tooltip(words.POPULATION_WHY)


def _weights(session: Session, found: Found, question: Mapping[str, Any]) -> None:
    if found["weight"]:
        _switch(session, question, words.UNWEIGHTED, "unweighted")
        line(words.UNWEIGHTED_WHY, "n-soft n-small")


def _switch(session: Session, question: Mapping[str, Any], label: str, name: str) -> ui.switch:
    def change(event: Any) -> None:
        _put_value(session, label, name, bool(event.value))

    return ui.switch(label, value=bool(question.get(name)), on_change=change)


def _put_value(session: Session, label: str, name: str, value: Any) -> None:
    ask(session, texts.set_to(label, value), QUESTION, lambda q: q.update({name: value}), False)


def _tables(session: Session, found: Found, question: Mapping[str, Any]) -> None:
    with div("n-fields two"):
        _number_field(session, words.TABLES, question.get("tables", TABLES), "tables", 1, MOST_TABLES, 1)
        _number_field(session, words.SEED, question.get("seed", 1), "seed", 1, 1_000_000, 1)
    line(words.TABLES_WHY, "n-soft n-small")


def _number_field(session: Session, label: str, now: float, name: str, low: float, high: float, step: float) -> None:
    def put(value: Any) -> None:
        if value is not None and low <= value <= high:
            _put_value(session, label, name, int(value) if step == 1 else value)

    field = ui.number(label, value=now, min=low, max=high, step=step, format="%d" if step == 1 else "%g")
    take(field.props(f'dense outlined data-field="{name}"'), put)


def _margins(session: Session, found: Found, question: Mapping[str, Any]) -> None:
    options = {at: " x ".join(of) for at, of in enumerate(found["margins"])}
    menu(session, words.MARGIN, options, question.get("margin", 0), "margin")


def _number(session: Session, found: Found, question: Mapping[str, Any]) -> None:
    measure = question.get("measure", "mean")
    with div("n-fields"):
        menu(session, words.MEASURE, words.MEASURES, measure, "measure", rebuild=True)
        variable(session, found, question, words.OF, "of", "share", shares=measure in ("mean", *GROUPED))
        if measure == "correlation":
            menu(session, words.SECOND, _numeric(found), question.get("second"), "second")
        if measure == "quantile":
            _number_field(session, words.AT, question.get("at", 0.5), "at", 0.01, 0.99, 0.05)
        menu(session, words.BY, askable(found), question.get("by", ()), "by", several=True, rebuild=measure in GROUPED,
             drops=("against",), with_input=True)  # fmt: skip
        by = question.get("by", ())
        if measure in GROUPED and len(by) == 1 and (groups := groups_of(found, by[0])):
            options = {(): words.FIRST_GROUP} | {(one,): one for one in groups}
            menu(session, words.AGAINST, options, tuple(question.get("against", ())), "against")
        _interval(session, found, question)


def _numeric(found: Found) -> dict[str, str]:
    return {one["name"]: one["name"] for one in found["columns"] if one["numbers"]}


def variable(
    session: Session, found: Found, question: Mapping[str, Any], label: str, name: str, share: str, shares: bool
) -> None:
    """Let the user choose a column of numbers, or one value of a categorical column."""
    numeric = _numeric(found)
    named = {one["name"]: one["name"] for one in found["columns"] if one["countable"] and not one["terms"]}
    now = question.get(name)
    menu(session, label, named if shares else numeric, now, name, rebuild=True, drops=(share,))
    column = next((one for one in found["columns"] if one["name"] == now), None)
    if shares and column is not None and now not in numeric:
        labels = [*column["values"], *(text for level in column["levels"] for text in level["labels"])]
        options = {text: text for text in dict.fromkeys(labels)}
        menu(session, words.SHARE, options, question.get(share), share, with_input=True)


def groups_of(found: Found, asked_for: str) -> list[str]:
    """Return the labels of a column, or of one of its levels."""
    for one in found["columns"]:
        if one["name"] == asked_for:
            return list(one["values"])
        for level in one["levels"]:
            if f"{one['name']}@{level['level']}" == asked_for:
                return list(level["labels"])
    return []


def _model(session: Session, found: Found, question: Mapping[str, Any]) -> None:
    with div("n-fields"):
        variable(session, found, question, words.RESPONSE, "response", "response_share", shares=True)
        menu(session, words.TERMS, askable(found), question.get("terms", ()), "terms", several=True,
             with_input=True)  # fmt: skip
        menu(session, words.FAMILY, words.FAMILIES, question.get("family", "gaussian"), "family")
        menu(session, words.FIT, words.FITS, question.get("fit", ""), "fit")
        _written(session, words.FORMULA, words.FORMULA_EXAMPLE, question.get("formula", ""), "formula")


def _written(session: Session, label: str, example: str, now: str, name: str) -> None:
    field = ui.input(label, value=now, placeholder=example).props("dense outlined spellcheck=false autocomplete=off")
    field.classes("n-mono").props(f'data-field="{name}"')
    take(field, partial(_put_value, session, label, name))


def _test(session: Session, found: Found, question: Mapping[str, Any]) -> None:
    with div("n-fields"):
        menu(session, words.ONE, askable(found), question.get("one"), "one")
        menu(session, words.TWO, askable(found), question.get("two"), "two")


# ---------------------------------------------------------------------- filters


def filters(session: Session, found: Found, question: Mapping[str, Any]) -> None:
    """Show one line for each filter; records must meet all of them."""
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
    ask(session, texts.set_to(words.FILTERS, told), QUESTION, lambda q: q["filters"][number].update(values), rebuild)


def _filter(session: Session, found: Found, one: Mapping[str, Any], number: int) -> None:
    columns = {c["name"]: c for c in found["columns"] if c["countable"] or c["terms"]}
    chosen = columns.get(one.get("column", ""))
    shown = {name: visible(name) for name in columns}

    def column(event: Any) -> None:
        def start(question: dict[str, Any]) -> None:
            question["filters"][number] = {"column": event.value, "how": "in"}

        ask(session, texts.set_to(words.FILTERS, event.value), QUESTION, start)

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
    take(field, lambda value: _put(session, number, f"{label} {value}", False, **{sign: value}))


def _typed(session: Session, one: Mapping[str, Any], number: int) -> None:
    """Parse values of a column without a list: separated by commas."""
    field = ui.input(words.VALUES, value=", ".join(map(str, one.get("values", ())))).props("dense outlined")
    field.classes("n-grow")

    def put(written: str) -> None:
        values = [part.strip() for part in written.split(",") if part.strip()]
        _put(session, number, ", ".join(values), False, values=values)

    take(field, put)
