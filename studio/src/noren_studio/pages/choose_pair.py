"""Two candidates beside each other and beside the original: distributions, classes, an excerpt of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from nicegui import ui

from noren_studio import texts
from noren_studio.parts import bars, button, card, div, line, table, text, watch
from noren_studio.rebuild import keyed
from noren_studio.session import Session
from noren_studio.view import refresh
from noren_studio.work.choosing import look_at

BARS = 16


def pair_card(session: Session, good: Sequence[Mapping[str, Any]]) -> None:
    """What is ticked in the table, as it would be published."""
    ticked = [one for one in good if one["called"] in session.kept.get("marked", [])]
    with card(texts.PAIR, texts.PAIR_WHY):
        if not ticked:
            line(texts.PAIR_TICK, "n-soft")
            return
        names = [one["called"] for one in ticked]
        watch(session, "pair", partial(_start, session, ticked))
        found = session.result("pair")
        if found is None or session.kept.get("pair") != names:
            if not _runs(session):
                look = button(texts.pair_go(names), partial(_start, session, ticked), "main")
                keyed(look, "look")  # it is about what is ticked: a click between a tick and the page after it counts
            return
        _shown(names, found)


def _runs(session: Session) -> bool:
    job = session.jobs.get("pair")
    return job is not None and job.running


def _start(session: Session, ticked: Sequence[Mapping[str, Any]]) -> None:
    draft = session.draft
    session.kept["pair"] = [one["called"] for one in ticked]
    session.start(
        "pair", look_at, place=draft.place, policy=dict(draft.policy), base=str(session.folder),
        methods=[one["method"] for one in ticked], settings=[one["setting"] for one in ticked],
    )  # fmt: skip
    refresh()


def _shown(names: Sequence[str], found: Mapping[str, Any]) -> None:
    original, candidates = found["original"], found["candidates"]
    text(texts.DISTRIBUTIONS, tag="h3")
    with div("n-scroll"), ui.element("table").classes("n-table"):
        with ui.element("thead"), ui.element("tr"):
            for head in ("", texts.ORIGINAL, *names):
                text(head, tag="th").props("scope=col")
        with ui.element("tbody"):
            for column, before in original["before"].items():
                with ui.element("tr"):
                    text(column, "n-key", tag="td")
                    labels = [label for label, _ in before[:BARS]]
                    _bars(column, before, labels)
                    for one in candidates:
                        _bars(column, one["after"].get(column), labels, "two")
    with div("n-row top even"):
        for name, one in zip(names, candidates, strict=True):
            with div("n-col tight"):
                text(texts.classes_of(name), tag="h3")
                table(texts.SIZE_HEADS, [[words, f"{people:,}"] for words, people in one["sizes"] if people], (1,))
    text(texts.EXCERPT, tag="h3")
    _rows(texts.ORIGINAL, original)
    for name, one in zip(names, candidates, strict=True):
        _rows(name, one)


def _bars(column: str, counts: Sequence[Sequence[Any]] | None, labels: Sequence[str], classes: str = "") -> None:
    """The distribution of a column, its values in the order of the original where they are the same."""
    with ui.element("td"):
        if not counts:
            line(texts.NO_ESTIMATE, "n-soft n-small")
            return
        held = {str(label): float(count) for label, count in counts}
        some = [count for count in held.values() if count > 0]
        same = [held[label] for label in labels if label in held]
        heights = same if len(same) >= len(labels) / 2 else some[:BARS]
        bars(heights, classes, described=texts.histogram(column, ""))
        line(texts.values_shown(len(some)), "n-soft n-small")


def _rows(name: str, found: Mapping[str, Any]) -> None:
    line(name, "n-soft n-small")
    with div("n-scroll"):
        table(found["columns"], found["rows"])
