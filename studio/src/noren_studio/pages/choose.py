"""Step 4, the choice: candidates on a map of risk and loss, in a table, two of them side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from nicegui import events, ui

from noren.cli import read_grid
from noren.errors import NorenError
from noren.results import visible
from noren_studio import texts
from noren_studio.edits import adopt
from noren_studio.pages.choose_pair import pair_card
from noren_studio.pages.lattice import lattice_card
from noren_studio.parts import button, card, div, edit, line, note, tag, text, watch
from noren_studio.rebuild import keyed
from noren_studio.session import Session
from noren_studio.theme import chart_look, tip, tip_look, tokens
from noren_studio.view import refresh
from noren_studio.work.choosing import compare_candidates

MOST_MARKED = 2


def build(session: Session) -> None:
    if session.rules.policy is None:
        note(texts.RISK_NEEDS_POLICY, tone="warn")
        return
    _ask(session)
    watch(session, "compare", partial(_start, session))
    found = session.result("compare")
    if found is None:
        return
    if not session.is_fresh("compare") and session.kept.get("chosen") != session.draft.policy.get("method"):
        note(texts.STALE)
    good = [one for one in found["candidates"] if one["holds"]]
    if not found["whole"]:
        line(texts.COMPARED_SOME, "n-soft n-small")
    if good:
        _map(session, good)
        _table(session, good)
        pair_card(session, good)
    _failed([one for one in found["candidates"] if not one["holds"]])
    lattice_card(session)


def _ask(session: Session) -> None:
    with card(texts.COMPARE, texts.COMPARE_WHY), div("n-row"):
        grid = ui.input(texts.GRID, value=session.kept.get("grid", ""), placeholder="k=3,5,10").props("outlined dense")
        grid.style("min-width: 300px")
        share = ui.number(texts.SUPPRESSION, value=session.kept.get("share"), min=0, max=0.99, step=0.01, format="%g")
        share.props("outlined dense").style("width: 300px")

        def go() -> None:
            session.kept["grid"], session.kept["share"] = grid.value or "", share.value
            _start(session)

        button(texts.COMPARE_GO, go, "main")


def _start(session: Session) -> None:
    parts = [part for part in str(session.kept.get("grid", "")).replace(";", " ").split() if part]
    try:
        swept = read_grid(parts)
    except NorenError as error:
        ui.notify(visible(f"{error.message} {error.hint or ''}"), type="negative")
        return
    draft = session.draft
    session.kept.pop("marked", None)
    session.start(
        "compare", compare_candidates, place=draft.place, policy=dict(draft.policy), base=str(session.folder),
        grid=swept, suppression=session.kept.get("share"),
    )  # fmt: skip
    refresh()


# ---------------------------------------------------------------------- map and table


def marked(session: Session) -> list[str]:
    """The candidates that are compared side by side."""
    found: list[str] = session.kept.setdefault("marked", [])
    return found


def _mark(session: Session, called: str) -> None:
    now = marked(session)
    session.kept["marked"] = [one for one in now if one != called] if called in now else [*now, called][-MOST_MARKED:]
    refresh()


def _map(session: Session, good: Sequence[Mapping[str, Any]]) -> None:
    """Risk to the right, loss upwards: the best candidates are at the lower left."""
    shown = [one for one in good if one["error"] is not None]
    with card(texts.MAP, texts.MAP_WHY):
        chart = ui.echart(
            map_options(shown, marked(session), session.dark), on_point_click=partial(_clicked, session, shown)
        )
        chart.style("height: 360px; width: 100%").props("role=img data-map").props(f'aria-label="{texts.MAP}"')


def _clicked(
    session: Session, shown: Sequence[Mapping[str, Any]], event: events.EChartPointClickEventArguments
) -> None:
    if event.series_index == 1 and event.name in {one["called"] for one in shown}:
        _mark(session, event.name)


def map_options(shown: Sequence[Mapping[str, Any]], now: Sequence[str], dark: bool | None) -> dict[str, Any]:
    """The chart: a line through those that no other beats in both, and a point for each."""
    found = tokens(dark)
    front = sorted((one for one in shown if one["front"]), key=lambda one: one["risk"])
    axis = {"nameLocation": "middle", "nameGap": 34, "scale": True, "axisLabel": {"color": found["soft"]},
            "nameTextStyle": {"color": found["ink"]}, "splitLine": {"lineStyle": {"color": found["rule"]}}}  # fmt: skip
    points = [
        {
            "name": one["called"],
            "value": [round(one["risk"], 5), round(one["error"], 5)],
            "symbolSize": 17 if one["called"] in now else 12,
            "itemStyle": {
                "color": found["bar-2"] if one["called"] in now else found["bar"],
                "borderColor": found["ink"],
                "borderWidth": 2 if one["chosen"] else 0,
            },
            "label": {
                "show": one["front"] or one["called"] in now,
                "formatter": "{b}",
                "position": "right",
                "color": found["ink"],
            },
            "tooltip": {"formatter": tip(texts.tip(one))},
        }
        for one in shown
    ]
    return {
        **chart_look(dark),
        "tooltip": tip_look(dark),
        "grid": {"left": 64, "right": 150, "top": 24, "bottom": 52},
        "xAxis": {"type": "value", "name": texts.RISK_AXIS, **axis},
        "yAxis": {"type": "value", "name": texts.LOSS_AXIS, **axis, "nameGap": 46},
        "series": [
            {"type": "line", "data": [[one["risk"], one["error"]] for one in front], "symbol": "none", "silent": True,
             "lineStyle": {"type": "dashed", "color": found["soft"], "width": 1.2}},
            {"type": "scatter", "data": points, "labelLayout": {"hideOverlap": True}},
        ],
    }  # fmt: skip


def _table(session: Session, good: Sequence[Mapping[str, Any]]) -> None:
    now = marked(session)
    with card(texts.CANDIDATES, texts.CANDIDATES_WHY), div("n-scroll"), ui.element("table").classes("n-table"):
        with ui.element("thead"), ui.element("tr"):
            for head, classes in texts.CANDIDATE_HEADS:
                text(head, classes, tag="th").props("scope=col")
        with ui.element("tbody"):
            for one in good:
                row = ui.element("tr").classes("on" if one["called"] in now else "")
                with keyed(row, one["called"]):
                    with ui.element("td"):
                        box = ui.checkbox(value=one["called"] in now).props("dense")
                        box.on_value_change(partial(_mark_event, session, one["called"]))
                        box._props["aria-label"] = visible(texts.side_by_side_with(one["called"]))
                    with ui.element("td"), div("n-row tight"):
                        line(one["called"])
                        if one["chosen"]:
                            tag(texts.BEST, "good")
                        elif one["front"]:
                            tag(texts.FRONT, "accent")
                    for figure in texts.candidate_figures(one):
                        text(figure, "n", tag="td")
                    with ui.element("td"):
                        button(
                            texts.ADOPT, partial(choose, session, one["called"], one["method"], one["setting"]), "plain"
                        )


def _mark_event(session: Session, called: str, event: events.ValueChangeEventArguments) -> None:
    _mark(session, called)


def choose(session: Session, called: str, method: Any, setting: Mapping[str, float]) -> None:
    """Write a candidate into the policy."""
    edit(session, texts.chose(called), partial(adopt, method=method, setting=dict(setting)), rebuild=False)
    session.kept["chosen"] = session.draft.policy["method"]
    ui.notify(visible(texts.chosen_says(called)), type="positive")
    refresh()


def _failed(failed: Sequence[Mapping[str, Any]]) -> None:
    if not failed:
        return
    with ui.expansion(texts.failed(len(failed))).classes("n-card tight"):
        for one in failed:
            with div("n-col tight"):
                line(one["called"], "n-key")
                line(one["failure"], "n-soft n-small")
