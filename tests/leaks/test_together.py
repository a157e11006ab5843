"""Three codings of one occupation: with sets of each nearly everybody is known, with sets of tuples nobody."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.errors import PolicyError
from noren.policy.proposal import draft
from noren.schema.tuples import tuple_parts
from noren.sources.source import open_source

CODINGS = ["OCCP02", "OCCP10", "SOCP10"]
L = 5
HEAD = """\
[attributes]
AGEP = { role = "plain" }
SEX = { role = "plain" }
OCCP02 = { role = "sensitive" }
OCCP10 = { role = "sensitive" }
SOCP10 = { role = "sensitive" }

[[require]]
model = "frequency-l-diversity"
on = ["OCCP02", "OCCP10", "SOCP10"]
l = 5
"""


@cache
def extract(n: int = 4000, codes: int = 60) -> pl.DataFrame:
    """A census extract: some codes of 2002 were joined in 2010, the classification of occupations is coarser."""
    rng = np.random.default_rng(14)
    common = 1 / np.arange(1, codes + 1) ** 0.7
    job = rng.choice(codes, n, p=common / common.sum())
    return pl.DataFrame(
        {
            "AGEP": rng.integers(18, 70, n),
            "SEX": rng.choice(["1", "2"], n),
            "OCCP02": [f"{10 * x + 10:04}" for x in job],
            "OCCP10": [f"{10 * (x - (x % 10 == 9)) + 7:04}" for x in job],
            "SOCP10": [f"{11 + x // 20}-{1000 + x // 2}" for x in job],
        }
    )


def known(release: nr.Release, table: pl.DataFrame, sets: dict[str, list[list[str]]]) -> float:
    """The share of people of whom all published sets together leave one occupation."""
    triples = list(table.select(CODINGS).unique().iter_rows())
    alone = 0
    for row in zip(*(sets[name] for name in CODINGS), strict=True):
        left = [one for one in triples if all(part in cell for part, cell in zip(one, row, strict=True))]
        alone += len(left) == 1
    return alone / release.records


def test_sets_of_each_coding_leave_one_occupation_and_are_refused() -> None:
    table = extract()
    free = nr.anonymize(table, nr.Policy.parse(HEAD + "[dependence]\nmost = 1.0\n"))
    frame = free.frame().head(600)
    assert known(free, table, {name: frame[name].to_list() for name in CODINGS}) * free.records / 600 > 0.9
    with pytest.raises(PolicyError) as caught:
        nr.anonymize(table, nr.Policy.parse(HEAD))
    text = str(caught.value)
    assert len(caught.value.problems) == 1, "columns that disclose each other are one group"
    assert all(repr(name) in text for name in CODINGS)
    assert 'together = ["OCCP02", "OCCP10", "SOCP10"]' in text


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_pasted_line_leaves_nobody_known(form: Any, tmp_path: Path) -> None:
    file = tmp_path / "acs.csv"
    extract().write_csv(file)
    policy = nr.Policy.parse('together = ["OCCP02", "OCCP10", "SOCP10"]\n' + HEAD)
    release = nr.anonymize(file, policy, to=tmp_path / "out", file_format=form)
    assert all(verdict.holds for verdict in nr.verify(tmp_path / "out", policy, original=file))
    (column,) = set(release.columns) - {"AGEP", "SEX"}
    rows = [[tuple_parts(text, 3) for text in one] for one in release.frame()[column].to_list()]
    for place in range(3):
        assert min(len({one[place] for one in row}) for row in rows) == L
    for attack in ("homogeneity", "bayes", "predictable"):
        for result in nr.attack(release, attack, original=file, policy=policy):
            for published in result.shown:
                if published.name != "raw":
                    assert published.summary.get("certain", 0.0) == 0.0, (attack, result.target, published.name)


def test_a_draft_hides_codings_of_one_secret_together(tmp_path: Path) -> None:
    secret = {"OCCP02": "diagnosis_a", "OCCP10": "diagnosis_b", "SOCP10": "illness"}
    table = extract().rename(secret)
    text = draft(open_source(table))
    assert 'together = ["diagnosis_a", "diagnosis_b", "illness"]' in text
    policy = nr.Policy.parse(text)
    release = nr.anonymize(table, policy)
    assert "diagnosis_a + diagnosis_b + illness" in release.columns
    for result in nr.attack(release, "bayes", original=table, policy=policy):
        for published in result.shown:
            if published.name != "raw":
                assert published.summary["certain"] <= 0.01


def test_a_draft_merges_rare_tuples_and_still_runs() -> None:
    table = extract(3000, 30).rename({"OCCP02": "diagnosis_a", "OCCP10": "diagnosis_b"}).drop("SOCP10")
    odd = table.head(4).with_columns(diagnosis_b=pl.lit("9999"))
    table = pl.concat([table, odd])
    text = draft(open_source(table))
    assert "[[together]]" in text
    policy = nr.Policy.parse(text)
    release = nr.anonymize(table, policy)
    assert "9999" not in str(release.column("diagnosis_a + diagnosis_b").domain.values)
