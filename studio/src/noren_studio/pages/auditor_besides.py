"""The auditor's other inputs, and verification with them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from nicegui import ui

from noren.errors import NorenError
from noren_studio import texts
from noren_studio.pages.recipient_answer import python
from noren_studio.pages.release_place import MISTRUST
from noren_studio.parts import button, card, div, failure, line, note, refresh, say, table, take, title, watch
from noren_studio.parts import verdicts as verdict_table
from noren_studio.questions import AUDIT, ask, asked, public_place
from noren_studio.session import Session, shown
from noren_studio.texts import auditor as words
from noren_studio.texts import recipient as texts_recipient
from noren_studio.work.releases import check_release

VERIFY = "audit verify"
SHOW = 5
SECOND = "second"
"""The field that makes another attack possible."""
Found = Mapping[str, Any]


def besides(session: Session, found: Found) -> None:
    """Show fields for policy, original, key and second release, which may stay empty."""
    given = asked(session, AUDIT)
    with card(words.BESIDES, words.BESIDES_WHY) as box:
        box.props("data-besides")
        _shortcuts(session, found)
        with div("n-fields"):
            for name, (label, why) in words.FIELDS.items():
                path_field(session, name, label, why, given.get(name, ""))


def path_field(session: Session, name: str, label: str, why: str, now: str) -> None:
    """Show a field for a path or an address with its explanation."""
    with div("n-col tight n-wide"):
        with div("n-row tight").style("flex-wrap: nowrap"):
            field = ui.input(label, value=now).props("dense outlined autocomplete=off spellcheck=false")
            field.classes("n-grow").props(f'data-field="{name}"')

            def put(value: str) -> None:
                given = texts.set_to(label, shown(value) if value else "")
                ask(session, given, AUDIT, lambda a: a.update({name: value}), rebuild=name == SECOND)

            take(field, put)
            folders = name == SECOND
            browse = ui.button(icon="folder_open", on_click=partial(_pick, session, name, label, folders), color=None)
            browse.props("flat round dense")
            browse.props["aria-label"] = f"{texts.BROWSE}: {label}"
        line(why, "n-soft n-small")


async def _pick(session: Session, name: str, label: str, folders: bool) -> None:
    from noren_studio.files import pick_file

    path = await pick_file(session, folders=folders)
    if path is not None:
        ask(session, texts.set_to(label, path.name), AUDIT, lambda a: a.update({name: str(path)}))


def _shortcuts(session: Session, found: Found) -> None:
    """Show buttons for the table and policy that are open in the holder's steps."""
    demo = session.kept.get("demo release")
    with div("n-row"):
        if session.draft.opened and session.rules.policy is not None:
            button(words.TAKE_OPEN, partial(_take_open, session))
        if demo is not None and demo["release"] == found["place"]:
            given = {"original": demo["original"], "policy": demo["policy"]}
            button(words.TAKE_DEMO, lambda: ask(session, words.TAKE_DEMO, AUDIT, lambda a: a.update(given)))


def _take_open(session: Session) -> None:
    """Write the policy of the session to a file beside its table."""
    from noren.files import write_whole
    from noren.policy import text_for

    policy = session.rules.policy
    assert policy is not None
    target = session.folder / "audited-policy.toml"
    write_whole(target, text_for(policy, session.folder).encode())
    given = {"original": session.draft.place, "policy": str(target)}
    ask(session, words.TAKE_OPEN, AUDIT, lambda a: a.update(given))


# ---------------------------------------------------------------------- verify


def known(session: Session, *names: str) -> dict[str, str]:
    """Return the named inputs; raise if the original cannot be read."""
    given = {name: value for name, value in asked(session, AUDIT).items() if name in names and value}
    if "original" in given and not given.get("policy"):
        raise NorenError(words.NEEDS_POLICY, hint=words.NEEDS_POLICY_HINT)
    return given


def verifying(session: Session, found: Found) -> None:
    with card(words.VERIFY, words.VERIFY_WHY) as box:
        box.props("data-verify")
        begin = partial(_begin, session, found["place"])
        button(words.RUN_VERIFY, begin, "main")
        job = session.jobs.get(VERIFY)
        if job is not None and job.state == "failed" and job.failure is not None and job.failure.kind in MISTRUST:
            title(words.REFUSED, 3)
            failure(job.failure)
        else:
            watch(session, VERIFY, begin)
        result = session.result(VERIFY)
        if result is None or result["place"] != found["place"] or (job is not None and job.state == "failed"):
            return
        _verdicts(result)
        python(session, session.kept["verify script"], found["place"])


def _begin(session: Session, place: str) -> None:
    try:
        given = known(session, "policy", "original", "signer")
    except NorenError as error:
        say(error)
        return
    options = "".join(f", {name}={public_place(value)!r}" for name, value in given.items())
    session.kept["verify script"] = (
        f"import noren as nr\n\nverdicts = nr.verify({public_place(place)!r}{options})\nprint(verdicts.frame)\n"
    )
    session.start(VERIFY, check_release, place=place, show=SHOW, **given)
    refresh()


def _verdicts(result: Found) -> None:
    words_, tone = texts_recipient.STATUS[result["holds"]]
    note(f"{words_}: {words.decided(result['holds'], len(result['verdicts']))}", tone=tone)
    if result["asked_signer"]:
        line(words.SIGNED_AS_ASKED, "n-soft")
    if result["with_original"]:
        note(words.HOLDER_SIDE, tone="warn")
    if result["verdicts"]:
        with div("n-scroll"):
            verdict_table(result["verdicts"])
    for one in result["verdicts"]:
        if one["shortfalls"]:
            title(f"{one['model']}: {words.SHORT}", 3)
            heads = [*one["shortfalls"][0]["keys"], (texts.ROWS, "n"), texts.VERDICT_HEADS[4]]
            rows = [[*short["keys"].values(), f"{short['records']:,}", f"{short['achieved']:.4g}"]
                    for short in one["shortfalls"]]  # fmt: skip
            table(heads, rows)
