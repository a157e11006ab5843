"""Tables of other tools: measured in every model, and checked against a policy."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from nicegui import ui

from noren.errors import NorenError
from noren.results import visible
from noren_studio import texts
from noren_studio.files import Opener
from noren_studio.pages.auditor_besides import path_field
from noren_studio.pages.recipient_answer import python, to_view
from noren_studio.parts import button, card, div, figure, line, note, refresh, say, table, take, watch
from noren_studio.parts import verdicts as verdict_table
from noren_studio.questions import AUDIT, ask, asked, public_place
from noren_studio.session import Session, shown
from noren_studio.texts import auditor as words
from noren_studio.work.auditing import measure_table, read_foreign_table

READ, MEASURE = "audit table", "audit measure"
LARGEST_UPLOAD = 1 << 30
SUPPRESSED = "*"
Found = Mapping[str, Any]


def foreign(session: Session) -> None:
    """Open a table, choose its columns, measure."""
    place = asked(session, AUDIT).get("table", "")
    _opener(session, place)
    if not place:
        return
    if session.kept.get("reading table") != place:
        session.kept["reading table"] = place
        session.start(READ, read_foreign_table, place=place)
    watch(session, READ)
    found = session.result(READ)
    if found is None or found["place"] != place:
        return
    _meaning(session, found)
    watch(session, MEASURE, partial(_begin, session, place))
    result = session.result(MEASURE)
    if result is not None and result["place"] == place:
        _measured(session, result)
        to_view(session, "measured", f"measured {session.jobs[MEASURE].began}")


def _opener(session: Session, now: str) -> None:
    opener = Opener(session, partial(_open, session))
    with card(words.TABLE, words.TABLE_WHY) as box:
        box.props("data-table-opener")
        with div("n-row"):
            opener.place(words.TABLE_PLACE, words.TABLE_EXAMPLE, now)
        if not now:
            opener.upload(texts.DROP, LARGEST_UPLOAD)
            line(texts.UPLOADS_PRIVATE, "n-soft n-small")


def _open(session: Session, place: str) -> None:
    session.kept.pop("reading table", None)
    given = {"table": place, "quasi": [], "sensitive": []}
    ask(session, words.table_opened(shown(place)), AUDIT, lambda a: a.update(given))
    refresh()


# ---------------------------------------------------------------------- what its columns are


def _meaning(session: Session, found: Found) -> None:
    given = asked(session, AUDIT)
    with card(words.MEANING, words.MEANING_WHY) as box:
        box.props("data-meaning")
        if found["rows"]:
            with div("n-scroll"):
                table(found["columns"], found["rows"])
        with div("n-fields"):
            for name, label in (("quasi", words.QUASI), ("sensitive", words.SENSITIVE)):
                _columns(session, found, name, label, given)
            path_field(session, "policy", words.FIELDS["policy"][0], words.TABLE_POLICY_WHY, given.get("policy", ""))
            with div("n-col tight"):
                mark = ui.input(words.SUPPRESSED, value=given.get("suppressed", SUPPRESSED)).props("dense outlined")

                def put(value: str) -> None:
                    told = texts.set_to(words.SUPPRESSED, value)
                    ask(session, told, AUDIT, lambda a: a.update(suppressed=value), False)

                take(mark, put)
                line(words.SUPPRESSED_WHY, "n-soft n-small")
        button(words.MEASURE, partial(_begin, session, found["place"]), "main")


def _columns(session: Session, found: Found, name: str, label: str, given: Found) -> None:
    shown_names = {column: visible(column) for column in found["columns"]}
    now = [one for one in given.get(name, ()) if one in shown_names]

    def change(event: Any) -> None:
        chosen = list(event.value)
        ask(session, texts.set_to(label, chosen), AUDIT, lambda a: a.update({name: chosen}), False)

    select = ui.select(shown_names, label=label, value=now, multiple=True, with_input=True, on_change=change)
    select.props("dense outlined options-dense use-chips").classes("n-wide").props(f'data-menu="{name}"')


def _begin(session: Session, place: str) -> None:
    given = asked(session, AUDIT)
    quasi, sensitive, policy = list(given.get("quasi", ())), list(given.get("sensitive", ())), given.get("policy")
    if not policy and not quasi and not sensitive:
        say(NorenError(words.NAME_COLUMNS, hint=words.NAME_COLUMNS_HINT))
        return
    mark = given.get("suppressed", SUPPRESSED) or None
    session.kept["measure script"] = script(place, policy, quasi, sensitive, mark)
    session.start(
        MEASURE, measure_table, place=place, policy=policy or None, quasi=quasi, sensitive=sensitive, suppressed=mark,
        verify=bool(policy),
    )  # fmt: skip
    refresh()


def script(place: str, policy: str | None, quasi: list[str], sensitive: list[str], mark: str | None) -> str:
    """Return Python code that measures the same."""
    named = {"policy": policy or None, "quasi": quasi, "sensitive": sensitive}
    options = "".join(f", {name}={value!r}" for name, value in named.items() if value)
    options += "" if mark == SUPPRESSED else f", suppressed={mark!r}"
    return f"import noren as nr\n\nmeasures = nr.measure({public_place(place)!r}{options})\nprint(measures.frame)\n"


# ---------------------------------------------------------------------- what it achieves


def _measured(session: Session, result: Found) -> None:
    if result["verified"]:
        with card(words.JUDGED) as box:
            box.props("data-judged")
            verdict_table(result["verdicts"])
    with card(words.ACHIEVES, words.ACHIEVES_WHY) as box:
        box.props("data-measured")
        line(words.measured(result))
        if result["counted"] == "rows":
            note(words.OF_ROWS, tone="warn")
        _headlines(result)
        _figures(result)
        if result["skipped"]:
            with ui.expansion(words.SKIPPED).props("dense dense-toggle").classes("n-full"):
                for name, why in result["skipped"].items():
                    line(f"{name}: {why}", "n-soft n-small")
        python(session, session.kept.get("measure script", ""), result["place"])


def _headlines(result: Found) -> None:
    """Show the most requested figures."""
    wanted = {"k-anonymity": "k", "distinct-l-diversity": "l", "t-closeness": "t"}
    with div("n-row top").style("gap: 40px"):
        for model, parameter in wanted.items():
            first = next((one for one in result["measures"] if one["model"] == model), None)
            if first is not None and first["achieved"] is not None:
                figure(f"{parameter} = {first['achieved']:.3g}", f"{model}: {first['column']}")


def _figures(result: Found) -> None:
    rows = [
        (
            one["model"],
            one["column"],
            f"{one['parameter']} ({one['others']})" if one["others"] else one["parameter"],
            "∞" if one["achieved"] is None else f"{one['achieved']:.4g}",
            words.MORE if one["higher_is_safer"] else words.LESS,
            one["statement"],
        )
        for one in result["measures"]
    ]
    with div("n-scroll"):
        table(words.MEASURE_HEADS, rows)
