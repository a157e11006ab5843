"""An auditor's computations: attacks on a release, and measures of a table made by another tool."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noren.errors import NorenError
from noren.progress import Stage
from noren.results import plain
from noren_studio.jobs import _failure as failure_of
from noren_studio.work.choosing import verdict_rows

if TYPE_CHECKING:
    from noren.audit import AttackResult

DRAWN = 12
"""Number of results that get a chart; later ones show figures only."""
FIRST = 6
"""Rows of a table that a page shows as an example."""


def read_attacks(stage: Stage, place: str) -> dict[str, Any]:
    """Return for every attack the reason why it does not apply to a release, or None if it applies."""
    from noren import open_release
    from noren.audit import reasons

    with stage("Looking at what can be attacked", None):
        return {"place": place, "reasons": reasons(open_release(place))}


def attack_release(
    stage: Stage,
    place: str,
    attacks: Mapping[str, Mapping[str, Any]],
    folder: str,
    mark: str,
    policy: str | None = None,
    original: str | None = None,
) -> Iterator[dict[str, Any]]:
    """Run attacks, those that need the least knowledge first; yield all results so far after each attack.

    If an attack does not apply or fails, the reason is reported and the others go on.
    """
    from noren import open_release
    from noren.audit import Case, make_attack, order_attacks
    from noren.workflow import read_policy

    with stage("Opening", None):
        rules = None if policy is None else read_policy(policy)
        case = Case(open_release(place), rules, original, stage)
    csv = Path(folder) / "answers" / f"{mark}.csv"
    csv.parent.mkdir(mode=0o700, exist_ok=True)
    found: list[AttackResult] = []
    told: list[dict[str, Any]] = []
    skipped: dict[str, str] = {}
    ordered = order_attacks([make_attack(name, options) for name, options in attacks.items()])
    with stage("Attacks", len(ordered)) as meter:
        for at, attack in enumerate(ordered, 1):
            try:
                with stage(f"Attack: {attack.name}", None):
                    found += attack.results(case)
            except Exception as error:  # what one attack stumbles over must not cost the figures of the others
                why = failure_of(error)
                skipped[attack.name] = f"{why['message']} {why['hint']}".strip()
            for one in found[len(told) :]:
                told.append(_told(one) | {"picture": _picture(one) if len(told) < DRAWN else None})
            csv.write_bytes(_frame(found))
            meter(1)
            yield {"mark": mark, "place": place, "results": sorted(told, key=lambda one: -one["gain"]),
                   "skipped": skipped, "csv": str(csv), "run": at, "of": len(ordered),
                   "holder_only": any(one.holder_only for one in found)}  # fmt: skip


def main_figures(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an attack is about and its main figure: before any release, in the raw table, in the release."""
    from noren.report import final, headline, shown_scenarios

    name, last = headline(content), final(content)
    raw = [one["summary"].get(name) for one in shown_scenarios(content) if one["name"] == "raw"]
    return {
        "attack": content["attack"],
        "target": list(content["target"]),
        "adversary": content["adversary"],
        "figure": "" if name is None else str(content["titles"].get(name, name.replace("_", " "))),
        "before": content["baseline"].get(name),
        "raw": raw[0] if raw else None,
        "after": last["summary"].get(name),
        "means": last["title"],
    }


def _told(result: AttackResult) -> dict[str, Any]:
    """Return the main figure of one result, and all figures of every compared table."""
    from noren.report import attack_content

    content = plain(attack_content(result))
    main = main_figures(content)
    before, after = main["before"], main["after"]
    titles = {one: str(title) for one, title in content["titles"].items()}
    return {
        **main,
        "holder_only": result.holder_only,
        "gain": -2.0 if after is None else after - before if before is not None else -1.0,
        "notes": list(result.notes),
        "heads": list(titles.values()),
        "lines": _lines(result, list(titles)),
    }


def _lines(result: AttackResult, names: Sequence[str]) -> list[list[Any]]:
    """Return a line for each compared table: title, number of people or rows, figures."""
    tables: list[tuple[str, int | None, Mapping[str, float]]] = [("before any release", None, result.baseline)]
    tables += [(one.title, one.of or one.frame.height, one.summary) for one in result.shown]
    return [
        [title, count, *([figures.get(name), name in result.shares] for name in names)]
        for title, count, figures in tables
    ]


def _picture(result: AttackResult) -> dict[str, Any] | None:
    from noren_studio.work.answering import picture

    try:
        made = picture(result.chart())
    except NorenError:
        return None
    made.pop("spec")
    return made


def _frame(found: Sequence[AttackResult]) -> bytes:
    from noren.audit import Attacks
    from noren.cli import guarded_frame

    return guarded_frame(Attacks(found).frame).write_csv().encode()


# ---------------------------------------------------------------------- tables made elsewhere


def read_foreign_table(stage: Stage, place: str) -> dict[str, Any]:
    """Read the columns and the first rows of a table that another tool made."""
    from noren.sources import open_source
    from noren_studio.session import shown

    with stage("Reading", None):
        source = open_source(place)
        some: list[list[str]] = []
        for batch in source.batches(source.columns):
            first = batch.slice(0, FIRST)
            cells = [["" if c is None else str(c) for c in first.column(n).to_pylist()] for n in source.columns]
            some = [list(row) for row in zip(*cells, strict=True)]
            break
    return {"place": place, "name": shown(place), "columns": list(source.columns), "rows": some}


def measure_table(
    stage: Stage,
    place: str,
    policy: str | None,
    quasi: Sequence[str],
    sensitive: Sequence[str],
    suppressed: str | None,
    verify: bool,
) -> dict[str, Any]:
    """Measure which parameter a table reaches in every model; with `verify` and a policy, also check the policy's
    requirements."""
    from noren import measure
    from noren.workflow import verify_table

    verdicts: list[dict[str, Any]] = []
    with stage("Measuring", None):
        found = measure(place, policy, quasi=list(quasi), sensitive=list(sensitive), suppressed=suppressed)
    if verify and policy is not None:
        with stage("Verifying", None):
            verdicts = verdict_rows(verify_table(place, policy, suppressed=suppressed)[1])
    told = found.to_dict()
    for one, made in zip(told["measures"], found, strict=True):
        one["others"] = made.others
    told = json.loads(json.dumps(told, default=str))
    return {**told, "place": place, "verdicts": verdicts, "verified": verify and policy is not None}
