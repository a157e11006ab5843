"""Candidates side by side, by the verbs `compare`, `anonymize` and `levels`. Nothing is written."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

from noren.progress import Stage
from noren_studio.work.showing import verdict_rows
from noren_studio.work.some import rules_of, some_of

ROWS = 8
"""Records that an excerpt shows."""
VALUES = 12
"""Values of a distribution that are shown."""


def compare_candidates(
    stage: Stage, place: str, policy: dict[str, Any], base: str, grid: dict[str, list[float]], suppression: float | None
) -> dict[str, Any]:
    """Every candidate with its figures, and the methods that adopting it writes into the policy."""
    from noren import compare

    rules = rules_of(policy, base)
    with stage("Reading", None):
        source, whole = some_of(place, rules)
    found = compare(source, rules, grid=grid or None, suppression=suppression, stage=stage)
    front = {id(one) for one in found.frontier}
    chosen, names = found.chosen, _names([one.called for one in found])
    return {
        "whole": whole,
        "candidates": [
            {
                "called": name,
                "holds": one.holds,
                "failure": one.failure,
                "seconds": one.seconds,
                "records": one.records,
                "suppressed": one.suppressed,
                "smallest": one.smallest_class,
                "worst": one.worst_share,
                "belief": one.belief,
                "risk": one.risk,
                "error": None if isnan(one.query_loss) else one.query_loss,
                "ncp": (one.losses or {}).get("ncp_loss"),
                "verdicts": verdict_rows(one.verdicts),
                "setting": dict(one.setting),
                "method": tomllib.loads(one.snippet)["method"],
                "front": id(one) in front,
                "chosen": one is chosen,
            }
            for name, one in zip(names, found, strict=True)
        ],
    }


def _names(called: Sequence[str]) -> list[str]:
    """Different names for all: settings that a name does not tell are numbered."""
    seen: Counter[str] = Counter()
    out = []
    for name in called:
        seen[name] += 1
        out.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return out


def look_at(
    stage: Stage, place: str, policy: dict[str, Any], base: str, methods: list[Any], settings: list[dict[str, float]]
) -> dict[str, Any]:
    """Two candidates as they would be published: distributions before and after, classes, an excerpt."""
    from noren_studio.edits import adopt

    shown = []
    for method, setting in zip(methods, settings, strict=True):
        own = dict(policy)
        own["require"] = [dict(one) for one in policy.get("require", [])]
        adopt(own, method, setting)
        shown.append(_looked(stage, place, own, base))
    return {"original": shown[0].pop("original"), "candidates": [_without(one) for one in shown]}


def _without(one: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in one.items() if key != "original"}


def _looked(stage: Stage, place: str, policy: dict[str, Any], base: str) -> dict[str, Any]:
    from noren.workflow import run

    rules = rules_of(policy, base)
    source, _ = some_of(place, rules)
    outcome = run(source, rules, stage=stage)
    release = outcome.release
    names = list(release.columns)
    with stage("Estimating", len(names)) as meter:
        after: dict[str, Any] = {}
        for name in names:
            after[name] = _estimated(release, name)
            meter(1)
    table = outcome.facts.table
    before = {n: _counted(table.profile.columns[n].counts) for n in names if n in table.profile.columns}
    frame = release.frame()
    exact = [c.name for c in release.statements if c.role.value in ("quasi-identifier", "sensitive-quasi-identifier")]
    sizes = _sizes(frame, exact)
    return {
        "records": outcome.facts.records,
        "after": after,
        "sizes": sizes,
        "columns": list(frame.columns),
        "rows": [[_cell(cell) for cell in row] for row in frame.head(ROWS).rows()],
        "original": {"before": before, **_excerpt(source, list(frame.columns))},
    }


def _counted(counts: Mapping[str, int]) -> list[tuple[str, float]]:
    return sorted(((text, float(count)) for text, count in counts.items()), key=lambda one: -one[1])


def _estimated(release: Any, name: str) -> list[tuple[str, float]] | None:
    """What a recipient estimates of one column; None where the release does not answer that."""
    from noren.errors import NorenError

    try:
        frame = release.estimate([name]).frame
    except NorenError:
        return None
    return [
        (str(label), float(count)) for label, count in zip(frame[name].to_list(), frame["count"].to_list(), strict=True)
    ]


def _sizes(frame: Any, columns: Sequence[str]) -> list[tuple[str, int]]:
    """How many people look like how many."""
    if not columns:
        return []
    lines = Counter(tuple(_cell(cell) for cell in row) for row in frame.select(columns).rows())
    steps = (1, 2, 5, 10, 20, 50, 100)
    held = dict.fromkeys(steps, 0)
    for size in lines.values():
        held[max(step for step in steps if step <= size)] += size
    ends = {step: steps[at + 1] - 1 for at, step in enumerate(steps[:-1])}
    return [
        (
            f"{step} or more" if step not in ends else f"{step}" if ends[step] == step else f"{step} to {ends[step]}",
            people,
        )
        for step, people in held.items()
    ]


def _excerpt(source: Any, columns: Sequence[str]) -> dict[str, Any]:
    kept = [name for name in columns if name in source.columns]
    batch = next(iter(source.batches(kept)))
    rows = list(zip(*(batch.column(name).slice(0, ROWS).to_pylist() for name in kept), strict=True))
    return {"columns": kept, "rows": [[_cell(cell) for cell in row] for row in rows]}


def _cell(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, list | tuple):
        return "{" + ", ".join(map(str, cell)) + "}"
    return str(cell)


def find_levels(stage: Stage, place: str, policy: dict[str, Any], base: str, count: int = 40) -> dict[str, Any]:
    """The best level vectors that Incognito could publish."""
    from noren.workflow import find_levels

    rules = rules_of(policy, base)
    with stage("Reading", None):
        source, _ = some_of(place, rules)
    found = find_levels(source, rules, count=count, stage=stage)
    return {
        "loss": found.loss,
        "vectors": [
            {
                "levels": one.levels,
                "heights": one.heights,
                "loss": one.loss,
                "classes": one.classes,
                "dropped": one.dropped,
            }
            for one in found
        ],
    }
