"""What attacks gained: bars before and after, and for each result its chart and every figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nicegui import ui

from noren.results import visible
from noren_studio.pages.recipient_answer import shown_picture
from noren_studio.parts import div, line, note, table, tag, text
from noren_studio.rebuild import Part
from noren_studio.session import Session
from noren_studio.texts import auditor as words

Found = Mapping[str, Any]


def gains(session: Session, result: Found) -> None:
    """All results, the largest gain first."""
    if result["holder_only"]:
        note(words.HOLDER_SIDE, tone="warn")
    if result["results"]:
        _bars(result)
    for name, reason in result["skipped"].items():
        line(f"{words.NOT_RUN}: {name}: {reason}", "n-soft n-small")
    if result["results"]:
        _closer(session, result["mark"], result["results"])


def _bars(result: Found) -> None:
    with div("n-scroll"), ui.element("table").classes("n-table"):
        with ui.element("thead"), ui.element("tr"):
            for head, classes in words.GAIN_HEADS:
                text(head, classes, tag="th").props("scope=col")
        with ui.element("tbody"):
            for one in result["results"]:
                with ui.element("tr"):
                    text(one["attack"], "n-key", tag="td")
                    text(", ".join(one["target"]), tag="td")
                    text(one["figure"] or "-", tag="td")
                    with ui.element("td").style("min-width: 260px"):
                        before_after(one)
                    text(one["after_means"], "n-soft", tag="td")


def before_after(one: Found) -> None:
    """Two bars, one above the other: what is known without the release, and with it."""
    with div("n-pair"):
        for which, share in ((words.BEFORE, one["before"]), (words.AFTER, one["after"])):
            line(which, "n-soft")
            if share is None:
                line("-")
                line("", "n-num")
                continue
            with ui.element("div").classes(f"n-meter {which}").props("role=img") as bar:
                bar._props["aria-label"] = visible(words.bar(which, one["figure"], share))
                ui.element("div").style(f"width: {100 * min(1.0, max(0.0, share)):.1f}%")
            line(f"{share:.1%}", "n-num")


def _closer(session: Session, mark: str, results: Sequence[Found]) -> None:
    """One result in full, to begin with the one that gains most."""
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
        heads = ["", words.PEOPLE, *one["heads"]]
        rows = [
            [head, "-" if count is None else f"{count:,}", *map(_figure, figures)]
            for head, count, *figures in one["lines"]
        ]
        with div("n-scroll"):
            table(heads, rows, range(1, len(heads)))
        for remark in one["notes"]:
            line(f"{remark}.", "n-soft n-small")


def _figure(told: tuple[float | None, bool]) -> str:
    value, share = told
    if value is None:
        return "-"
    return f"{value:.1%}" if share else f"{value:,.4g}"
