"""The editor of hierarchies: rules with a preview, or a tree; import and export of ARX files; missing and extra
values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from nicegui import events, ui
from pydantic import ValidationError

from noren.errors import NorenError
from noren.results import visible
from noren.schema import SPANS, Hierarchy, HierarchySpec
from noren_studio import texts, trees
from noren_studio.edits import set_option
from noren_studio.pages.tree_editor import tree_editor
from noren_studio.parts import button, card, div, edit, line, meter, note, text, upload
from noren_studio.session import Session

RULES = ("widths", "quantiles", "prefix", "calendar", "frequency")
FIRST = {
    "widths": (5, 10, 20, 40),
    "quantiles": (8, 4, 2),
    "prefix": (3, 2, 1),
    "calendar": ("month", "year", "decade"),
    "frequency": (20, 100),
}
"""Where a rule begins."""
LARGEST = 1 << 28
"""Bytes of a hierarchy that is loaded."""
SHOWN = 8
"""Labels of a level that are shown, the most common first."""


class Values:
    """The values of a column in the table."""

    def __init__(self, session: Session, name: str) -> None:
        file = None if session.table is None else Path(session.table["counts"])
        found = json.loads(file.read_text(encoding="utf-8")).get(name, {}) if file is not None else {}
        self.values: list[str] = found.get("values", [])
        self.counts = np.array(found.get("counts", []), np.int64)
        self.all: int = found.get("all", 0)

    @property
    def by_value(self) -> dict[str, int]:
        return dict(zip(self.values, self.counts.tolist(), strict=True))


def hierarchy_card(session: Session, name: str) -> None:
    """Show how values of a column are generalised."""
    seen = Values(session, name)
    given = _given(session, name)
    with card(texts.HIERARCHY, texts.hierarchy_why(name, seen.all)):
        if not seen.values:
            note(texts.NO_VALUES)
            return
        with div("n-row"):
            _way(session, name, given, seen)
            button(texts.ARX_OUT, partial(_download, session, name, seen))
            upload(texts.ARX_IN, partial(_upload, session, name), LARGEST).style("max-width: 250px")
        rule = next(iter(given), None)
        if rule == "tree":
            _tree(session, name, given["tree"], seen)
        elif rule in RULES:
            _rule(session, name, rule, given[rule], seen)
        elif rule == "csv":
            _levels(_made(session, name, seen), seen)
        else:
            line(texts.NO_HIERARCHY, "n-soft")
        if seen.all > len(seen.values):
            line(texts.of_values(len(seen.values), seen.all), "n-soft n-small")


def _given(session: Session, name: str) -> dict[str, Any]:
    column = session.draft.policy["attributes"][name]
    found = column.get("hierarchy") if isinstance(column, dict) else None
    return {"csv": found} if isinstance(found, str) else dict(found or {})


def _set(session: Session, name: str, words: str, spec: dict[str, Any] | None) -> None:
    edit(session, words, partial(set_option, name=name, option="hierarchy", value=spec))


def _way(session: Session, name: str, given: dict[str, Any], seen: Values) -> None:
    options = {"": texts.WAY_NONE} | {one: texts.WAYS[one] for one in (*RULES, "tree")}
    now = next(iter(given), "")
    if now not in options:
        options[now] = texts.WAYS.get(now, now)

    def change(event: events.ValueChangeEventArguments) -> None:
        try:
            spec = _first(session, name, event.value, seen) if event.value else None
        except NorenError as error:
            ui.notify(visible(error.message), type="negative")
            return
        _set(session, name, texts.set_to(name, options[event.value]), spec)

    ui.select(options, value=now, label=texts.WAY, on_change=change).props("dense outlined options-dense").style(
        "min-width: 240px"
    )


def _first(session: Session, name: str, way: str, seen: Values) -> dict[str, Any]:
    """Return a rule with initial parameters, or the tree of the current hierarchy."""
    if way == "tree":
        made = _made(session, name, seen)
        if made is None:
            made = Hierarchy.from_rows([[value, "*"] for value in seen.values])
        return {"tree": trees.tree_from(made)}
    return {way: list(FIRST[way])}


def _made(session: Session, name: str, seen: Values) -> Hierarchy | None:
    """Return the column's current hierarchy over the values of the table."""
    given = _given(session, name)
    try:
        if "csv" in given:
            return Hierarchy.read_csv(session.folder / given["csv"])
        return HierarchySpec(**given).over(seen.values, seen.counts) if given else None
    except (NorenError, ValidationError, ValueError):
        return None


# ---------------------------------------------------------------------- by rule


def _rule(session: Session, name: str, rule: str, now: Sequence[Any], seen: Values) -> None:
    """Show one field with a preview of its levels; Enter or leaving the field applies it."""
    field = ui.input(texts.RULE_FIELDS[rule], value=", ".join(_shown(one) for one in now)).props("outlined dense")
    field.style("max-width: 420px")
    below = div("n-col")

    def read() -> dict[str, Any] | None:
        try:
            return {rule: parsed(rule, field.value or "")}
        except ValueError:
            return None

    def live() -> None:
        below.clear()
        with below:
            spec = read()
            try:
                if spec is None:
                    raise NorenError(texts.not_read(field.value or ""), hint=texts.RULE_HINTS[rule])
                _levels(HierarchySpec(**spec).over(seen.values, seen.counts), seen)
            except (NorenError, ValidationError) as error:
                message = error.message if isinstance(error, NorenError) else texts.RULE_HINTS[rule]
                note(message, getattr(error, "hint", "") or "", "warn")

    def take() -> None:
        spec = read()
        if spec is not None and spec != {rule: list(now)}:
            _set(session, name, texts.set_to(name, f"{texts.WAYS[rule]} {field.value}"), spec)

    field.on_value_change(live)
    field.on("keydown.enter", take).on("blur", take)
    live()


def _shown(item: Any) -> str:
    return f"{item:g}" if isinstance(item, int | float) else str(item)


def parsed(rule: str, written: str) -> list[Any]:
    """Parse the parameters of a rule: 5, 10, 20."""
    parts = [part.strip() for part in written.replace(";", ",").split(",") if part.strip()]
    if not parts:
        raise ValueError(written)
    if rule == "calendar":
        if any(part not in SPANS for part in parts):
            raise ValueError(written)
        return list(parts)
    numbers = [float(part) for part in parts]
    return [int(number) if number.is_integer() else number for number in numbers]


def _levels(made: Hierarchy | None, seen: Values) -> None:
    """Show the number of labels of every level, and the most frequent ones."""
    if made is None:
        note(texts.NOT_A_TREE, tone="warn")
        return
    known = seen.by_value
    total = max(1, int(seen.counts.sum()))
    with div("n-row top").style("gap: 14px"):
        for height, level in enumerate(made.levels):
            held: dict[str, int] = {}
            for leaf, label in zip(made.leaves, level, strict=True):
                held[label] = held.get(label, 0) + known.get(leaf, 0)
            with div("n-col tight").style("flex: 1 0 96px; max-width: 200px"):
                text(texts.level(height, len(held)), tag="h3")
                for label, count in sorted(held.items(), key=lambda item: -item[1])[:SHOWN]:
                    with div("n-col").style("gap: 1px"):
                        with div("n-row tight").style("justify-content: space-between; flex-wrap: nowrap"):
                            line(label, "n-small n-wrap")
                            line(f"{count / total:.1%}", "n-small n-soft n-num")
                        meter(count / total, f"{label}: {count:,}")
                if len(held) > SHOWN:
                    line(texts.and_more(len(held) - SHOWN), "n-soft n-small")
    _misses(trees.tree_from(made), seen)


def _misses(tree: trees.Tree, seen: Values) -> None:
    """Show values without a place, which would stop a release, and values that are not in the table."""
    missing, spare = trees.gaps(tree, seen.values), trees.orphans(tree, seen.values)
    if missing:
        note(texts.gaps(missing), texts.GAPS_HINT, "bad")
    if spare:
        note(texts.orphans(spare), texts.ORPHANS_HINT)
    if not missing and not spare:
        line(texts.NO_GAPS, "n-soft n-small")


# ---------------------------------------------------------------------- as a tree


def _tree(session: Session, name: str, tree: trees.Tree, seen: Values) -> None:
    _misses(tree, seen)

    def take(words: str, made: trees.Tree) -> None:
        _set(session, name, f"{name}: {words}", {"tree": made})

    tree_editor(session, name, tree, seen.by_value, take)


# ---------------------------------------------------------------------- files


def _download(session: Session, name: str, seen: Values) -> None:
    made = _made(session, name, seen)
    if made is None:
        ui.notify(texts.NO_HIERARCHY, type="warning")
        return
    ui.download.content(made.csv_text(), _file_of(name))


def _file_of(name: str) -> str:
    return "".join(char if char.isalnum() or char in "-_" else "_" for char in name)[:60] + ".csv"


async def _upload(session: Session, name: str, event: events.UploadEventArguments) -> None:
    """Read a file in ARX's layout as the tree of the column."""
    target = session.folder / "hierarchy.csv"
    await event.file.save(target)
    try:
        made = Hierarchy.read_csv(Path(target))
    except NorenError as error:
        ui.notify(visible(error.message.replace(str(target), event.file.name)), type="negative")
        return
    finally:
        target.unlink(missing_ok=True)
    _set(session, name, texts.set_to(name, texts.WAYS["csv"]), {"tree": trees.tree_from(made)})
