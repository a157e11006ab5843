"""Opening and verifying a release, for the recipient's and the auditor's pages."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from nicegui import ui

from noren_studio.files import Opener
from noren_studio.jobs import Failure, Job
from noren_studio.parts import TICK, button, card, div, failure, line, note, refresh, tag, watch
from noren_studio.parts import verdicts as verdict_table
from noren_studio.questions import open_release, release_of
from noren_studio.rebuild import Part, keyed
from noren_studio.session import Session, is_packed, is_release, shown
from noren_studio.texts import recipient as words
from noren_studio.work.releases import check_release, make_demo_release, read_release
from noren_studio.work.unpacking import unpack_release

OPEN, DEMO, VERIFY, UNPACK = "release open", "release demo", "release verify", "release unpack"
MISTRUST = ("ReleaseError", "SecretError")
"""Errors that say that what was read is not what was published."""
NOTHING_THERE = "this is not a release"


def opened(session: Session) -> dict[str, Any] | None:
    """Return the open release, read by a job; None if there is none, with the reason on the page."""
    _take(session)
    place = release_of(session)
    for name in (DEMO, UNPACK):
        if watch(session, name) is not None and session.jobs[name].running:
            return None
    if not place:
        opener(session)
        return None
    found = session.result(OPEN)
    if found is not None and found["place"] == place:
        return dict(found)
    if session.kept.get("opening") != place:
        _read(session, place)
    job = session.jobs[OPEN]
    if job.state == "failed" and job.failure is not None:
        _refused(job.failure)
    else:
        watch(session, OPEN, partial(_again, session, place))
    if not job.running:
        opener(session)
    return None


def _read(session: Session, place: str) -> None:
    session.kept["opening"] = place
    session.start(OPEN, read_release, place=place)
    session.start(VERIFY, check_release, place=place)


def _again(session: Session, place: str) -> None:
    _read(session, place)
    refresh()


def _take(session: Session) -> None:
    """Open a release that the command line, another page or the demo named, once."""
    given = session.kept.pop("release", None)
    if given and is_packed(given):
        _unpack(session, given)
        return
    packed = session.jobs.get(UNPACK)
    if packed is not None and packed.state == "done" and session.kept.get("taken packed") is not packed:
        session.kept["taken packed"] = packed
        given = packed.result["release"]
    demo = session.jobs.get(DEMO)
    if demo is not None and demo.state == "done" and session.kept.get("taken release") is not demo:
        session.kept["taken release"] = demo
        session.kept["demo release"] = demo.result
        given = demo.result["release"]
    if given and given != release_of(session):
        open_release(session, words.opened(shown(given)), given)


def _refused(found: Failure) -> None:
    """Explain a refusal: a changed release, or a wrong path."""
    forged = found.kind in MISTRUST and NOTHING_THERE not in found.message
    with card(words.NOT_TRUSTED if forged else words.NOT_OPENED) as box:
        box.props("data-refused")
        failure(found)


# ---------------------------------------------------------------------- choosing one


def opener(session: Session) -> None:
    """Show the ways to open a release: a path, a selected folder, an address, the demo."""
    opening = Opener(session, partial(begin, session), folders=True)
    with card(words.OPEN_TITLE, words.OPEN_WHY):
        with div("n-row"):
            opening.place(words.PLACE, words.PLACE_EXAMPLE)
            made = session.result("release")
            if made is not None and is_release(made["path"]):
                button(words.OF_SESSION, partial(begin, session, made["path"]))
            button(words.DEMO, partial(_demo, session))
        opening.upload(words.DROP_ZIP, accept=".zip")


def another(session: Session) -> None:
    """Show the same controls folded beside an open release. They stay open after a refusal, so that the input can be
    corrected.
    """
    tried = session.jobs.get(UNPACK)
    refused = tried is not None and tried.state == "failed"
    with keyed(ui.expansion(words.OTHER, value=refused).classes("n-card tight"), (words.OTHER, release_of(session))):
        opener(session)


def _unpack(session: Session, place: str) -> None:
    """Unpack a ZIP file into a directory of the session."""
    number = session.kept["unpacked"] = session.kept.get("unpacked", 0) + 1
    session.start(UNPACK, unpack_release, place=place, folder=str(session.folder), number=number)


def begin(session: Session, place: str) -> None:
    """Open a release, also one that was refused before."""
    if is_packed(place):
        _unpack(session, place)
        refresh()
        return
    session.kept.pop("opening", None)
    open_release(session, words.opened(shown(place)), place)
    refresh()


def _demo(session: Session) -> None:
    session.start(DEMO, make_demo_release, folder=str(session.folder))
    refresh()


# ---------------------------------------------------------------------- is it what it says?


def status(session: Session, found: dict[str, Any]) -> None:
    """Show whether it is verified and who signed it, with words if something is wrong.

    It is built anew by itself when the background job ends, so that nobody's click or half-typed word is lost.
    """

    def rebuild() -> None:
        part.refresh()

    part = Part(_status, session, found, rebuild)


def _status(session: Session, found: dict[str, Any], rebuild: Callable[[], Any]) -> None:
    job, result = session.jobs.get(VERIFY), session.result(VERIFY)
    fresh = result is not None and result["place"] == found["place"]
    with div("n-status").props("data-status"):
        if job is not None and job.running:
            ui.spinner(size="16px")
            tag(words.VERIFYING)
            _wait(job, rebuild)
        elif job is not None and job.state == "failed":
            tag(words.NOT_TRUSTED if job.failure and job.failure.kind in MISTRUST else words.VERIFY_STOPPED, "bad")
        elif fresh and result is not None:
            tag(*words.STATUS[result["holds"]])
        else:
            tag(words.VERIFY_STOPPED, "warn")
            button(words.VERIFY_AGAIN, partial(_verify, session, found["place"]), "plain")
        if found["signer"]:
            tag(words.signed(found["signer"]), "accent")
        else:
            tag(words.NOT_SIGNED)
    if job is not None and job.state == "failed" and job.failure is not None:
        failure(job.failure)
    elif fresh and result is not None and result["holds"] is not True:
        note(words.STATUS_SAYS[result["holds"]], tone=words.STATUS[result["holds"]][1])
        verdict_table(result["verdicts"])


def signature_words(found: dict[str, Any]) -> None:
    line(words.SIGNER if found["signer"] else words.UNSIGNED, "n-soft n-small")


def _verify(session: Session, place: str) -> None:
    session.start(VERIFY, check_release, place=place)
    refresh()


def _wait(job: Job, rebuild: Callable[[], Any]) -> None:
    """Rebuild a part of the page when a job without its own progress ends."""

    def look() -> None:
        if not job.running:
            timer.deactivate()
            rebuild()

    timer = ui.timer(TICK, look)
