"""Step 1, the table: open one, see what it holds and what was understood, and what it gives away as it is."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from nicegui import events, ui

from noren.results import visible
from noren_studio import texts
from noren_studio.edits import groups, join, part, set_key, set_role
from noren_studio.pages.table_risk import raw_risk
from noren_studio.parts import bars, button, card, div, edit, figure, line, note, plain_rows, tag, text, watch
from noren_studio.rebuild import keyed
from noren_studio.session import Session
from noren_studio.view import refresh
from noren_studio.work.demo import make_demo
from noren_studio.work.opening import open_table, roles

LARGEST_UPLOAD = 4 << 30


def build(session: Session) -> None:
    place = session.kept.pop("open", None)
    if place:
        _begin(session, place)
    running = watch(session, "demo") or watch(session, "open")
    _take(session)
    if running is not None and running.running:
        return
    found = session.table
    if not session.draft.opened or found is None:
        _opener(session)
        return
    _shape(session, found)
    _understood(session, found)
    raw_risk(session)
    _rows(found)
    with ui.expansion(texts.OPEN_ANOTHER).classes("n-card tight"):
        _opener(session)


# ---------------------------------------------------------------------- opening


def _begin(session: Session, place: str, whole: bool = False) -> None:
    session.start("open", open_table, place=place, folder=str(session.folder), whole=whole)


def _take(session: Session) -> None:
    """What a job opened becomes the table of the session, once."""
    demo = session.jobs.get("demo")
    if demo is not None and demo.state == "done" and session.kept.get("taken demo") is not demo:
        session.kept["taken demo"] = demo
        _begin(session, demo.result)
        refresh()
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
    with card(texts.OPEN_TITLE, texts.OPEN_WHY):
        with div("n-row"):
            place = ui.input(texts.OPEN_PATH, placeholder=texts.OPEN_PATH_EXAMPLE).props("outlined dense")
            place.classes("n-grow").props("autocomplete=off spellcheck=false")

            def go() -> None:
                if (place.value or "").strip():
                    _begin(session, place.value.strip())
                    refresh()

            place.on("keydown.enter", go)
            button(texts.OPEN, go, "main")
            button(texts.BROWSE, partial(_pick, session))
            button(texts.DEMO, partial(_demo, session))
        ui.upload(
            label=texts.DROP,
            auto_upload=True,
            max_file_size=LARGEST_UPLOAD,
            max_files=1,
            on_upload=partial(_uploaded, session),
            on_rejected=lambda: ui.notify(texts.TOO_LARGE, type="negative"),
        ).props("flat")
        line(texts.UPLOADS_PRIVATE, "n-soft n-small")


def _demo(session: Session) -> None:
    session.start("demo", make_demo, folder=str(session.folder))
    refresh()


async def _uploaded(session: Session, event: events.UploadEventArguments) -> None:
    """Keep the file in the session's folder under a name of our own; the given one is only shown."""
    suffix = "".join(Path(event.file.name).suffixes[-2:])
    known = suffix if suffix.replace(".", "").isalnum() and len(suffix) < 20 else ".csv"
    number = session.kept["uploads"] = session.kept.get("uploads", 0) + 1
    folder = session.folder / f"upload-{number}"
    folder.mkdir(mode=0o700)
    target = folder / f"{_plain_stem(event.file.name)}{known}"
    await event.file.save(target)
    _begin(session, str(target))
    refresh()


def _plain_stem(name: str) -> str:
    stem = Path(name).name.partition(".")[0]
    return "".join(char if char.isalnum() or char in "-_" else "_" for char in stem)[:60] or "table"


async def _pick(session: Session) -> None:
    from noren_studio.picker import pick_file

    found = await pick_file(session)
    if found is not None:
        _begin(session, str(found))
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
            whole = partial(_whole, session, found["place"])
            button(texts.STUDY_ALL, whole)
    for remark in found["notes"]:
        note(remark)


def _whole(session: Session, place: str) -> None:
    _begin(session, place, whole=True)
    refresh()


def _understood(session: Session, found: dict[str, Any]) -> None:
    """What `init` understood of every column and why; a click corrects it."""
    given, now = {one["name"]: one for one in found["columns"]}, roles(session.draft.policy)
    with card(texts.UNDERSTOOD, texts.UNDERSTOOD_WHY):
        _people(session, found)
        with div("n-scroll"), ui.element("table").classes("n-table"):
            with ui.element("thead"), ui.element("tr"):
                for head, classes in texts.COLUMN_HEADS:
                    text(head, classes, tag="th").props("scope=col")
            with ui.element("tbody"):
                for name, role in now.items():
                    if name in given:
                        _column(session, given[name], role)
        line(texts.WHOLE_POLICY_IS_DRAFT, "n-soft n-small")


def _column(session: Session, column: dict[str, Any], role: str) -> None:
    name = column["name"]
    with keyed(ui.element("tr"), name):
        text(name, "n-key", tag="td")
        with ui.element("td"):
            role_menu(session, name, role)
        with ui.element("td"):
            line(column["kind"])
            if column["evidence"] not in ("texts", "no values"):
                line(column["evidence"], "n-soft n-small")
        text(texts.VERY_MANY if column["distinct"] is None else f"{column['distinct']:,}", "n", tag="td")
        text(f"{column['missing']:,}" if column["missing"] else "-", "n", tag="td")
        with ui.element("td"):
            if role not in ("identifier", "drop") and column["bars"]:
                bars(column["bars"], described=texts.histogram(name, column["bars_say"]))
                line(column["bars_say"], "n-soft n-small")
        text(column["why"] if role == column["role"] else texts.YOU_DECIDED, "n-soft", tag="td")


def role_menu(session: Session, name: str, role: str) -> ui.select:
    """The role of a column, to be changed by a click or by typing."""

    def change(event: events.ValueChangeEventArguments) -> None:
        edit(session, texts.role_of(name, texts.ROLES[event.value][0]), partial(set_role, name=name, role=event.value))

    options = {one: short for one, (short, _) in texts.ROLES.items()}
    said = visible(texts.role_for(name))  # the head of the column shows it; a menu is called by its label alone
    select = ui.select(options, value=role, label=said, on_change=change).props("dense outlined options-dense")
    return select.props("data-role-of").classes("n-bare").style("min-width: 172px")


def _people(session: Session, found: dict[str, Any]) -> None:
    """Which rows are one person's."""
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
        line(found["people"]["why"] or texts.NO_KEY, "n-soft n-grow")
    why = {tuple(one["columns"]): one["why"] for one in found["together"]}
    for group in groups(found["policy"]):
        _group(session, group, why[tuple(group["columns"])])


def _group(session: Session, group: dict[str, Any], why: str) -> None:
    """Columns that tell each other."""
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
    """The first rows, scrolled without drawing more than is seen."""
    names = found["preview"]["columns"]
    rows = found["preview"]["rows"]
    with card(texts.PREVIEW, texts.preview_of(len(rows), found["rows_total"])):
        columns = [
            {"name": f"c{at}", "label": visible(shown_name), "field": f"c{at}", "align": "left"}
            for at, shown_name in enumerate(names)
        ]
        records = [{"id": number} | {f"c{at}": cell for at, cell in enumerate(row)} for number, row in enumerate(rows)]
        grid = ui.table(columns=columns, rows=plain_rows(records), row_key="id", pagination={"rowsPerPage": 0})
        grid.props("dense flat virtual-scroll hide-bottom virtual-scroll-sticky-size-start=36 data-preview").classes(
            "n-grid-view"
        )
