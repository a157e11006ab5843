"""Step 1, the table: open it, see its columns and guesses, and what the raw table discloses."""

from __future__ import annotations

from functools import partial
from typing import Any

from nicegui import events, ui

from noren.results import visible
from noren_studio import texts
from noren_studio.edits import groups, join, part, set_key
from noren_studio.files import Opener
from noren_studio.pages.column_table import ColumnTable
from noren_studio.parts import (
    button,
    card,
    div,
    edit,
    figure,
    grid,
    line,
    meter,
    note,
    refresh,
    table,
    tag,
    text,
    watch,
)
from noren_studio.session import Session
from noren_studio.work.choosing import raw_risk
from noren_studio.work.opening import make_demo, open_table

MOST_SHOWN = 40
"""Columns of the preview: every cell of a row that is seen is drawn."""


def build(session: Session) -> None:
    place = session.kept.pop("open", None)
    if place:
        _begin(session, place)
    if session.kept.pop("demo asked", False):
        _demo(session)
    _take(session)
    job = watch(session, "demo") or watch(session, "open")
    if job is not None and job.running:
        return
    found, failed = session.table, job is not None and job.state == "failed"
    if failed or found is None:
        _opener(session)
        if failed and found is not None:  # it would look like what was asked for
            button(texts.back_to(session.draft.name), partial(_back, session))
        return
    _shape(session, found)
    _understood(session, found)
    _risk(session)
    _rows(found)
    with ui.expansion(texts.OPEN_ANOTHER).classes("n-card tight"):
        _opener(session)


# ---------------------------------------------------------------------- opening


def _begin(session: Session, place: str, whole: bool = False) -> None:
    session.start("open", open_table, place=place, folder=str(session.folder), whole=whole)
    refresh()


def _back(session: Session) -> None:
    """Return to the previous table if another one could not be opened."""
    for name in ("demo", "open"):
        session.jobs.pop(name, None)
    refresh()


def _take(session: Session) -> None:
    """Make an opened table the table of the session, once."""
    demo = session.jobs.get("demo")
    if demo is not None and demo.state == "done" and session.kept.get("taken demo") is not demo:
        session.kept["taken demo"] = demo
        _begin(session, demo.result)
        return
    job = session.jobs.get("open")
    if job is None or job.state != "done" or session.kept.get("taken") is job:
        return
    session.kept["taken"] = job
    found = job.result
    session.kept.setdefault("tables", {})[found["place"]] = found
    session.open(found["place"], found["name"], found["policy"], texts.opened(found["name"]))
    refresh()


def _opener(session: Session) -> None:
    opener = Opener(session, partial(_begin, session))
    with card(texts.OPEN_TITLE, texts.OPEN_WHY):
        with div("n-row"):
            opener.place(texts.OPEN_PATH, texts.OPEN_PATH_EXAMPLE)
            button(texts.DEMO, partial(_demo, session))
        opener.upload(texts.DROP)
        line(texts.UPLOADS_PRIVATE, "n-soft n-small")


def _demo(session: Session) -> None:
    session.start("demo", make_demo, folder=str(session.folder))
    refresh()


# ---------------------------------------------------------------------- what it holds


def _shape(session: Session, found: dict[str, Any]) -> None:
    people = session.draft.policy.get("people", {})
    with div("n-row top").style("gap: 40px"):
        total = found["rows_total"]
        figure(f"{total:,}" if total is not None else texts.MANY_ROWS, texts.ROWS)
        figure(f"{len(found['columns']):,}", texts.COLUMNS)
        figure(people.get("key") or texts.EACH_ROW, texts.PEOPLE_KEY)
    if found["sampled"]:
        with div("n-row"):
            note(texts.sampled(found["rows"], found["rows_total"]))
            button(texts.STUDY_ALL, partial(_begin, session, found["place"], whole=True))
    for remark in found["notes"]:
        note(remark)


def _understood(session: Session, found: dict[str, Any]) -> None:
    """Show the guess for every column with its reason; a click corrects it."""
    with card(texts.UNDERSTOOD, texts.UNDERSTOOD_WHY):
        _people(session, found)
        ColumnTable(session, wide=True, pick=partial(_look_at, session))
        line(texts.WHOLE_POLICY_IS_DRAFT, "n-soft n-small")


def _look_at(session: Session, name: str) -> None:
    session.kept["column"] = name
    ui.navigate.to("/columns")


def _people(session: Session, found: dict[str, Any]) -> None:
    """Show which rows belong to one person."""
    key = session.draft.policy.get("people", {}).get("key")
    options = {"": texts.EVERY_ROW_A_PERSON} | {
        one["name"]: visible(texts.rows_with_same(one["name"])) for one in found["columns"]
    }

    def change(event: events.ValueChangeEventArguments) -> None:
        edit(session, texts.key_is(event.value), partial(set_key, key=event.value or None))

    with div("n-row"):
        ui.select(options, value=key or "", on_change=change, label=texts.WHOSE).props(
            "dense outlined options-dense"
        ).style("min-width: 280px")
        line(f"{found['people']['why']} {'' if key else texts.NO_KEY}".strip(), "n-soft n-grow")
    why = {tuple(one["columns"]): one["why"] for one in found["together"]}
    for group in groups(found["policy"]):
        _group(session, group, why[tuple(group["columns"])])


def _group(session: Session, group: dict[str, Any], why: str) -> None:
    """Show columns that disclose each other."""
    names = group["columns"]
    joined = any(one["columns"] == names for one in groups(session.draft.policy))
    with div("n-row"):
        tag(texts.together(names) if joined else texts.apart(names), "accent" if joined else "warn")
        line(why if joined else texts.APART_WHY, "n-soft")
        if joined:
            button(texts.KEEP_APART, partial(edit, session, texts.apart(names), partial(part, columns=names)), "plain")
        else:
            hide = partial(edit, session, texts.together(names), partial(join, group=group))
            button(texts.HIDE_TOGETHER, hide, "plain")


def _rows(found: dict[str, Any]) -> None:
    """Show the first rows, drawing only visible ones."""
    names, rows = found["preview"]["columns"], found["preview"]["rows"]
    with card(texts.PREVIEW, texts.preview_of(len(rows), found["rows_total"])):
        if len(names) > MOST_SHOWN:
            line(texts.first_columns(MOST_SHOWN, len(names)), "n-soft n-small")
        shown = grid(names[:MOST_SHOWN], [row[:MOST_SHOWN] for row in rows]).classes("n-grid-view")
        shown.props("virtual-scroll-sticky-size-start=36 data-preview")


# ---------------------------------------------------------------------- what it gives away


def _start_risk(session: Session) -> None:
    session.judge("risk", raw_risk)
    refresh()


def _risk(session: Session) -> None:
    """Show what somebody who knows some columns of a person finds in the raw table."""
    with card(texts.RISK, texts.RISK_WHY):
        if not session.rules.policy:
            note(texts.RISK_NEEDS_POLICY, tone="warn")
            return
        if "risk" not in session.jobs and not session.table["sampled"]:
            session.judge("risk", raw_risk)
        job = watch(session, "risk", partial(_start_risk, session))
        found = session.result("risk")
        if found is None:
            if job is None:
                button(texts.RISK_GO, partial(_start_risk, session), "main")
            return
        if not session.is_fresh("risk") and (job is None or not job.running):
            with div("n-row"):
                note(texts.STALE)
                button(texts.COMPUTE_AGAIN, partial(_start_risk, session))
        _risk_figures(found)


def _risk_figures(found: dict[str, Any]) -> None:
    alone = found["unique_share"]
    with div("n-row top").style("gap: 40px"):
        figure(f"{found['uniques']:,}", texts.alone_with_all(alone), "bad" if found["uniques"] else "good")
        figure(f"{found['smallest']:,}", texts.SMALLEST_K)
        figure(f"{found['mean_risk']:.1%}", texts.MEAN_RISK)
    line(texts.risk_sentence(found["uniques"], found["people"], found["quasi"]), "n-why")
    with div("n-row top even"):
        with div("n-col tight"):
            text(texts.LOOK_ALIKE, tag="h3")
            all_people = max(1, found["people"])
            alike = [
                (words, partial(meter, people / all_people, texts.people_share(words, people)), f"{people:,}")
                for words, people, _ in found["looks"]
            ]
            table(texts.ALIKE_HEADS, alike)
        with div("n-col tight"):
            text(texts.MOST_TELLING, tag="h3")
            rows = [[" + ".join(columns), f"{people:,}", f"{share:.1%}"] for columns, people, share in found["top"]]
            table(texts.TELLING_HEADS, rows)
    for remark in found["notes"]:
        line(remark, "n-soft n-small")
