"""Two releases of classes of overlapping people: who is left with too few values, counted person by person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr

N, L = 80, 3
ILLS = tuple("abcdef")


def people(seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame({"id": [f"p{i}" for i in range(N)], "age": rng.permutation(N) + 20, "ill": rng.choice(ILLS, N)})


def policy(method: str, model: str = "frequency-l-diversity") -> nr.Policy:
    asked = {"model": model, "on": "ill", **({"m": L} if model == "m-invariance" else {"l": L})}
    return nr.Policy(
        mechanism="ignored",
        attributes={
            "id": "identifier",
            "age": "quasi-identifier",
            "ill": {"role": "sensitive", "values": ILLS},
        },
        require=[asked],
        method={"name": method} | ({"counterfeits": 1.0} if method == "m-invariance" else {}),
        randomness={"record_key": "id"},
    )


def released(table: pl.DataFrame, rules: nr.Policy, folder: Path, name: str, **more: Any) -> Path:
    if not (folder / f"{name}.key").exists() and "secret" not in more:
        nr.Secret.create(folder / f"{name}.key")
    nr.anonymize(table, rules, to=folder / name, secret=more.get("secret", folder / f"{name}.key"))
    return folder / name


def classes(path: Path, table: pl.DataFrame) -> dict[str, set[str]]:
    """What the rows that cover a person's age may hold, for everybody who is in the table."""
    release = nr.open_release(path)
    age, ill = release.column("age"), release.column("ill")
    cells = release.cells(["age", "ill"])
    bounds, values = age.possible(cells["age"])
    told, held = ill.possible(cells["ill"])
    out: dict[str, set[str]] = {}
    for who, years in table.select("id", "age").rows():
        rows = [i for i in range(release.records)
                if str(years) in {age.domain.values[v] for v in values[bounds[i] : bounds[i + 1]]}]  # fmt: skip
        out[who] = {ill.domain.values[v] for i in rows for v in held[told[i] : told[i + 1]]}
    return out


@pytest.mark.parametrize("method", ["mondrian", "anatomy", "hilbert"])
def test_people_in_both_are_counted(method, tmp_path):
    one, two = people().head(60), people().tail(60)
    rules = policy(method)
    first, second = released(one, rules, tmp_path, "first"), released(two, rules, tmp_path, "second")
    two.write_csv(tmp_path / "two.csv")
    (found,) = nr.attack(
        first, "intersection", original=one, policy=rules, other=str(second), later=str(tmp_path / "two.csv")
    )
    before, after = classes(first, one), classes(second, two)
    both = [who for who in before if who in after]
    left = {who: len(before[who] & after[who]) for who in both}
    exposed = [who for who in both if left[who] < min(L, len(before[who]), len(after[who]))]
    assert found.facts["people"] == len(both) == 40
    assert (found.facts["m"], found.facts["exposed"]) == (L, len(exposed))
    last = found.scenarios[-1].summary
    assert last["alone"] == pytest.approx(np.mean([count == 1 for count in left.values()]))
    assert last["below"] == pytest.approx(np.mean([count < L for count in left.values()]))
    assert last["truth_lost"] == 0
    assert found.scenarios[0].summary["below"] == 0
    assert exposed or method != "anatomy", "classes may happen to expose nobody"


def test_m_invariant_releases_expose_nobody_and_rows_of_groups_are_recognised_without_the_original(tmp_path):
    one, two = people().head(60), people().tail(60)
    anatomy = policy("anatomy")
    first, second = released(one, anatomy, tmp_path, "a"), released(two, anatomy, tmp_path, "b")
    (seen,) = nr.attack(first, "intersection", other=str(second))
    assert seen.facts["matched"] == 40, "every age is one person's"
    assert seen.facts["exposed"] > 20
    assert not seen.holder_only
    rules = policy("m-invariance", "m-invariance")
    first = released(one, rules, tmp_path, "c")
    second = released(two, rules, tmp_path, "d", secret=tmp_path / "c.key")
    two.write_csv(tmp_path / "two.csv")
    (found,) = nr.attack(
        first, "intersection", original=one, policy=rules, other=str(second), later=str(tmp_path / "two.csv")
    )
    assert found.facts["exposed"] == 0
    assert found.scenarios[-1].summary["below"] == 0
    with pytest.raises(nr.errors.QueryError, match="cannot be matched to single people"):
        nr.attack(first, "intersection", other=str(second))


def test_keys_are_needed_to_know_who_is_in_both(tmp_path):
    rules = nr.Policy(
        mechanism="ignored",
        attributes=policy("anatomy").attributes,
        require=policy("anatomy").require,
        method={"name": "anatomy"},
    )
    for name in ("first", "second"):
        nr.anonymize(people(), rules, to=tmp_path / name)
    people().write_csv(tmp_path / "two.csv")
    with pytest.raises(nr.errors.QueryError, match="names no key of people"):
        nr.attack(
            tmp_path / "first",
            "intersection",
            original=people(),
            policy=rules,
            other=str(tmp_path / "second"),
            later=str(tmp_path / "two.csv"),
        )
