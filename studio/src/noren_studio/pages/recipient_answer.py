"""The answer: chart, table, assumptions, files, and the Python code for it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from nicegui import ui

from noren.results import visible
from noren_studio import questions
from noren_studio.pages.recipient_ask import ANSWER, estimate
from noren_studio.pages.recipient_chart import hovered
from noren_studio.parts import TICK, button, card, div, failure, grid, line, note, title, watch
from noren_studio.questions import public_place
from noren_studio.session import Session
from noren_studio.texts import recipient as words
from noren_studio.work.answering import export

EXPORT = "release export"
PIVOT = 60
"""Columns of a cross table that is still shown as one."""


def answered(session: Session, found: Mapping[str, Any]) -> None:
    """Show the last question and its answer, or progress."""
    asked = session.kept.get("asked")
    if asked is None or asked["place"] != found["place"]:
        return
    watch(session, ANSWER, partial(estimate, session, found["place"]))
    answer = session.result(ANSWER)
    if answer is None or answer["mark"] != asked["mark"]:
        return
    now = questions.asked(session, questions.QUESTION)
    with card() as box:
        box.props("data-answer")
        if asked["question"] != now:
            box.classes("n-before")
            note(words.BEFORE)
        with div("n-row"):
            line(asked["text"], "n-mono n-wrap n-grow").style("flex-basis: 300px")
            _downloads(session, answer)
        if answer["words"]:
            line(answer["words"])
        elif answer["picture"] is None:
            line(words.summary(answer), "n-soft")
        if not hovered(answer, asked["question"], session.dark, words.chart_of(asked["text"])):
            shown_picture(answer["picture"], words.chart_of(asked["text"]))
        if answer["no_picture"]:
            line(f"{words.NO_PICTURE} {answer['no_picture']}", "n-soft n-small")
        table_of(answer, asked["question"])
        for remark in answer["notes"]:
            line(remark, "n-soft n-small n-why")
        python(session, asked["script"](public_place(found["place"])), found["place"])
    if not asked["by itself"]:
        to_view(session, "answer", answer["mark"])


def to_view(session: Session, what: str, mark: str) -> None:
    """Scroll to a new result once."""
    if session.kept.get("in view") != mark:
        session.kept["in view"] = mark
        ui.run_javascript(f"document.querySelector('[data-{what}]')?.scrollIntoView({{block: 'start'}})")


def shown_picture(picture: Mapping[str, Any] | None, described: str) -> None:
    """Show a chart as an image in both looks, of which the style sheet shows one. Its space is reserved before it is
    drawn, so that the page does not move.
    """
    if picture is None:
        return
    with div("n-chart-box"):
        for look in ("light", "dark"):
            image = ui.element("img").classes(f"n-chart n-only-{look}")
            image.style(f"width: {picture['width']:.0f}px; aspect-ratio: {picture['width']} / {picture['height']}")
            image.props["src"] = picture[look]
            image.props["alt"] = visible(described)


def table_of(answer: Mapping[str, Any], question: Mapping[str, Any]) -> None:
    """Show the figures: a cross table if rows and columns were requested, otherwise one row per cell."""
    counted = answer["verb"] == "estimate"
    made = pivot(answer, len(question.get("rows", ()))) if counted else None
    heads, rows, numbers = made or (
        [words.MEASURED.get(head, head) for head in answer["heads"]],
        [
            [_figure(cell, counted) if at in answer["numbers"] else cell for at, cell in enumerate(row)]
            for row in answer["rows"]
        ],
        answer["numbers"],
    )
    grid(heads, rows, numbers).props("data-table").classes("n-answer n-full")
    if answer["total"] > len(answer["rows"]):
        line(words.first_rows(len(answer["rows"]), answer["total"]), "n-soft n-small")


def pivot(answer: Mapping[str, Any], rows: int) -> tuple[Sequence[str], Sequence[Sequence[Any]], Sequence[int]] | None:
    """Return a cross table with intervals; None without columns or with too many."""
    by = len(answer["by"])
    if rows in (0, by) or answer["total"] > len(answer["rows"]):
        return None
    across = list(dict.fromkeys(tuple(row[rows:by]) for row in answer["rows"]))
    if len(across) > PIVOT:
        return None
    lines: dict[tuple[Any, ...], dict[tuple[Any, ...], str]] = {}
    for row in answer["rows"]:
        count, low, high = row[by], row[by + 2], row[by + 3]
        lines.setdefault(tuple(row[:rows]), {})[tuple(row[rows:by])] = words.cell(count, low, high)
    heads = [*answer["by"][:rows], *(" / ".join(map(str, one)) for one in across)]
    body = [[*left, *(cells.get(one, "") for one in across)] for left, cells in lines.items()]
    return heads, body, range(rows, len(heads))


def _figure(cell: Any, counted: bool) -> str:
    """Write a figure; a count of people has no digits below a thousandth."""
    if cell is None:
        return "-"
    return f"{cell:,.1f}" if abs(cell) >= 1000 else f"{round(cell, 3) if counted else cell:.4g}"


# ---------------------------------------------------------------------- to take along


def _downloads(session: Session, answer: Mapping[str, Any]) -> None:
    name = f"noren-{answer['verb']}"
    with div("n-row tight"):
        csv = Path(answer["csv"])
        _small(words.CSV, lambda: ui.download.content(csv.read_bytes(), f"{name}.csv", "text/csv"))
        if answer["picture"] is not None:
            for kind in (words.PNG, words.SVG):
                _small(kind, partial(_drawn, session, answer["picture"]["spec"], name, kind))


def _small(kind: str, act: Any) -> None:
    made = button(kind, act, icon="download")
    made.props["aria-label"] = words.download_of(kind)


async def _drawn(session: Session, spec: str, name: str, kind: str) -> None:
    """Draw a picture file in a worker and offer it as a download."""
    target = Path(spec).with_suffix(f".{kind.lower()}")
    job = session.start(EXPORT, export, spec=spec, target=str(target))
    while job.running:
        await asyncio.sleep(TICK / 2)
    if job.state == "done":
        ui.download.content(target.read_bytes(), f"{name}{target.suffix}")
    elif job.failure is not None:
        with ui.dialog() as dialog, ui.card():
            failure(job.failure)
        dialog.open()


def python(session: Session, script: str, place: str) -> None:
    """Show Python code for the same answer."""
    with div("n-row"):
        with div("n-col tight n-grow"):
            title(words.PYTHON, 3)
            line(words.PYTHON_WHY, "n-soft n-small")

        def copy() -> None:
            ui.clipboard.write(script)
            ui.notify(words.COPIED)

        button(words.COPY, copy, icon="content_copy")
    ui.label(script.rstrip()).classes("n-code").props("data-python")
    if public_place(place) != place:
        line(words.PASSWORD, "n-soft n-small")
    elif "://" not in place and Path(place).is_relative_to(session.folder):
        line(words.PRIVATE_PLACE, "n-soft n-small")
