"""Distances in a hierarchy whose values may have several parents."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import noren as nr
from noren.schema.distance import DistanceError, read_semilattice, semilattice, tree
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy

# after the idea of paper 003's Figure 3: one illness that belongs to two groups
ILLS = Domain(("flu", "cold", "hepatitis", "ulcer", "gastritis"))
PAIRS = [
    ("flu", "virus"),
    ("cold", "virus"),
    ("hepatitis", "virus"),
    ("hepatitis", "stomach"),
    ("ulcer", "stomach"),
    ("gastritis", "stomach"),
    ("virus", "any"),
    ("stomach", "any"),
]


def test_siblings_cousins_and_a_value_with_two_parents() -> None:
    expected = [
        [0, 1, 1, 2, 2],
        [1, 0, 1, 2, 2],
        [1, 1, 0, 1, 1],
        [2, 2, 1, 0, 1],
        [2, 2, 1, 1, 0],
    ]
    assert np.array_equal(semilattice(PAIRS, ILLS), expected)


def test_the_nearer_of_two_common_ancestors_counts() -> None:
    """flu and hepatitis share the group and the root; one more line to a far group changes nothing."""
    more = [*PAIRS, ("flu", "winter"), ("ulcer", "winter"), ("winter", "season"), ("season", "any")]
    found = semilattice(more, ILLS)
    assert found[0, 2] == 1
    assert found[0, 3] == 1, "flu and ulcer are siblings in winter"
    assert found[1, 3] == 3, "cold and ulcer meet at the root, now three steps above the deepest value"


def test_a_height_is_the_longest_way_down() -> None:
    """b hangs directly under the root, a two steps below it: they meet at height 2."""
    found = semilattice([("a", "group"), ("group", "root"), ("b", "root")], Domain(("a", "b")))
    assert np.array_equal(found, [[0, 2], [2, 0]])


def test_a_value_may_be_the_parent_of_another() -> None:
    pairs = [("animal", "all"), ("dog", "animal"), ("cat", "animal")]
    found = semilattice(pairs, Domain(("animal", "dog", "cat")))
    assert np.array_equal(found, [[0, 1, 1], [1, 0, 1], [1, 1, 0]])


def test_the_order_of_the_lines_and_repeated_lines_do_not_matter() -> None:
    mixed = random.Random(3).sample(PAIRS, len(PAIRS)) + PAIRS[:3]
    assert np.array_equal(semilattice(mixed, ILLS), semilattice(PAIRS, ILLS))


def test_lines_for_values_outside_the_domain_are_ignored() -> None:
    few = Domain(("ulcer", "flu"))
    assert np.array_equal(semilattice(PAIRS, few), [[0, 2], [2, 0]])


@pytest.mark.parametrize(
    "pairs",
    [
        [("a", "a"), ("b", "a")],
        [("a", "g"), ("g", "h"), ("h", "g"), ("b", "g")],
        [("a", "b"), ("b", "a")],
    ],
    ids=["its own parent", "above a value", "two values"],
)
def test_cycles_are_refused(pairs: list[tuple[str, str]]) -> None:
    with pytest.raises(DistanceError, match="its own ancestor"):
        semilattice(pairs, Domain(("a", "b")))


def test_a_value_without_a_line_is_named() -> None:
    with pytest.raises(DistanceError, match="no line for 'plague', 'scurvy'") as caught:
        semilattice(PAIRS, Domain((*ILLS.values, "plague", "scurvy")))
    assert caught.value.absent == ("plague", "scurvy")


def test_values_without_a_common_ancestor() -> None:
    with pytest.raises(DistanceError, match="no common ancestor") as caught:
        semilattice([("a", "g"), ("b", "h")], Domain(("a", "b")))
    assert caught.value.hint == "Give all values a common root."


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_a_tree_is_a_semilattice(data: st.DataObject) -> None:
    """Where every value has one parent and all are equally deep, both distances agree."""
    n = data.draw(st.integers(2, 8))
    groups = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    chapters = data.draw(st.lists(st.integers(0, 1), min_size=4, max_size=4))
    rows = [[f"v{i}", f"g{g}", f"c{chapters[g]}", "*"] for i, g in enumerate(groups)]
    domain = Domain(tuple(row[0] for row in rows))
    pairs = [pair for row in rows for pair in pairwise(row)]
    assert np.array_equal(semilattice(pairs, domain), tree(domain, Hierarchy.from_rows(rows)))


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_file_of_pairs(separator: str, tmp_path: Path) -> None:
    path = tmp_path / "ills.csv"
    lines = [f" {child} {separator}{parent}" for child, parent in PAIRS]
    path.write_text("\n".join([*lines[:4], "", *lines[4:]]) + "\n", encoding="utf-8-sig")
    assert np.array_equal(read_semilattice(path, ILLS), semilattice(PAIRS, ILLS))


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "ills.csv"
    with pytest.raises(DistanceError, match="no such file"):
        read_semilattice(path, ILLS)
    for text in ("flu,virus,any\n", "flu\ncold\n"):
        path.write_text(text)
        with pytest.raises(DistanceError, match="not child,parent"):
            read_semilattice(path, ILLS)
    path.write_text("")
    with pytest.raises(DistanceError, match="no line for 'flu'"):
        read_semilattice(path, ILLS)
    path.write_bytes(b"fl\xfc,virus\n")
    with pytest.raises(DistanceError, match="not UTF-8 at byte 2"):
        read_semilattice(path, ILLS)


# ---------------------------------------------------------------- in a policy

REQUIRE = {"model": "semantic-diversity", "on": "ill", "l": 2, "d": 2}


def policy(folder: Path, **more: object) -> nr.Policy:
    (folder / "ills.csv").write_text("".join(f"{child},{parent}\n" for child, parent in PAIRS))
    ill = {"role": "sensitive", "distance": {"semilattice": "ills.csv"}, **more}
    return nr.Policy(
        attributes={"ill": ill}, require=[REQUIRE], method={"name": "decoys", "allow_unidentifiable": True}, base=folder
    )


def test_a_policy_with_a_semilattice_publishes_its_distances(tmp_path: Path) -> None:
    ills = [v for v in ILLS.values if v != "hepatitis"]
    table = pa.table({"ill": ills * 10})
    release = nr.anonymize(table, policy(tmp_path), to=tmp_path / "release")
    opened = nr.open_release(tmp_path / "release")
    entry = opened.column("ill").column
    assert entry.domain.values == ("cold", "flu", "gastritis", "ulcer")
    assert np.array_equal(entry.distances, [[0, 1, 2, 2], [1, 0, 2, 2], [2, 2, 0, 1], [2, 2, 1, 0]])
    virus, stomach = {"cold", "flu"}, {"gastritis", "ulcer"}
    assert all(len(virus & set(cell)) == len(stomach & set(cell)) == 1 for cell in opened.frame()["ill"].to_list())
    assert nr.verify(opened) == nr.verify(release)
    assert [verdict.holds for verdict in nr.verify(opened)] == [True]


def test_a_value_near_everything_has_no_partner(tmp_path: Path) -> None:
    """hepatitis is a sibling of all others."""
    with pytest.raises(nr.errors.PolicyError, match="'hepatitis'") as caught:
        nr.anonymize(pa.table({"ill": list(ILLS.values) * 10}), policy(tmp_path))
    (problem,) = caught.value.problems
    assert problem.message.startswith("1 of 5 values")
    assert problem.hint == "d = 1 works at l = 2."


def test_rare_values_are_counted_not_named(tmp_path: Path) -> None:
    rare, common = "Qz-syndrome", "measles"
    table = pa.table({"ill": [*ILLS.values] * 10 + [rare] + [common] * 7})
    with pytest.raises(nr.errors.PolicyError) as caught:
        nr.anonymize(table, policy(tmp_path))
    text = str(caught.value)
    assert rare not in text
    assert "the semilattice has no line for 'measles' and 1 rare value (not shown" in text


def test_declared_values_without_a_line_are_named(tmp_path: Path) -> None:
    with pytest.raises(nr.errors.PolicyError, match="the semilattice has no line for 'plague'"):
        nr.anonymize(pa.table({"ill": ["flu"] * 10}), policy(tmp_path, values=["flu", "ulcer", "plague"]))


def test_a_misspelt_key_is_told_all_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(nr.errors.PolicyError) as caught:
        nr.Policy(attributes={"ill": {"role": "sensitive", "distance": {"semilatice": "x.csv"}}}, require=[REQUIRE])
    assert "unknown key 'semilatice'" in str(caught.value)
    assert "Did you mean 'semilattice'?" in str(caught.value)
