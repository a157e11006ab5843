"""Attacks: the adversary's knowledge, a form of options, and the figures before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nicegui import ui

from noren.errors import NorenError
from noren.results import visible
from noren_studio import texts
from noren_studio.forms import fields_of, form
from noren_studio.pages.auditor_besides import known
from noren_studio.pages.recipient_answer import python, shown_picture, to_view
from noren_studio.parts import attacks as table_of_attacks
from noren_studio.parts import button, card, div, line, note, refresh, say, table, tag, take, watch
from noren_studio.questions import AUDIT, ask, asked, public_place
from noren_studio.rebuild import Part
from noren_studio.session import Session, mark_of
from noren_studio.texts import auditor as words
from noren_studio.texts import recipient as texts_recipient
from noren_studio.work.auditing import attack_release, read_attacks

if TYPE_CHECKING:
    from noren.audit import Attack


REASONS, ATTACK = "audit reasons", "audit attacks"
SLOW = ("predictable",)
"""Attacks that take long and are ticked by hand."""
BESIDE = {"intersection": ("other", "later")}
"""Fields that the card above asks for."""
Found = Mapping[str, Any]


def attacking(session: Session, found: Found) -> None:
    """Show which attacks apply, which run, and their results."""
    with card(words.ATTACKS, words.ATTACKS_WHY) as box:
        box.props("data-attacks")
        if session.kept.get("looked at") != found["place"]:
            session.kept["looked at"] = found["place"]
            session.start(REASONS, read_attacks, place=found["place"])
        reasons = session.result(REASONS)
        watch(session, REASONS)
        if reasons is None or reasons["place"] != found["place"]:
            return
        _choices(session, found, reasons["reasons"])
    watch(session, ATTACK, partial(_begin, session, found, reasons["reasons"]))
    result = session.result(ATTACK)
    if result is not None and result["place"] == found["place"]:
        with card(words.GAINS) as box:
            box.props("data-gains")
            _download(result)
            gains(session, result)
            python(session, session.kept.get("attack script", ""), found["place"])
        to_view(session, "gains", result["mark"])


def _download(result: Found) -> None:
    csv = Path(result["csv"])
    made = button(
        texts_recipient.CSV,
        lambda: ui.download.content(csv.read_bytes(), "noren-attacks.csv", "text/csv"),
        icon="download",
    )
    made.props["aria-label"] = texts_recipient.download_of(texts_recipient.CSV)


def why_not(session: Session, name: str, reasons: Mapping[str, str | None]) -> str | None:
    """Explain why an attack does not apply, or that it needs a second release."""
    given = asked(session, AUDIT)
    return None if name == "intersection" and given.get("second") else reasons[name]


def _ticked(session: Session, reasons: Mapping[str, str | None]) -> list[str]:
    chosen = asked(session, AUDIT).get("attacks")
    able = [name for name in reasons if why_not(session, name, reasons) is None]
    return [name for name in able if (name in chosen if chosen is not None else name not in SLOW)]


def _choices(session: Session, found: Found, reasons: Mapping[str, str | None]) -> None:
    from noren.audit import ATTACKS

    ticked = _ticked(session, reasons)
    with div("n-row"):
        button(words.RUN_ATTACKS, partial(_begin, session, found, reasons), "main")
        button(words.ALL, partial(_all, session, list(reasons)), "plain")
        button(words.NO, partial(_all, session, []), "plain")
    able = {name: kind for name, kind in ATTACKS.items() if why_not(session, name, reasons) is None}
    with div("n-attacks"):
        for name, kind in able.items():
            with div("n-attack").props(f'data-attack="{name}"'):
                _choice(session, name, kind, name in ticked, reasons)
    others = [name for name in ATTACKS if name not in able]
    if others:
        with ui.expansion(words.not_here(len(others))).props("dense dense-toggle").classes("n-full"):
            for name in others:
                line(f"{name}: {reasons[name]}. {words.KNOWS} {ATTACKS[name].adversary}.", "n-soft n-small")


def _choice(session: Session, name: str, kind: type[Attack], on: bool, reasons: Mapping[str, str | None]) -> None:
    ui.checkbox(name, value=on, on_change=lambda e: _tick(session, name, bool(e.value), reasons)).props("dense")
    line(f"{words.KNOWS} {kind.adversary}.", "n-small")
    line(f"{words.MEASURED}: {kind.success}.", "n-soft n-small")
    if any(field not in ("name", *BESIDE.get(name, ())) for field in kind.model_fields):
        with ui.expansion(words.OPTIONS).props("dense dense-toggle").classes("n-full n-options"):
            options(session, name, kind)


def _tick(session: Session, name: str, on: bool, reasons: Mapping[str, str | None]) -> None:
    now = _ticked(session, reasons)
    chosen = [*now, name] if on else [one for one in now if one != name]
    ask(session, texts.set_to(words.ATTACKS, chosen), AUDIT, lambda a: a.update(attacks=chosen), False)


def _all(session: Session, chosen: list[str]) -> None:
    ask(session, texts.set_to(words.ATTACKS, chosen), AUDIT, lambda a: a.update(attacks=chosen))


# ---------------------------------------------------------------------- options


def options(session: Session, name: str, kind: type[Attack]) -> None:
    """Show the fields of an attack's options."""
    given = asked(session, AUDIT).get("options", {}).get(name, {})

    def change(field: str, value: Any) -> None:
        def put(audit: dict[str, Any]) -> None:
            own = audit.setdefault("options", {}).setdefault(name, {})
            if value in (None, ""):
                own.pop(field, None)
            else:
                own[field] = value

        ask(session, texts.set_to(name, value, field), AUDIT, put, False)

    hidden = ("name", *BESIDE.get(name, ()))
    with div("n-col"):
        form(kind, given, change, hidden)
        simple = fields_of(kind, hidden)
        for field, about in kind.model_fields.items():
            if field not in (*hidden, *simple):
                _typed(field, str(given.get(field, "")), about.description or "", _listed(about.annotation), change)


def _listed(annotation: Any) -> bool:
    return "tuple" in str(annotation) or "list" in str(annotation)


def _typed(name: str, now: str, says: str, listed: bool, change: Any) -> None:
    with div("n-col tight").style("max-width: 520px"):
        field = ui.input(name, value=now).props("dense outlined spellcheck=false").props(f'data-field="{name}"')
        take(field, partial(change, name))
        line(f"{says} ({words.SEVERAL})" if listed else says, "n-soft n-small")


def given_options(session: Session, name: str) -> dict[str, Any]:
    """Return the options of an attack for the library."""
    from noren.audit import ATTACKS

    audit = asked(session, AUDIT)
    out = dict(audit.get("options", {}).get(name, {}))
    for field, value in out.items():
        if isinstance(value, str) and _listed(ATTACKS[name].model_fields[field].annotation):
            out[field] = [part.strip() for part in value.split(",") if part.strip()]
    if name == "intersection":
        for field, source in (("other", "second"), ("later", "second_original")):
            if audit.get(source):
                out[field] = [audit[source]]
    return out


# ---------------------------------------------------------------------- running


def _begin(session: Session, found: Found, reasons: Mapping[str, str | None]) -> None:
    place, chosen = found["place"], _ticked(session, reasons)
    try:
        given = known(session, "policy", "original")
        if not chosen:
            raise NorenError(words.NONE_CHOSEN, hint=words.NONE_CHOSEN_HINT)
    except NorenError as error:
        say(error)
        return
    if "original" not in given:
        given = {}
    attacks = {name: given_options(session, name) for name in chosen}
    mark = mark_of({"place": place, "attacks": attacks, **given})
    session.kept["attack script"] = script(place, attacks, given)
    session.start(ATTACK, attack_release, place=place, attacks=attacks, folder=str(session.folder), mark=mark, **given)
    refresh()


def script(place: str, attacks: Mapping[str, Mapping[str, Any]], given: Mapping[str, str]) -> str:
    """Return Python code that runs the same attacks."""
    besides = "".join(f", {name}={public_place(value)!r}" for name, value in given.items())
    lines = ["import noren as nr", "", f"release = nr.open_release({public_place(place)!r})"]
    for name, own in attacks.items():
        more = "".join(f", {field}={value!r}" for field, value in own.items())
        lines.append(f"print(nr.attack(release, {name!r}{besides}{more}).frame)")
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------------- what they gained


def gains(session: Session, result: Found) -> None:
    """Show all results, the largest gain first."""
    if result["run"] < result["of"]:
        line(words.run_of(result["run"], result["of"]), "n-soft")
    if result["holder_only"]:
        note(words.HOLDER_SIDE, tone="warn")
    if result["results"]:
        table_of_attacks(result["results"])
    for name, reason in result["skipped"].items():
        line(f"{words.NOT_RUN}: {name}: {reason}", "n-soft n-small")
    if result["results"]:
        _closer(session, result["mark"], result["results"])


def _closer(session: Session, mark: str, results: Sequence[Found]) -> None:
    """Show one result in full, by default the one with the largest gain."""
    of, now = session.kept.get("looked at closely", ("", 0))
    now = now if of == mark else 0

    def show(event: Any) -> None:
        session.kept["looked at closely"] = mark, event.value
        details.refresh(results[event.value])

    names = {at: visible(f"{one['attack']}: {', '.join(one['target'])}") for at, one in enumerate(results)}
    select = ui.select(names, value=now, label=words.CLOSER, on_change=show)
    select.props("dense outlined options-dense data-closer").style("max-width: 420px")
    details = Part(_details, results[now])


def _details(one: Found) -> None:
    with div("n-col").props("data-details"):
        if one["holder_only"]:
            tag(words.HOLDER_ONLY, "warn").style("align-self: flex-start")
        line(f"{words.KNOWS} {one['adversary']}.", "n-why")
        shown_picture(one["picture"], words.chart_of(one["attack"], one["target"]))
        heads: list[str | tuple[str, str]] = ["", *((head, "n") for head in (words.PEOPLE, *one["heads"]))]
        rows = [
            [head, "-" if count is None else f"{count:,}", *map(_figure, figures)]
            for head, count, *figures in one["lines"]
        ]
        with div("n-scroll"):
            table(heads, rows)
        for remark in one["notes"]:
            line(f"{remark}.", "n-soft n-small")


def _figure(told: tuple[float | None, bool]) -> str:
    value, share = told
    if value is None:
        return "-"
    return f"{value:.1%}" if share else f"{value:,.4g}"
