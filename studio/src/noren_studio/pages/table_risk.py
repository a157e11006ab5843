"""The risk of the raw table: who is alone, with which columns."""

from __future__ import annotations

from functools import partial
from typing import Any

from nicegui import ui

from noren_studio import texts
from noren_studio.parts import button, card, div, figure, line, meter, note, table, text, watch
from noren_studio.session import Session
from noren_studio.view import refresh
from noren_studio.work.risk import raw_risk as work


def start(session: Session) -> None:
    session.start("risk", work, place=session.draft.place, policy=dict(session.draft.policy), base=str(session.folder))


def _begin(session: Session) -> None:
    start(session)
    refresh()


def raw_risk(session: Session) -> None:
    """What anybody who knows some columns of a person finds in the table as it is."""
    with card(texts.RISK, texts.RISK_WHY):
        if not session.rules.policy:
            note(texts.RISK_NEEDS_POLICY, tone="warn")
            return
        if "risk" not in session.jobs and not session.table["sampled"]:
            start(session)
        job = watch(session, "risk", partial(_begin, session))
        found = session.result("risk")
        if found is None:
            if job is None:
                button(texts.RISK_GO, partial(_begin, session), "main")
            return
        if not session.is_fresh("risk") and (job is None or not job.running):
            with div("n-row"):
                note(texts.STALE)
                button(texts.COMPUTE_AGAIN, partial(_begin, session))
        _figures(found)


def _figures(found: dict[str, Any]) -> None:
    alone = found["unique_share"]
    with div("n-row top").style("gap: 40px"):
        figure(f"{found['uniques']:,}", texts.alone_with_all(alone), "bad" if found["uniques"] else "good")
        figure(f"{found['smallest']:,}", texts.SMALLEST_K)
        figure(f"{found['mean_risk']:.1%}", texts.MEAN_RISK)
    line(texts.risk_sentence(found["uniques"], found["people"], found["quasi"]), "n-why")
    with div("n-row top even"):
        with div("n-col tight"):
            text(texts.LOOK_ALIKE, tag="h3")
            with ui.element("table").classes("n-table"), ui.element("tbody"):
                for words, people, _ in found["looks"]:
                    with ui.element("tr"):
                        text(words, tag="td").style("width: 90px")
                        with ui.element("td"):
                            meter(people / max(1, found["people"]), texts.people_share(words, people))
                        text(f"{people:,}", "n", tag="td").style("width: 80px")
        with div("n-col tight"):
            text(texts.MOST_TELLING, tag="h3")
            rows = [[" + ".join(columns), f"{people:,}", f"{share:.1%}"] for columns, people, share in found["top"]]
            table(texts.TELLING_HEADS, rows, (1, 2))
    for remark in found["notes"]:
        line(remark, "n-soft n-small")
