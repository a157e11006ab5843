"""The risk of the raw table, the result of a policy, and the comparison of candidates. Nothing is written."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noren import Policy
from noren.models import Verdict
from noren.progress import Stage
from noren.sources import Source
from noren_studio.edits import QUASI, SECRET

if TYPE_CHECKING:
    from noren.workflow import Comparison


def verdict_rows(verdicts: Iterable[Verdict]) -> list[dict[str, Any]]:
    """Return verdicts as plain data that keep infinite figures; `holds` is None if a verdict is undecided."""
    return [one.to_dict() | {"achieved": float(one.achieved), "required": float(one.required)} for one in verdicts]


def cell_text(cell: Any) -> str:
    """Write a published cell as text: a set in braces, a missing cell as an empty text."""
    if isinstance(cell, list | tuple):
        return "{" + ", ".join(map(str, cell)) + "}"
    return "" if cell is None else str(cell)


RECORDS = 20_000
"""Records of a long table on which candidates are tried, so that a comparison takes minutes, not hours."""


def rules_of(policy: dict[str, Any], base: str) -> Policy:
    """Make the policy of a session; `base` is the folder of its files."""
    return Policy(**policy, base=Path(base))


def some_of(place: str, rules: Policy, most: int = RECORDS) -> tuple[Source, bool]:
    """Return the table, or a sample of about `most` of its records in memory; and whether it is the whole table."""
    import pyarrow as pa

    from noren.policy import open_table
    from noren.sources import FrameSource, sampled

    source = open_table(place, rules)
    rows = source.rows if source.rows is not None else sum(b.num_rows for b in source.batches(source.columns[:1]))
    if rows <= most:
        return source, True
    picked = FrameSource(pa.Table.from_batches(sampled(source, most / rows).batches(source.columns)))
    picked.name = source.name
    return picked, False


ROWS = 8
"""Number of records in an excerpt."""
VALUES = 12
"""Number of values of a distribution that a page shows."""


def compare_candidates(
    stage: Stage, place: str, policy: dict[str, Any], base: str, grid: dict[str, list[float]], suppression: float | None
) -> Iterator[dict[str, Any]]:
    """Yield the candidates measured so far, with their figures and the method that *Adopt* writes into the policy."""
    from noren.workflow import Candidate, Comparison, iterate_candidates

    rules = rules_of(policy, base)
    with stage("Reading", None):
        source, whole = some_of(place, rules)
        raw = _guessed_raw(source, rules)
    found: list[Candidate] = []
    for one in iterate_candidates(source, rules, grid=grid or None, suppression=suppression, stage=stage):
        found.append(one)
        if one.holds:
            yield _compared(Comparison(found), rules, whole, raw)
    yield _compared(Comparison(found), rules, whole, raw)


def _guessed_raw(source: Source, rules: Policy) -> float | None:
    """Return the share of people whose secret an adversary guesses right in the raw table; None without a secret.

    The guess is the most frequent value among the people who share all quasi-identifiers. Of several secrets, the one
    that is guessed right most often counts.
    """
    import polars as pl

    known = [name for name, one in rules.attributes.items() if one.role in QUASI and name in source.columns]
    secrets = [name for name, one in rules.attributes.items() if one.role in SECRET and name in source.columns]
    if not secrets:
        return None
    batches = source.batches(list(dict.fromkeys([*known, *secrets])))
    frame = pl.concat(pl.DataFrame(pl.from_arrow(batch)) for batch in batches)
    shares = []
    for name in secrets:
        keys = [one for one in known if one != name]
        counts = frame.group_by([*keys, name]).len("people")
        most = (counts.group_by(keys) if keys else counts.group_by(pl.lit(0))).agg(pl.col("people").max())
        shares.append(most["people"].sum() / max(1, frame.height))
    return float(max(shares))


def _compared(found: Comparison, rules: Policy, whole: bool, raw: float | None) -> dict[str, Any]:
    front = {id(one) for one in found.frontier}
    chosen, names = found.chosen, _names([one.called for one in found])
    return {
        "whole": whole,
        "raw": raw,
        "candidates": [
            {
                "called": name,
                "number": at,
                "holds": one.holds,
                "failure": one.failure,
                "seconds": one.seconds,
                "suppressed": one.suppressed,
                "smallest": one.smallest_class,
                "risk": one.risk,
                "error": None if isnan(one.query_loss) else one.query_loss,
                "ncp": (one.losses or {}).get("ncp_loss"),
                "setting": dict(one.setting),
                "method": tomllib.loads(one.snippet)["method"],
                "front": id(one) in front,
                "chosen": one is chosen,
                "drafted": one.methods == rules.methods and not one.setting,
            }
            for at, (name, one) in enumerate(zip(names, found, strict=True), 1)
        ],
    }


def _names(called: Sequence[str]) -> list[str]:
    """Return distinct names: equal names get a number."""
    seen: Counter[str] = Counter()
    out = []
    for name in called:
        seen[name] += 1
        out.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return out


def look_at(
    stage: Stage, place: str, policy: dict[str, Any], base: str, methods: list[Any], settings: list[dict[str, float]]
) -> dict[str, Any]:
    """Show candidates as they would be published: distributions before and after, class sizes, an excerpt."""
    from noren_studio.edits import adopt

    shown = []
    for method, setting in zip(methods, settings, strict=True):
        own = dict(policy)
        own["require"] = [dict(one) for one in policy.get("require", [])]
        adopt(own, method, setting)
        shown.append(_looked(stage, place, own, base))
    original, *_ = [one.pop("original") for one in shown]
    return {"original": original, "candidates": shown}


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
        "after": after,
        "sizes": sizes,
        "columns": list(frame.columns),
        "rows": [[cell_text(cell) for cell in row] for row in frame.head(ROWS).rows()],
        "original": {"before": before, **_excerpt(source, list(frame.columns))},
    }


def _counted(counts: Mapping[str, int]) -> list[tuple[str, float]]:
    return sorted(((text, float(count)) for text, count in counts.items()), key=lambda one: -one[1])


def _estimated(release: Any, name: str) -> list[tuple[str, float]] | None:
    """Estimate the counts of one column as a recipient would; None if the release cannot answer this."""
    from noren.errors import NorenError

    try:
        frame = release.estimate([name]).frame
    except NorenError:
        return None
    return [
        (str(label), float(count)) for label, count in zip(frame[name].to_list(), frame["count"].to_list(), strict=True)
    ]


def _sizes(frame: Any, columns: Sequence[str]) -> list[tuple[str, int]]:
    """Count people by the size of their equivalence class."""
    if not columns:
        return []
    lines = Counter(tuple(cell_text(cell) for cell in row) for row in frame.select(columns).rows())
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
    return {"columns": kept, "rows": [[cell_text(cell) for cell in row] for row in rows]}


def find_levels(stage: Stage, place: str, policy: dict[str, Any], base: str, count: int = 40) -> dict[str, Any]:
    """Return the best vectors of levels that Incognito could publish."""
    from noren.workflow import find_levels

    rules = rules_of(policy, base)
    with stage("Reading", None):
        source, _ = some_of(place, rules)
    found = find_levels(source, rules, count=count, stage=stage)
    names = ("levels", "heights", "loss", "classes", "dropped")
    return {"vectors": [{name: getattr(one, name) for name in names} for one in found]}


def reach(stage: Stage, place: str, policy: dict[str, Any], base: str) -> dict[str, Any]:
    """Compute the verdicts and losses of the release that a policy would make, without publishing it."""
    from noren.workflow import run

    rules = rules_of(policy, base)
    with stage("Reading", None):
        source, _ = some_of(place, rules)
    outcome = run(source, rules, stage=stage)
    return {
        "records": outcome.facts.records,
        "suppressed": outcome.facts.suppressed,
        "verdicts": verdict_rows(outcome.facts.verdicts),
        "lost": {name: float(figure) for name, figure in outcome.facts.losses.items()},
    }


TOP = 8


def raw_risk(stage: Stage, place: str, policy: dict[str, Any], base: str) -> dict[str, Any]:
    """Return the risk figures of the raw table for a page."""
    from noren import risk

    found = risk(place, rules_of(policy, base), stage=stage)
    return {
        "people": found.people,
        "quasi": list(found.quasi),
        "uniques": found.uniques,
        "unique_share": found.unique_share,
        "smallest": found.smallest,
        "mean_risk": found.mean_risk,
        "looks": [[one.words, one.people, one.least] for one in found.looks],
        "top": [[list(one.columns), one.alone, one.share] for one in found.top(TOP)],
        "columns": [[c.column, c.distinct, c.alone, c.contribution, c.uniques_without] for c in found.columns],
        "verdicts": verdict_rows(found.verdicts),
        "notes": list(found.notes),
    }
