"""What an auditor computes: attacks on a release, and what a table made elsewhere achieves. All by public verbs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
"""Results that are drawn, those with the largest gain first; of the others the figures are enough."""
FIRST = 6
"""Rows of a table that show how it is written."""


def read_attacks(stage: Stage, place: str) -> dict[str, Any]:
    """For every attack why it does not apply to a release, or None."""
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
) -> dict[str, Any]:
    """Several attacks with their options. One that does not apply says why, and the others go on."""
    from noren import open_release
    from noren.audit import Case, made
    from noren.workflow import read_policy

    with stage("Opening", None):
        rules = None if policy is None else read_policy(policy)
        case = Case(open_release(place), rules, original, stage)
    chosen = {name: made(name, options) for name, options in attacks.items()}
    found: list[AttackResult] = []
    skipped: dict[str, str] = {}
    for name, one in chosen.items():
        try:
            with stage(f"Attack: {name}", None):
                found += one.run(case)
        except Exception as error:  # what one attack stumbles over must not cost the figures of the others
            why = failure_of(error)
            skipped[name] = f"{why['message']} {why['hint']}".strip()
    base = Path(folder) / "answers"
    base.mkdir(mode=0o700, exist_ok=True)
    with stage("Drawing", None):
        told = sorted((_told(one) for one in found), key=lambda one: -one["gain"])
        by_key = {(one.attack, one.target): one for one in found}
        for line in told[:DRAWN]:
            line["picture"] = _picture(by_key[line["attack"], tuple(line["target"])])
        csv = base / f"{mark}.csv"
        csv.write_bytes(_frame(found))
    return {"mark": mark, "place": place, "results": told, "skipped": skipped, "csv": str(csv),
            "holder_only": any(one.holder_only for one in found)}  # fmt: skip


def _told(result: AttackResult) -> dict[str, Any]:
    """One result in figures: what stands for it, before and after, and every figure of every table compared."""
    from noren.report import attack_content, final, headline

    told = plain(attack_content(result))
    name, last = headline(told), final(told)
    before = None if name is None else told["baseline"].get(name)
    after = None if name is None else last["summary"][name]
    titles = {one: str(told["titles"].get(one, one.replace("_", " "))) for one in told["titles"]}
    return {
        "attack": result.attack,
        "target": list(result.target),
        "adversary": result.adversary,
        "success": result.success,
        "holder_only": result.holder_only,
        "figure": "" if name is None else titles.get(name, name.replace("_", " ")),
        "before": before,
        "before_means": told["before"],
        "after": after,
        "after_means": last["title"],
        "gain": -2.0 if after is None else after - before if before is not None else -1.0,
        "notes": list(result.notes),
        "heads": list(titles.values()),
        "lines": _lines(result, list(titles)),
        "picture": None,
    }


def _lines(result: AttackResult, names: Sequence[str]) -> list[list[Any]]:
    """A line for each table that is compared: its title, how many it speaks of, its figures."""
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
    """The columns of a table that another tool made, and its first rows."""
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
    """What a table made elsewhere achieves in every model, and with a policy whether that is enough."""
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
