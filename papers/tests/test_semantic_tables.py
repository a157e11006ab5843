"""Tables 7 and 11 of the semantic-diversity paper: the tree of diseases, and what 13 quasi-identifiers tell."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.designs import SemanticDesign
from noren.errors import PolicyError
from noren.schema.column import quasi_identifier, sensitive
from noren.schema.hierarchy import Hierarchy
from noren_papers.base import Bench, Result, ratios
from noren_papers.claims import HOLDS, IN_PART, Answer
from noren_papers.datasets import load
from noren_papers.semantic.combinations import OURS, SIMPLE, Point, sheet_of
from noren_papers.semantic.icd import EXAMPLE, PAIRS, belief, distance, table_7
from noren_papers.semantic.material import schooling_tree
from noren_papers.semantic.thirteen import QUASI, table_11, told


@pytest.fixture(scope="module")
def codes() -> pl.DataFrame:
    return load("icd", None, rows=600)[0]


def test_diseases_of_different_chapters_are_four_apart(codes: pl.DataFrame) -> None:
    at = EXAMPLE
    assert [distance(codes, at[one], at[other]) for one, other in PAIRS] == [4, 4, 4]
    assert distance(codes, at["HIV-1(M)"], at["HIV-2"]) == 3
    assert distance(codes, at["tooth decay"], at["gastric ulcer"]) == 3
    assert distance(codes, "B20", "B20") == 0
    full = codes.group_by("category").agg("code").filter(pl.col("code").list.len() > 1).sort("category")
    one, other = full["code"][0].to_list()[:2]
    assert distance(codes, one, other) == 1


def test_the_likelier_disease_of_a_set_is_the_one_with_fewer_decoys() -> None:
    """The closed form against the design's own law, on chapters of 5, 3, 2 and 1 codes."""
    sizes = (5, 3, 2, 1)
    chapter = [f"chapter {i}" for i, size in enumerate(sizes) for _ in range(size)]
    tree = Hierarchy((tuple(f"code {i}" for i in range(11)), tuple(chapter), ("any",) * 11))
    far = tree.lca_heights().astype(float)
    simple, flat = (SemanticDesign.make(kind, far, 2, 2) for kind in ("simple", "flat"))
    likeliest = max(belief(11, n, m) for n, m in combinations(sizes, 2))
    assert simple.worst_belief() == pytest.approx(likeliest) == pytest.approx(10 / 16)
    assert flat.worst_belief() == pytest.approx(0.5)
    assert belief(11, 3, 3) == 0.5


def test_schooling_is_told_by_its_number_and_by_nothing_else() -> None:
    frame = load("adult", None, rows=4_000)[0]
    assert told(frame, "education-num", "education") == 1.0
    assert told(frame, "sex", "education") == 0.0
    small = pl.DataFrame({"a": ["x", "x", "y", "y", "z"], "b": ["1", "1", "1", "2", "3"]})
    assert told(small, "a", "b") == 0.4, "a single record is no rule"


def test_schooling_beside_its_number_is_refused() -> None:
    tree = schooling_tree()
    policy = nr.Policy(
        attributes={
            "education": sensitive(values=tree.leaves, distance="tree", hierarchy=tree),
            "education-num": quasi_identifier(),
        },
        require=[{"model": "semantic-diversity", "on": "education", "l": 2, "d": 3}],
        method={"name": "decoys"},
    )
    with pytest.raises(PolicyError, match="'education' and 'education-num' disclose each other"):
        nr.anonymize(load("adult", None, rows=4_000)[0].select("education", "education-num"), policy)


def test_combinations_are_compared_where_both_have_an_error() -> None:
    def point(series: str, mse: float | None) -> Point:
        return Point(series, mse, None if mse is None else 0.1, 2)

    places = {"one": (1.0, 2.0, 4.0), "two": (None, 2.0, 1.0)}
    sheet = sheet_of(
        ({"place": place}, point(name, mse))
        for place, at in places.items()
        for name, mse in zip("abc", at, strict=True)
    )
    assert ratios(sheet, ("place",), "a", ("b", "c"), "mse") == {"one": 0.5}
    assert ratios(sheet, ("place",), "b", ("a", "c"), "mse") == {"one": 2.0, "two": 2.0}


def _answer(result: Result, beginning: str) -> Answer:
    return next(answer for text, answer in result.answers.items() if text.startswith(beginning))


def test_table_7_counts_pairs_of_chapters() -> None:
    found = table_7(Bench(None, quick=True, seed="test"))
    assert _answer(found, "Vocal").verdict == HOLDS
    assert _answer(found, "Vocal").count == "3 of 3"
    chapters = found.sheets["chapters"]
    assert chapters.height == 22 * 21 // 2
    assert chapters["belief"].min() == pytest.approx(0.5, abs=0.05)
    assert (chapters["belief"] >= 0.5).all()
    assert np.isfinite(found.sheets[""].filter(pl.col("series").is_in([OURS, SIMPLE[0]]))["mse"].to_numpy()).all()


def test_table_11_asks_for_every_attribute_but_the_secret() -> None:
    found = table_11(Bench(None, quick=True, seed="test"))
    assert _answer(found, "With the 13").verdict == IN_PART
    assert found.sheets[""]["attribute"].unique().len() == len(QUASI) - 1 == 13
