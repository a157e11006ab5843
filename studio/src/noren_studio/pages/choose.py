"""Step 4, the choice: candidates on a map of risk and loss, in a table, and compared in pairs."""

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
from noren_studio.pages.lattice import lattice_card
from noren_studio.parts import bars, button, card, div, edit, line, note, refresh, say, table, tag, text, watch
from noren_studio.rebuild import keyed
from noren_studio.session import Session
from noren_studio.theme import chart_look, tip, tip_look, tokens
from noren_studio.work.choosing import RECORDS, compare_candidates, look_at

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
        line(texts.compared_some(RECORDS), "n-soft n-small")
    if good:
        _map(session, good, found["raw"])
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
        say(error)
        return
    session.kept.pop("marked", None)
    session.judge("compare", compare_candidates, grid=swept, suppression=session.kept.get("share"))
    refresh()


# ---------------------------------------------------------------------- map and table


def marked(session: Session) -> list[str]:
    """Return the candidates that are compared."""
    found: list[str] = session.kept.setdefault("marked", [])
    return found


def _mark(session: Session, called: str) -> None:
    now = marked(session)
    session.kept["marked"] = [one for one in now if one != called] if called in now else [*now, called][-MOST_MARKED:]
    refresh()


def _map(session: Session, good: Sequence[Mapping[str, Any]], raw: float | None) -> None:
    """Show the map with risk to the right and loss upwards: the best candidates are at the lower left."""
    shown = [{**one, "adopted": is_adopted(session, one["called"])} for one in good if one["error"] is not None]
    with card(texts.MAP, texts.MAP_WHY):
        options = map_options(shown, marked(session), session.dark, raw)
        chart = ui.echart(options, on_point_click=partial(_clicked, session))
        chart.style("height: 360px; width: 100%").props("role=img data-map").props(f'aria-label="{texts.MAP}"')
        line(texts.MAP_KEY, "n-soft n-small")


def _clicked(session: Session, event: events.EChartPointClickEventArguments) -> None:
    if event.series_index == 1:
        _mark(session, event.name)


def map_options(
    shown: Sequence[Mapping[str, Any]], now: Sequence[str], dark: bool | None, raw: float | None = None
) -> dict[str, Any]:
    """Return the chart options in percent: the frontier, a point for each candidate, the raw table."""
    found = tokens(dark)
    front = sorted((one for one in shown if one["front"]), key=lambda one: one["risk"])
    axis = {"nameLocation": "middle", "nameGap": 34, "scale": True, "nameTextStyle": {"color": found["ink"]},
            "axisLabel": {"color": found["soft"], "formatter": "{value}%"},
            "splitLine": {"lineStyle": {"color": found["rule"]}}}  # fmt: skip
    label = {"show": True, "position": "right", "color": found["ink"], "fontWeight": 600,
             "textBorderColor": found["surface"], "textBorderWidth": 3}  # fmt: skip
    points = [
        {
            "name": one["called"],
            "value": [round(100 * one["risk"], 3), round(100 * one["error"], 3)],
            "symbol": "diamond" if one.get("adopted") else "rect" if one.get("drafted") else "circle",
            "symbolSize": 18 if one["called"] in now or one.get("adopted") else 12,
            "itemStyle": {
                "color": found["bar-2"] if one["called"] in now else found["bar"],
                "borderColor": found["ink"],
                "borderWidth": 2 if one["chosen"] else 0,
            },
            "label": {**label, "formatter": str(one["number"])},
            "tooltip": {"formatter": tip(texts.tip(one))},
        }
        for one in shown
    ]
    untouched = [] if raw is None else [{"name": texts.RAW, "value": [round(100 * raw, 3), 0]}]
    return {
        **chart_look(dark),
        "tooltip": tip_look(dark),
        "grid": {"left": 70, "right": 90, "top": 24, "bottom": 52},
        "xAxis": {"type": "value", "name": texts.RISK_AXIS, **axis},
        "yAxis": {"type": "value", "name": texts.LOSS_AXIS, **axis, "nameGap": 50},
        "series": [
            {"type": "line", "symbol": "none", "silent": True,
             "data": [[100 * one["risk"], 100 * one["error"]] for one in front],
             "lineStyle": {"type": "dashed", "color": found["soft"], "width": 1.2}},
            {"type": "scatter", "data": points, "labelLayout": {"moveOverlap": "shiftY"}},
            {"type": "scatter", "data": untouched, "symbol": "triangle", "symbolSize": 13, "silent": True,
             "itemStyle": {"color": found["soft"]}, "label": {**label, "formatter": "{b}", "position": "top"}},
        ],
    }  # fmt: skip


def _table(session: Session, good: Sequence[Mapping[str, Any]]) -> None:
    rows = [
        (
            partial(_tick, session, one["called"]),
            one["number"],
            partial(_name, session, one),
            *texts.candidate_figures(one),
            partial(
                button, texts.ADOPT, partial(choose, session, one["called"], one["method"], one["setting"]), "plain"
            ),
        )
        for one in good
    ]
    with card(texts.CANDIDATES, texts.CANDIDATES_WHY), div("n-scroll"):
        table(texts.CANDIDATE_HEADS, rows, [one["called"] for one in good], marked(session))
        if session.kept.get("chosen") == session.draft.policy.get("method"):
            ui.link(texts.NEXT_RELEASE, "/release")


def is_adopted(session: Session, called: str) -> bool:
    """Return whether the policy still has the adopted methods of this candidate."""
    return session.kept.get("adopted") == called and session.kept.get("chosen") == session.draft.policy.get("method")


def _tick(session: Session, called: str) -> None:
    box = ui.checkbox(value=called in marked(session), on_change=lambda: _mark(session, called)).props("dense")
    box.props["aria-label"] = visible(texts.side_by_side_with(called))


def _name(session: Session, one: Mapping[str, Any]) -> None:
    with div("n-row tight"):
        line(one["called"])
        if is_adopted(session, one["called"]):
            tag(texts.ADOPTED, "accent")
        if one["drafted"]:
            tag(texts.DRAFT)
        if one["chosen"]:
            tag(texts.BEST, "good")
        elif one["front"]:
            tag(texts.FRONT, "accent")


def choose(session: Session, called: str, method: Any, setting: Mapping[str, float]) -> None:
    """Write a candidate into the policy."""
    edit(
        session, texts.set_to(texts.METHOD, called), partial(adopt, method=method, setting=dict(setting)), rebuild=False
    )
    session.kept["chosen"], session.kept["adopted"] = session.draft.policy["method"], called
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


# ---------------------------------------------------------------------- two candidates beside each other


BARS = 16


def pair_card(session: Session, good: Sequence[Mapping[str, Any]]) -> None:
    """Show how the ticked candidates would be published."""
    ticked = [one for one in good if one["called"] in session.kept.get("marked", [])]
    with card(texts.PAIR, texts.PAIR_WHY):
        if not ticked:
            line(texts.PAIR_TICK, "n-soft")
            return
        names = [one["called"] for one in ticked]
        watch(session, "pair", partial(_start_pair, session, ticked))
        found = session.result("pair")
        if found is None or session.kept.get("pair") != names:
            if not session.runs("pair"):
                look = button(texts.pair_go(names), partial(_start_pair, session, ticked), "main")
                keyed(look, "look")  # it is about what is ticked: a click between a tick and the page after it counts
            return
        _show_pair(names, found)


def _start_pair(session: Session, ticked: Sequence[Mapping[str, Any]]) -> None:
    session.kept["pair"] = [one["called"] for one in ticked]
    methods, settings = ([one[name] for one in ticked] for name in ("method", "setting"))
    session.judge("pair", look_at, methods=methods, settings=settings)
    refresh()


def _show_pair(names: Sequence[str], found: Mapping[str, Any]) -> None:
    original, candidates = found["original"], found["candidates"]
    text(texts.DISTRIBUTIONS, tag="h3")
    heads: list[str | tuple[str, str]] = [("", "n-key"), texts.ORIGINAL, *names]
    rows = []
    for column, before in original["before"].items():
        labels = [label for label, _ in before[:BARS]]
        after = [partial(_distribution, column, one["after"].get(column), labels, "two") for one in candidates]
        rows.append((column, partial(_distribution, column, before, labels), *after))
    with div("n-scroll"):
        table(heads, rows)
    with div("n-row top even"):
        for name, one in zip(names, candidates, strict=True):
            with div("n-col tight"):
                text(texts.classes_of(name), tag="h3")
                table(texts.SIZE_HEADS, [[words, f"{people:,}"] for words, people in one["sizes"] if people])
    text(texts.EXCERPT, tag="h3")
    _excerpt(texts.ORIGINAL, original)
    for name, one in zip(names, candidates, strict=True):
        _excerpt(name, one)


def _distribution(
    column: str, counts: Sequence[Sequence[Any]] | None, labels: Sequence[str], classes: str = ""
) -> None:
    """Show the distribution of a column, with values in the order of the original."""
    if not counts:
        line(texts.NO_ESTIMATE, "n-soft n-small")
        return
    held = {str(label): float(count) for label, count in counts}
    some = [count for count in held.values() if count > 0]
    same = [held[label] for label in labels if label in held]
    heights = same if len(same) >= len(labels) / 2 else some[:BARS]
    bars(heights, classes, described=texts.histogram(column, ""))
    line(texts.values_shown(len(some)), "n-soft n-small")


def _excerpt(name: str, found: Mapping[str, Any]) -> None:
    line(name, "n-soft n-small")
    with div("n-scroll"):
        table(found["columns"], found["rows"])
