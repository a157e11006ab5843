"""Opens a release for its recipient: its description, the possible questions, and its verification."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from noren.progress import Stage
from noren_studio.session import shown
from noren_studio.work.choosing import verdict_rows

if TYPE_CHECKING:
    from noren import Release
    from noren.schema import Column
    from noren.statements import Statement

LISTED = 2_000
"""Most values of a column, or of a level of its hierarchy, that a page offers."""
FEW = 3
"""Number of values given as examples in the description of a level."""
WIDE = 8
"""Intervals are offered for columns of more than this many distinct numbers."""


def make_demo_release(stage: Stage, folder: str, records: int = 5_000) -> dict[str, str]:
    """Publish the demo's table once per session; return the paths of the release, the original and the policy."""
    import pyarrow.csv as pv

    from noren import Policy
    from noren.cli import POLICY_TOML, disease_hierarchy_csv, hospital_table
    from noren.workflow import run

    base = Path(folder) / "demo-release"
    target, table, policy = base / "release", base / "patients.csv", base / "policy.toml"
    if not target.exists():
        base.mkdir(mode=0o700, exist_ok=True)
        with stage("Making the demo", None):
            pv.write_csv(hospital_table(records), table)
            (base / "disease.csv").write_text(disease_hierarchy_csv(), encoding="utf-8")
            policy.write_text(POLICY_TOML, encoding="utf-8")
        run(table, Policy.load(policy), to=target, stage=stage)
    return {"release": str(target), "original": str(table), "policy": str(policy)}


def read_release(stage: Stage, place: str) -> dict[str, Any]:
    """Return what a recipient first sees of a release: facts from its manifest, and the questions for each column."""
    from noren import open_release
    from noren.estimates import Members

    with stage("Comparing checksums", None):
        release = open_release(place)
        signer = release.signer
    known = Members.of({one.name: one.column for one in release.statements})
    columns = [_column(one, one.column, one.name) for one in release.statements]
    columns += [_column(release.column(owner), known.columns[name], name) for name, owner in known.owner.items()]
    return {
        "place": place,
        "name": shown(place),
        "signer": None if signer is None else signer.fingerprint,
        "facts": _facts(release),
        "columns": columns,
        "estimators": list(_estimators(release)),
        "weight": release.manifest.weight,
        "margins": [list(one.of) for one in release.manifest.margins],
        "hard": any(one.hides for one in release.statements) and not release.designs,
    }


def _facts(release: Release) -> dict[str, Any]:
    manifest = release.manifest
    return {
        "title": manifest.title,
        "records": release.records,
        "rows": release.rows,
        "suppressed": release.suppressed,
        "people": manifest.rows_are_people,
        "most_rows": manifest.most_rows,
        "sample": manifest.sample,
        "columns": len(release.columns),
        "hidden": sum(not one.is_exact for one in release.statements),
        "methods": [{"name": one.name, "on": list(one.on)} for one in manifest.methods],
        "randomness": manifest.randomness,
        "requirements": [str(one.get("model")) for one in manifest.requirements],
        "noren": manifest.noren,
        "format": manifest.format,
    }


def _estimators(release: Release) -> tuple[str, ...]:
    """Return the estimators that may suit the release; the library refuses those that do not suit a question."""
    from noren.estimates import BOUNDED_ESTIMATORS, ESTIMATORS, SEMANTIC_ESTIMATORS

    if release.rows_per_record > 1:
        return tuple(SEMANTIC_ESTIMATORS)
    if not release.designs and any(one.hides for one in release.statements):
        return tuple(BOUNDED_ESTIMATORS)
    return tuple(ESTIMATORS)


def _column(statement: Statement, column: Column, name: str) -> dict[str, Any]:
    """Return what a page shows of a column or of a member of a composite column."""
    values = () if column.is_open else column.domain.values
    levels = [] if column.tree is None else [_level(column.tree.levels[at], at) for at in range(1, column.tree.height)]
    return {
        "name": name,
        "published": statement.description,
        "exact": statement.is_exact,
        "countable": statement.is_exact or not column.is_open,
        "distinct": None if column.is_open else len(values),
        "values": list(values[:LISTED]),
        "levels": levels,
        "widths": _widths(statement, column),
        "numbers": _has_numbers(column, name),
        "ranged": _is_ranged(column),
        "terms": statement.terms is not None,
    }


def _level(labels: tuple[str, ...], at: int) -> dict[str, Any]:
    found = list(dict.fromkeys(labels))
    return {"level": at, "count": len(found), "labels": found[:LISTED], "some": found[:FEW]}


def _widths(statement: Statement, column: Column) -> list[str]:
    """Return suggested widths of intervals for a column of exactly published numbers; empty for other columns."""
    from noren.schema import NUMERIC

    if column.is_open or not statement.is_exact or column.domain.kind not in NUMERIC or len(column.domain) <= WIDE:
        return []
    numbers = [float(one) for one in column.domain.plain if _is_number(one)]
    if len(numbers) <= WIDE:
        return []
    wanted = (max(numbers) - min(numbers)) / 8
    steps = [base * 10**power for power in range(-3, 9) for base in (1, 2, 5)]
    return [f"{next(step for step in steps if step >= wanted):g}"] if 0 < wanted <= steps[-1] else []


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _has_numbers(column: Column, name: str) -> bool:
    from noren.errors import QueryError
    from noren.estimates import numbers_of

    if column.is_open:
        return False
    try:
        return numbers_of(name, column.domain)[0] is not None
    except QueryError:
        return False


def _is_ranged(column: Column) -> bool:
    from noren.schema import CALENDAR, NUMERIC

    return not column.is_open and (column.domain.edges is not None or column.domain.kind in (*NUMERIC, *CALENDAR))


def check_release(
    stage: Stage,
    place: str,
    policy: str | None = None,
    original: str | None = None,
    signer: str | None = None,
    show: int = 0,
) -> dict[str, Any]:
    """Verify every requirement from the published cells."""
    from noren import open_release, verify

    with stage("Opening", None):
        release = open_release(place)
    with stage("Verifying", release.rows) as meter:
        found = verify(release, policy, original=original, signer=signer, show=show, meter=meter)
    return {
        "place": place,
        "holds": False if found.failed else None if found.undecided else True,
        "asked_signer": signer is not None,
        "with_original": original is not None,
        "verdicts": verdict_rows(found),
    }
