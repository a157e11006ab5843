"""Incognito's lattice as a picture: one point for each combination of levels; a click adopts it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from nicegui import events, ui

from noren_studio import texts
from noren_studio.edits import at_levels
from noren_studio.parts import button, card, div, line, refresh, table, watch
from noren_studio.session import Session
from noren_studio.theme import chart_look, tip, tip_look, tokens
from noren_studio.work.choosing import find_levels

MOST_LISTED = 5
"""Vectors that stand in words below the picture, for those who use no pointer; the rest lose more."""


def lattice_card(session: Session) -> None:
    with card(texts.LATTICE, texts.LATTICE_WHY):
        watch(session, "levels", partial(_start, session))
        found = session.result("levels")
        if found is None or session.kept.get("levels") != _about(session):
            if not session.runs("levels"):
                button(texts.LATTICE_GO, partial(_start, session))
            return
        vectors = found["vectors"]
        if not vectors:
            line(texts.LATTICE_NONE, "n-soft")
            return
        taken = _taken(session, vectors)
        chart = ui.echart(
            lattice_options(vectors, session.dark, taken), on_point_click=partial(_clicked, session, vectors)
        )
        chart.style("height: 380px; width: 100%").props("role=img data-lattice").props(f'aria-label="{texts.LATTICE}"')
        line(texts.lattice_order(list(vectors[0]["levels"])), "n-soft n-small")
        _listed(session, vectors, taken)


def _about(session: Session) -> tuple[str, Mapping[str, Any]]:
    """Return everything except the levels that the picture depends on."""
    draft = session.draft
    return draft.place, {**draft.policy, "method": at_levels(draft.policy, None)}


def _start(session: Session) -> None:
    session.kept["levels"] = _about(session)
    session.found.pop("levels", None)
    session.judge("levels", find_levels)
    refresh()


def _taken(session: Session, vectors: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the levels in the policy."""
    policy = session.draft.policy
    return next(
        (at for at, one in enumerate(vectors) if at_levels(policy, one["levels"]) == policy.get("method")), None
    )


def _listed(session: Session, vectors: Sequence[Mapping[str, Any]], taken: int | None) -> None:
    names = [texts.vector(one["levels"]) for one in vectors[:MOST_LISTED]]
    rows = [
        (
            name,
            *texts.levels_figures(one),
            partial(button, texts.ADOPT, partial(_take, session, one["levels"]), "plain"),
        )
        for name, one in zip(names, vectors, strict=False)
    ]
    with div("n-scroll"):
        table(texts.LEVELS_HEADS, rows, names, () if taken is None else (texts.vector(vectors[taken]["levels"]),))


def _clicked(
    session: Session, vectors: Sequence[Mapping[str, Any]], event: events.EChartPointClickEventArguments
) -> None:
    if event.series_type == "graph" and event.data_type == "node":
        _take(session, vectors[event.data_index]["levels"])


def _take(session: Session, levels: Mapping[str, int]) -> None:
    from noren_studio.pages.choose import choose

    choose(session, f"incognito, {texts.vector(levels)}", at_levels(session.draft.policy, levels), {})


def lattice_options(vectors: Sequence[Mapping[str, Any]], dark: bool | None, taken: int | None) -> dict[str, Any]:
    """Arrange combinations by the sum of their levels, with edges for one step."""
    found = tokens(dark)
    rows: dict[int, list[int]] = {}
    for at, one in enumerate(vectors):
        rows.setdefault(sum(one["levels"].values()), []).append(at)
    widest = max(map(len, rows.values()))
    worst, best = max(one["loss"] for one in vectors), min(one["loss"] for one in vectors)
    nodes = []
    for at, one in enumerate(vectors):
        height = sum(one["levels"].values())
        row = rows[height]
        share = (one["loss"] - best) / ((worst - best) or 1)
        nodes.append(
            {
                "name": f"{at}",
                "value": round(one["loss"], 5),  # NiceGUI drops a click on a node without one
                "x": (row.index(at) + 0.5 + (widest - len(row)) / 2) * 100,
                "y": -height * 70,
                "symbolSize": 26 - 12 * share,
                "itemStyle": {
                    "color": found["bar-2"] if at == 0 else found["bar"],
                    "borderColor": found["ink"],
                    "borderWidth": 3 if at == taken else 0,
                },
                "label": {
                    "show": len(row) <= 6 or at == 0,
                    "formatter": texts.short_vector(one["levels"]),
                    "position": "right",
                    "color": found["ink"],
                    "fontSize": 11,
                },
                "tooltip": {"formatter": tip(texts.vector_tip(one))},
            }
        )
    edges = [
        {"source": f"{a}", "target": f"{b}"}
        for a, one in enumerate(vectors)
        for b, other in enumerate(vectors)
        if _one_step(one["levels"], other["levels"])
    ]
    return {
        **chart_look(dark),
        "tooltip": tip_look(dark),
        "series": [{"type": "graph", "layout": "none", "data": nodes, "links": edges, "roam": False,
                    "lineStyle": {"color": found["edge"], "width": 1}, "top": 24, "bottom": 24}],
    }  # fmt: skip


def _one_step(low: Mapping[str, int], high: Mapping[str, int]) -> bool:
    steps = [high[name] - low[name] for name in low]
    return sum(steps) == 1 and min(steps) == 0
