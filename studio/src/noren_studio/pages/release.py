"""Step 5, the release: make, verify, sign and hand over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from nicegui import events, ui

from noren_studio import texts
from noren_studio.gate import FRAMED
from noren_studio.parts import (
    attacks,
    button,
    card,
    div,
    figure,
    line,
    note,
    refresh,
    tag,
    text,
    verdicts,
    watch,
)
from noren_studio.session import Session
from noren_studio.work.opening import roles
from noren_studio.work.releasing import make_release, make_report, save_release

DEFAULT_KEY = "signing.key"
"""What a new key is called for which no path was given; it stands where the studio was started."""


def build(session: Session) -> None:
    if session.rules.policy is None:
        note(texts.RISK_NEEDS_POLICY, tone="warn")
        return
    found = session.result("release")
    _curtain(session, found)
    _make(session, found)
    if found is None:
        return
    if not session.is_fresh("release"):
        note(texts.STALE_RELEASE, tone="warn")
    with card(texts.VERDICTS, texts.VERDICTS_WHY):
        _figures(found)
        verdicts(found["verdicts"])
        for sentence in found["replayed"]:
            line(sentence)
        for remark in found["notes"]:
            line(remark, "n-soft n-small")
    _report(session, found)
    _save(session, found)


# ---------------------------------------------------------------------- the curtain


def _curtain(session: Session, found: Mapping[str, Any] | None) -> None:
    """Show what is kept and what is published."""
    with div("n-sides").props("data-curtain"):
        with div("n-side in"):
            with div("n-row tight"):
                ui.icon("lock", size="20px").classes("n-soft")
                text(texts.STAYS, tag="h2")
            line(texts.STAYS_WHY, "n-soft")
            _item("table_rows", session.draft.name, texts.ORIGINAL_TABLE)
            now = roles(session.draft.policy)
            kept = [n for n, role in now.items() if role in ("identifier", "drop")] if found is None else found["kept"]
            if kept:
                _item("block", ", ".join(kept), texts.NEVER_PUBLISHED)
            _item("casino", texts.RANDOMNESS, texts.RANDOMNESS_SAYS)
            if session.result("report") is not None:
                _item("description", texts.OFFICERS_REPORT, texts.REPORT_SAYS)
            _item("vpn_key", texts.SIGNING_KEY, texts.KEY_SAYS)
        ui.element("div").classes("n-cloth").props("aria-hidden=true")
        with div("n-side"):
            with div("n-row tight"):
                ui.icon("public", size="20px").classes("n-soft")
                text(texts.PUBLISHED, tag="h2")
            if found is None:
                line(texts.NOTHING_YET, "n-soft")
                line(texts.will_be([name for name in now if name not in kept]), "n-wrap")
                return
            line(texts.published_of(found["records"], len(found["columns"])), "n-soft")
            for name, _, words in found["columns"]:
                with div("n-row tight"):
                    line(name, "n-key n-wrap")
                    tag(words.removeprefix("published "), "accent")
            for name, size in found["files"]:
                line(texts.file_of(name, size), "n-soft n-small n-mono")


def _item(icon: str, what: str, says: str) -> None:
    with div("n-row tight").style("flex-wrap: nowrap; align-items: flex-start"):
        ui.icon(icon, size="18px").classes("n-soft")
        with div("n-col").style("gap: 0"):
            line(what, "n-wrap")
            line(says, "n-soft n-small")


# ---------------------------------------------------------------------- making it


def _make(session: Session, found: Mapping[str, Any] | None) -> None:
    job = watch(session, "release", partial(_start, session))
    if job is not None and job.running:
        return
    words = texts.MAKE if found is None else texts.MAKE_AGAIN
    fresh = found is not None and session.is_fresh("release")
    button(words, partial(_start, session), "line" if fresh else "main")


def _start(session: Session) -> None:
    number = session.kept["releases"] = session.kept.get("releases", 0) + 1
    for name in ("report", "save"):
        session.stop(name)
        session.jobs.pop(name, None)
        session.found.pop(name, None)
    session.judge("release", make_release, to=str(session.folder / f"release-{number}"))
    refresh()


def _figures(found: Mapping[str, Any]) -> None:
    holds = all(one["holds"] is True for one in found["verdicts"])
    with div("n-row top").style("gap: 40px"):
        figure(f"{found['records']:,}", texts.RECORDS_PUBLISHED)
        figure(f"{found['suppressed'] + found['dropped']:,}", texts.LEFT_OUT)
        ncp = found["losses"].get("ncp_loss")
        if ncp is not None:
            figure(f"{ncp:.3f}", texts.NCP_SAYS)
        words = texts.ALL_HOLD if holds else texts.NOT_ALL_HOLD
        figure(f"{sum(one['holds'] is True for one in found['verdicts'])}", words, "good" if holds else "bad")


# ---------------------------------------------------------------------- the officer's page and the attacks


def _report(session: Session, made: Mapping[str, Any]) -> None:
    with card(texts.REPORT, texts.REPORT_WHY):
        watch(session, "report", partial(_start_report, session, made))
        found = session.result("report")
        if found is None:
            job = session.jobs.get("report")
            if job is None:
                button(texts.REPORT_GO, partial(_start_report, session, made), "main")
            return
        with div("").props("data-attacks"):
            attacks([one for one in found["attacks"] if one["figure"] and one["after"] is not None])
        name = Path(found["page"]).name
        session.kept.setdefault("framed", {})[name] = Path(found["page"])
        frame = ui.element("iframe").classes("n-frame").props('sandbox="allow-scripts" data-report')
        frame.props(f'title="{texts.OFFICERS_REPORT}" src="{FRAMED}{name}"')


def _start_report(session: Session, made: Mapping[str, Any]) -> None:
    number = session.kept.get("releases", 0)
    target = session.folder / f"report-{number}.html"
    target.unlink(missing_ok=True)
    session.judge("report", make_report, release=made["path"], to=str(target))
    refresh()


# ---------------------------------------------------------------------- handing it over


def _save(session: Session, made: Mapping[str, Any]) -> None:
    with card(texts.HAND_OVER, texts.HAND_OVER_WHY):
        first = {"to": str(Path.cwd() / "release"), "format": "parquet", "key": "", "new": False}
        kept = session.kept.setdefault("save", first)  # what is filled in while the report is written stays

        def keep(name: str) -> Callable[[events.ValueChangeEventArguments], None]:
            return lambda event: kept.update({name: event.value})

        with div("n-row"):
            to = ui.input(texts.SAVE_TO, value=kept["to"], on_change=keep("to")).props("outlined dense")
            to.classes("n-grow")
            form = ui.select(["parquet", "csv"], value=kept["format"], label=texts.FORMAT, on_change=keep("format"))
            form.props("outlined dense").style("width: 130px")
        with div("n-row"):
            key = ui.input(texts.KEY_FILE, value=kept["key"], on_change=keep("key")).props("outlined dense")
            key.classes("n-grow")
            word = ui.input(texts.PASSPHRASE, password=True).props("outlined dense autocomplete=off")
            ui.checkbox(texts.NEW_KEY, value=kept["new"], on_change=keep("new"))

        def go() -> None:
            if kept["new"] and not (kept["key"] or "").strip():
                kept["key"] = str(Path.cwd() / DEFAULT_KEY)
            session.start(
                "save", save_release, release=made["path"], to=(kept["to"] or "").strip(), file_format=kept["format"],
                key=(kept["key"] or "").strip(), passphrase=word.value or None, new_key=bool(kept["new"]),
            )  # fmt: skip
            kept["new"] = False
            refresh()

        job = watch(session, "save", None)
        if job is None or not job.running:
            button(texts.SAVE, go, "main")
        found = session.result("save")
        if found is not None and (job is None or not job.running):
            hint = texts.SIGNED_HINT if found["signer"] else texts.UNSIGNED_HINT
            note(texts.saved(found["to"], found["signer"]), hint, "good")
