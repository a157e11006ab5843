"""The worked example of paper 003: diseases of the ICD, and records that stay far apart in it (tables 1 to 7).

Source: tables 1, 3 and 7 of the paper. Places in the tree are those of ICD-10-CM 2026 (chapter, block, category, code);
HIV-1 of group M and HIV-2 are told apart below their category, as the paper does and the ICD does not.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.designs.semantic.design import SemanticDesign
from noren.models import SemanticDiversity

ICD = {
    "Vocal folds polyp": ("10", "J30-J39", "J38", "J38.1"),
    "HIV-2": ("1", "B20", "B20", "B20 HIV-2"),
    "HIV-1(M)": ("1", "B20", "B20", "B20 HIV-1(M)"),
    "Tooth decay": ("11", "K00-K14", "K02", "K02.9"),
    "Cecum": ("2", "C15-C26", "C18", "C18.0"),
    "Gastric ulcer": ("11", "K20-K31", "K25", "K25.9"),
}
TABLE_1 = pl.DataFrame(
    {
        "name": ["Alice", "Becky", "Catriona", "Daisy", "Eddy", "Fred", "Gabriel"],
        "gender": ["Female"] * 4 + ["Male"] * 3,
        "age": [24, 16, 21, 22, 34, 34, 48],
        "zip": ["999-4565", "999-5636", "999-4557", "999-4531", "999-1332", "999-1335", "999-1337"],
        "disease": ["Vocal folds polyp", "HIV-2", "HIV-1(M)", "HIV-1(M)", "Tooth decay", "Cecum", "Gastric ulcer"],
    }
)
TABLE_7 = [("Vocal folds polyp", "HIV-2"), ("HIV-2", "Tooth decay"), ("HIV-1(M)", "Cecum")]
VALUES = list(ICD)


def tree() -> dict[str, dict[str, dict[str, list[str]]]]:
    out: dict[str, dict[str, dict[str, list[str]]]] = {}
    for disease, (chapter, block, category, _) in ICD.items():
        blocks = out.setdefault(f"chapter {chapter}", {}).setdefault(f"block {block}", {})
        blocks.setdefault(f"category {category}", []).append(disease)
    return out


def heights() -> np.ndarray:
    """How far up two diseases meet: 1 in a category, 2 in a block, 3 in a chapter, 4 at the root."""
    places = list(ICD.values())
    return np.array(
        [[0 if a == b else 4 - sum(x == y for x, y in zip(a[:3], b[:3], strict=True)) for b in places] for a in places]
    )


DISEASE = {"role": "sensitive", "hierarchy": {"tree": tree()}, "distance": "tree"}
APART = {"model": "semantic-diversity", "on": "disease", "l": 2, "d": 4}


def test_the_pairs_of_table_7_are_four_apart_and_the_two_kinds_of_hiv_one() -> None:
    far = heights()
    assert all(far[VALUES.index(one), VALUES.index(other)] >= 4 for one, other in TABLE_7)
    assert far[VALUES.index("HIV-2"), VALUES.index("HIV-1(M)")] == 1
    assert far[VALUES.index("Tooth decay"), VALUES.index("Gastric ulcer")] == 3


def test_table_3_is_diverse_and_means_hiv_for_two_of_its_people() -> None:
    """Two values in every class, but B and C share a class whose values are one apart."""
    table = TABLE_1.with_columns(pl.Series("class", ["AD", "BC", "BC", "AD", "EFG", "EFG", "EFG"])).drop("name")
    found = nr.measure(table, quasi=["class"], sensitive=["disease"])
    assert found.value("distinct-l-diversity", "disease") == 2
    pair = [VALUES.index(d) for d in table.filter(pl.col("class") == "BC")["disease"]]
    assert heights()[pair[0], pair[1]] < 4


@pytest.mark.parametrize("form", ["sets", "records"])
def test_table_1_becomes_a_release_like_table_7(form: str) -> None:
    """Every person keeps the quasi-identifiers and has two diseases four apart, the true one among them."""
    roles = {"name": "identifier", "gender": "plain", "age": "plain", "zip": "plain", "disease": DISEASE}
    policy = nr.Policy(
        attributes=roles,
        require=[APART],
        method={"name": "decoys", "form": form},
        people={"rows": "independent"},
        dependence={"most": 1.0},
    )
    release = nr.anonymize(TABLE_1, policy)
    assert all(verdict.holds for verdict in nr.verify(release))
    cells = release.frame()
    assert cells.height == (7 if form == "sets" else 14)
    places = {value: i for i, value in enumerate(VALUES)}
    for row in TABLE_1.iter_rows(named=True):
        own = cells.filter(pl.col("zip") == row["zip"])["disease"].to_list()
        held = own[0] if form == "sets" else own
        one, other = sorted(places[value] for value in held)
        assert row["disease"] in held
        assert heights()[one, other] >= 4


def test_sets_of_the_example_leave_every_member_as_likely() -> None:
    design = SemanticDesign.make("flat", heights().astype(float), 2, 4)
    assert design.worst_belief() == pytest.approx(0.5)
    assert SemanticDiversity(on="disease", l=2, d=4).most_belief == 0.5
