"""Building blocks of pages. Everything from a table, a file or a library goes through `text`, which shows it as text
and escapes control characters.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from nicegui import ui

from noren.errors import NorenError, Problem
from noren.results import visible
from noren_studio import texts
from noren_studio.jobs import Failure, Job
from noren_studio.rebuild import Part, keyed
from noren_studio.session import Session
from noren_studio.texts import Tone

KEY = "noren_view"


@dataclass(frozen=True)
class View:
    """A protocol: what the frame offers to a page."""

    refresh: Callable[[], None]
    """Build the content anew, and the frame around it."""
    frame: Callable[[], None]
    """Build the frame alone: undo, redo, steps."""
    others: Callable[[], list[View]]
    """The other pages of the session that are open."""
    parts: dict[str, Part]
    """What is built anew with the frame: a page adds what must follow every edit."""


def follow(name: str, build: Callable[..., None], *given: Any) -> None:
    """Make a part of a page that is rebuilt after every edit."""
    ui.context.client.storage[KEY].parts[name] = Part(build, *given)


def keep(view: View) -> None:
    ui.context.client.storage[KEY] = view


def refresh() -> None:
    """Rebuild the page, and the others of the session."""
    ui.context.client.storage[KEY].refresh()
    refresh_others()


def refresh_frame() -> None:
    """Rebuild the frame after an edit that the page shows itself: undo, redo and steps."""
    ui.context.client.storage[KEY].frame()
    refresh_others()


def refresh_others() -> None:
    """Rebuild the other pages of the session."""
    for view in ui.context.client.storage[KEY].others():
        view.refresh()


LONG = 24
"""Characters from which on a name may be cut off where it stands; all of it is seen when the pointer is on it."""

UPLOAD = (
    '<q-btn flat no-caps icon="upload_file" class="full-width" label="LABEL" @click="props.pickFiles">'
    "<q-uploader-add-trigger/></q-btn>"
)

FEW_PROBLEMS = 3
"""Problems of a policy that stand above a page: a wide table may have one for every column."""

TICK = 0.25
"""Seconds between two looks at a job that runs."""


def text(content: object, classes: str = "", tag: str = "div") -> ui.element:
    """Show a text."""
    element, said = ui.element(tag).classes(classes), visible(content)
    with element:
        inner = ui.label(said).classes("n-in")
        if len(said) > LONG:
            inner.props["title"] = said
    return element


def line(content: object, classes: str = "") -> ui.label:
    """Show a text on its own line."""
    said = visible(content)
    made = ui.label(said).classes(classes)
    if "n-cut" in classes and len(said) > LONG:
        made.props["title"] = said
    return made


def title(content: str, level: int = 2) -> None:
    text(content, tag=f"h{level}")


def div(classes: str) -> ui.element:
    return ui.element("div").classes(classes)


@contextmanager
def card(heading: str = "", why: str = "", tight: bool = False) -> Iterator[ui.element]:
    """Show a card with title, explanation and content."""
    with ui.element("section").classes("n-card tight" if tight else "n-card") as found:
        if heading:
            title(heading)
        if why:
            line(why, "n-why")
        yield found


def figure(value: object, says: str, tone: Tone = "") -> None:
    """Show a number with its meaning."""
    with div("n-figure"):
        line(value, "n-value").style(f"color: var(--n-{tone})" if tone else "")
        line(says, "n-says")


def tag(content: object, tone: Tone = "") -> ui.label:
    return line(content, f"n-tag {tone}")


Weight = Literal["main", "line", "plain", "bad"]


def button(label: str, act: Callable[..., Any], weight: Weight = "line", icon: str | None = None) -> ui.button:
    """Show a button: one `main` per page, `line` for others, `plain` if there are many."""
    found = ui.button(label, on_click=act, icon=icon, color=None).props("no-caps unelevated dense")
    return found.classes(f"n-button {weight}")


def note(message: object, hint: str = "", tone: Tone = "") -> None:
    """Show a remark, or an error with its hint."""
    with ui.element("div").classes(f"n-note {tone}").props("role=alert" if tone == "bad" else "role=note"):
        line(message, "n-pre")
        if hint := texts.in_words(hint):
            line(hint, "n-hint n-pre n-small")


def take(field: ui.input | ui.number, act: Callable[[Any], object]) -> None:
    """Pass the trimmed content of a field to `act` when it is entered or left."""

    def told() -> None:
        act((field.value or "").strip() if isinstance(field, ui.input) else field.value)

    field.on("blur", told).on("keydown.enter", told)


Head = str | tuple[str, str]
"""The head of a column, and how its texts look: n for numbers, n-soft, n-key."""
Cell = object | Callable[[], object]
"""A text, or a function that builds what stands in the cell."""


def table(
    heads: Sequence[Head], rows: Iterable[Sequence[Cell]], keys: Sequence[str] = (), on: Collection[str] = ()
) -> ui.element:
    """Show a small table; keyed rows keep their elements, and those in `on` are marked. Use `grid` for large ones."""
    named = [(head, "") if isinstance(head, str) else head for head in heads]
    with ui.element("table").classes("n-table") as found:
        with ui.element("thead"), ui.element("tr"):
            for head, classes in named:
                text(head, "n" if classes == "n" else "", tag="th").props("scope=col")
        with ui.element("tbody"):
            for at, row in enumerate(rows):
                key = keys[at] if keys else at
                with keyed(ui.element("tr"), key) if keys else ui.element("tr") as made:
                    made.classes("on" if key in on else "")
                    for cell, (_, classes) in zip(row, named, strict=True):
                        if callable(cell):
                            with ui.element("td"):
                                cell()
                        else:
                            text(cell, classes, tag="td")
    return found


def grid(heads: Sequence[object], rows: Sequence[Sequence[object]], numbers: Sequence[int] = ()) -> ui.table:
    """Show a table of any length, drawing only visible rows."""
    columns = [
        {"name": f"c{at}", "label": visible(head), "field": f"c{at}", "align": "right" if at in numbers else "left"}
        for at, head in enumerate(heads)
    ]
    cells = [[visible(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    records = [{"id": number} | {f"c{at}": cell for at, cell in enumerate(row)} for number, row in enumerate(cells)]
    found = ui.table(columns=columns, rows=records, row_key="id", pagination={"rowsPerPage": 0})
    # from its first head on, keys scroll it
    found.add_slot("header-cell-c0", '<q-th :props="props" tabindex="0">{{ props.col.label }}</q-th>')
    return found.props("dense flat virtual-scroll hide-bottom")


def lines(*content: tuple[object, str]) -> Callable[[], None]:
    """Return a cell of several styled lines."""

    def build() -> None:
        for one, classes in content:
            line(one, classes)

    return build


def say(error: NorenError) -> None:
    """Show a temporary message with a hint."""
    ui.notify(visible(f"{error.message} {texts.in_words(error.hint or '')}"), type="warning")


def problems(found: Sequence[Problem], tone: Tone = "warn") -> None:
    """Show the problems of a policy: the first few, the others folded."""
    for problem in found[:FEW_PROBLEMS]:
        note(f"{problem.where}: {problem.message}" if problem.where else problem.message, problem.hint, tone)
    if len(found) > FEW_PROBLEMS:
        with ui.expansion(texts.more_problems(len(found) - FEW_PROBLEMS)).classes("n-card tight"):
            grid((texts.WHERE, texts.WHAT), [(one.where, one.message) for one in found[FEW_PROBLEMS:]])


def failure(found: Failure) -> None:
    """Show why a job failed."""
    listed = [Problem(p["where"], p["message"], p.get("hint", "")) for p in found.problems]
    if listed:
        problems(listed, "bad")
    else:
        note(found.message, found.hint, "bad")


def bars(counts: Sequence[float], classes: str = "", described: str = "") -> None:
    """Show a small histogram."""
    most = max(counts, default=0) or 1
    with ui.element("div").classes(f"n-bars {classes}").props("role=img") as found:
        found.props["aria-label"] = visible(described)
        for count in counts:
            ui.element("div").style(f"height: {max(0.0, 100 * count / most):.1f}%")


def meter(share: float, described: str, classes: str = "") -> None:
    """Show a bar from 0 to 100%."""
    with ui.element("div").classes(f"n-meter {classes}").props("role=img") as found:
        found.props["aria-label"] = visible(described)
        ui.element("div").style(f"width: {100 * min(1.0, max(0.0, share)):.1f}%")


def watch(session: Session, name: str, again: Callable[[], Any] | None = None) -> Job | None:
    """Show a running or failed job: stages, cancel, error. The page is rebuilt when it ends.

    Returns the job if there is something to see, so that a page can leave out what is not there yet.
    """
    job = session.jobs.get(name)
    if job is None or job.state == "done":
        return None
    with ui.element("section").classes("n-card tight").props(f'aria-live=polite data-job="{name}"'):
        if job.running:
            _progress(session, job)
        elif job.state == "cancelled":
            note(texts.CANCELLED_PART if job.parts else texts.CANCELLED)
        elif job.failure is not None:
            failure(job.failure)
        if not job.running and again is not None:
            button(texts.TRY_AGAIN, again)
    return job


def _progress(session: Session, job: Job) -> None:
    with div("n-row"):
        said = ui.label(texts.STARTING).classes("n-grow")
        clock = ui.label().classes("n-soft n-small n-num")

        def cancel() -> None:
            job.cancel()
            refresh()

        button(texts.CANCEL, cancel)
    bar = ui.linear_progress(value=0, show_value=False, size="6px").props("instant-feedback")
    bar.props["aria-label"] = texts.PROGRESS

    parts = job.parts

    def look() -> None:
        if not job.running or job.parts > parts:
            timer.deactivate()
            refresh()
            return
        before = job.before
        if before is not None:  # nothing moves on a page that waits: ten of them would cost more than the work itself
            said.set_text(texts.waiting(before))
            bar.props(remove="indeterminate")
            return
        current = job.stage
        if current is None:
            said.set_text(texts.STARTING)
            bar.props("indeterminate")
        clock.set_text(texts.running_for(time.monotonic() - job.began, current.left if current else None))
        if current is None:
            return
        said.set_text(visible(f"{current.name}: {current.note}" if current.note else current.name))
        if current.share is None:
            bar.props("indeterminate")
        else:
            bar.props(remove="indeterminate")
            bar.set_value(round(current.share, 3))

    if job.before is None:
        bar.props("indeterminate")
    timer = ui.timer(TICK, look)


def edit(session: Session, words: str, change: Callable[[dict[str, Any]], None], rebuild: bool = True) -> None:
    """Edit the policy, and rebuild the page."""
    if session.edit(words, change):
        if rebuild:
            refresh()
        else:
            refresh_frame()


def upload(label: str, act: Callable[..., Any], largest: int, accept: str = "") -> ui.upload:
    """Show an area to drop a file, with a button."""
    made = ui.upload(auto_upload=True, max_file_size=largest, max_files=1, on_upload=act,
                     on_rejected=lambda: ui.notify(texts.TOO_LARGE, type="negative"))  # fmt: skip
    made.add_slot("header", UPLOAD.replace("LABEL", label))
    return made.props("flat" + (f" accept={accept}" if accept else "")).props(f'data-upload="{label}"')


def attacks(found: Sequence[Mapping[str, Any]]) -> None:
    """Show what adversaries learn: before any release, from the raw table, from this release."""
    rows = [
        (
            lines((one["attack"], "n-key"), (", ".join(one["target"]), "n-soft n-small")),
            one["figure"] or "-",
            *(partial(_share, one, name) for name in ("before", "raw", "after")),
            lines((one["means"], "n-small"), (one["adversary"], "n-soft n-small")),
        )
        for one in found
    ]
    with div("n-scroll"):
        table(texts.ATTACK_HEADS, rows)


def _share(one: Mapping[str, Any], name: str) -> None:
    share = one[name]
    with div("").style("min-width: 92px"):
        line("-" if share is None else f"{share:.1%}", "n-num")
        if share is not None:
            meter(share, texts.share_of(one["attack"], one["figure"], share), name)


def verdicts(found: Sequence[Mapping[str, Any]]) -> None:
    """Show verdicts: required, achieved, and how many people break the requirement."""
    rows = [
        (partial(tag, *texts.HOLDS[one["holds"]]), texts.model_title(one["model"]), one["column"],
         f"{one['required']:g}", f"{one['achieved']:.4g}", f"{one['breaches']:,}" if one["breaches"] else "-",
         one["statement"])
        for one in found
    ]  # fmt: skip
    table(texts.VERDICT_HEADS, rows).props("data-verdicts")
