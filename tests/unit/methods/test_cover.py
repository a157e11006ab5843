"""What a class publishes for a column: the least general value that covers it, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noren.methods.cover import automatic_hierarchy, cover
from noren.schema.column import Column
from noren.schema.domain import MISSING, OTHER, Domain, bin_labels, number_text
from noren.schema.hierarchy import Hierarchy
from noren.schema.nodes import tree_of
from noren.schema.roles import Role


def facts(domain: Domain, hierarchy: Hierarchy | None = None) -> Column:
    return Column(role=Role.QUASI_IDENTIFIER).over("q", domain, hierarchy=hierarchy)


def integers(*values: int) -> Domain:
    return Domain(tuple(map(str, values)), "integer", "data")


def texts(*values: str) -> Domain:
    return Domain(values, "string", "data")


def made(column: Column) -> Hierarchy:
    """The automatic hierarchy of a column of which every value occurs."""
    return automatic_hierarchy(column, np.arange(column.d))


def covered(column, row: int) -> list[int]:
    return column.nodes.members(int(column.data[row])).tolist()


@st.composite
def classings(draw, most: int = 12):
    """Codes and classes; some classes are empty, some records have none."""
    d = draw(st.integers(1, most))
    n = draw(st.integers(1, 30))
    count = draw(st.integers(1, 6))
    codes = np.array(draw(st.lists(st.integers(0, d - 1), min_size=n, max_size=n)))
    classes = np.array(draw(st.lists(st.integers(-1, count - 1), min_size=n, max_size=n)))
    return d, codes, classes, count


def inside(codes: np.ndarray, classes: np.ndarray, row: int) -> set[int]:
    """The codes of a record's class."""
    return set(codes[classes == classes[row]].tolist())


# ---------------------------------------------------------------- with a hierarchy


@settings(max_examples=60)
@given(classings(), st.integers(1, 4))
def test_with_a_hierarchy_it_is_the_lowest_common_node(case, fanout):
    d, codes, classes, count = case
    values = tuple(f"v{i}" for i in range(d))
    levels = [values, *(tuple(f"h{h}.{i // (fanout + 1) ** h}" for i in range(d)) for h in (1, 2))]
    tree = Hierarchy(tuple(levels))
    column = cover(facts(texts(*values), tree), codes, classes, count)
    every = [set(tree_of(tree).nodes.members(i).tolist()) for i in range(len(column.nodes))]
    for row in np.flatnonzero(classes >= 0):
        wanted = inside(codes, classes, row)
        assert set(covered(column, row)) == min((node for node in every if node >= wanted), key=len)


def test_a_hierarchy_wins_over_the_order_of_numbers():
    domain = integers(1, 2, 3, 4)
    tree = Hierarchy((domain.values, ("odd", "even", "odd", "even")))
    column = cover(facts(domain, tree), np.array([0, 2, 1, 1]), np.array([0, 0, 1, 1]), 2)
    assert [column.nodes.labels[i] for i in column.data] == ["odd", "odd", "2", "2"]


# ---------------------------------------------------------------- intervals


@settings(max_examples=60)
@given(classings())
def test_numbers_become_the_narrowest_interval(case):
    d, codes, classes, count = case
    domain = integers(*range(10, 10 + 3 * d, 3))
    column = cover(facts(domain), codes, classes, count)
    for row in np.flatnonzero(classes >= 0):
        low, high = min(inside(codes, classes, row)), max(inside(codes, classes, row))
        assert covered(column, row) == list(range(low, high + 1))
        first, last = domain.values[low], domain.values[high]
        assert column.nodes.labels[column.data[row]] == (first if low == high else f"[{first}, {last}]")


def test_an_interval_of_declared_grades_follows_their_order():
    domain = Domain(("low", "middle", "high"), "string", "policy")
    column = cover(facts(domain), np.array([0, 1, 2]), np.array([0, 0, 1]), 2)
    assert [column.nodes.labels[i] for i in column.data] == ["[low, middle]", "[low, middle]", "high"]


def test_neighbouring_bins_are_joined():
    edges = (0, 18, 30, 45.5, 120)
    domain = Domain(bin_labels(edges), "string", "bins", edges=edges)
    column = cover(facts(domain), np.array([0, 1, 1, 3, 2]), np.array([0, 0, 1, 1, 2]), 3)
    labels = [column.nodes.labels[i] for i in column.data]
    assert labels == ["[0, 30)", "[0, 30)", "[18, 120]", "[18, 120]", "[30, 45.5)"]
    assert covered(column, 2) == [1, 2, 3]


def test_a_negative_number_reads_well():
    domain = integers(-5, -1, 4)
    column = cover(facts(domain), np.array([0, 2]), np.array([0, 0]), 1)
    assert column.nodes.labels == ("[-5, 4]",)


def test_merged_values_have_no_place_in_an_interval():
    domain = Domain(("1", "2", "3", OTHER), "integer", "data")
    assert not domain.is_ranked
    column = cover(facts(domain), np.array([0, 2, 3, 0, 1]), np.array([0, 0, 1, 2, 2]), 3)
    labels = [column.nodes.labels[i] for i in column.data]
    assert labels == ["{1, 3}", "{1, 3}", OTHER, "{1, 2}", "{1, 2}"]


def test_a_missing_value_stands_beside_an_interval():
    domain = Domain(("1", "2", "3", MISSING), "integer", "data")
    assert domain.is_ranked
    codes, classes = np.array([0, 2, 3, 0, 1, 0, 1, 3, 2, 3]), np.array([0, 0, 1, 2, 2, 3, 3, 3, 4, 4])
    column = cover(facts(domain), codes, classes, 5)
    labels = [column.nodes.labels[i] for i in column.data]
    both = ["[1, 2] or (missing)"] * 3 + ["3 or (missing)"] * 2
    assert labels == ["[1, 3]", "[1, 3]", MISSING, "[1, 2]", "[1, 2]", *both]
    assert [covered(column, row) for row in (0, 2, 5, 8)] == [[0, 1, 2], [3], [0, 1, 3], [2, 3]]


def test_missing_numbers_stand_beside_round_intervals():
    tree = made(facts(Domain((*map(str, range(30)), MISSING), "integer", "data")))
    assert tree.height > 1
    assert [level[-1] for level in tree.levels] == [MISSING] * tree.height + ["*"]


def test_missing_stands_beside_bins():
    edges = (0, 10, 20)
    domain = Domain((*bin_labels(edges), MISSING), "string", "bins", edges=edges)
    column = cover(facts(domain), np.array([0, 2, 1]), np.array([0, 0, 1]), 2)
    assert [column.nodes.labels[i] for i in column.data] == ["[0, 10) or (missing)"] * 2 + ["[10, 20]"]


# ---------------------------------------------------------------- sets


@settings(max_examples=60)
@given(classings(most=150))
def test_categories_become_exactly_what_the_class_holds(case):
    d, codes, classes, count = case
    domain = texts(*(f"v{i}" for i in range(d)))
    column = cover(facts(domain), codes, classes, count)
    for row in np.flatnonzero(classes >= 0):
        held = sorted(inside(codes, classes, row))
        assert covered(column, row) == held
        names = ", ".join(domain.values[code] for code in held)
        assert column.nodes.labels[column.data[row]] == (names if len(held) == 1 else f"{{{names}}}")


@pytest.mark.parametrize("d", [63, 64, 65, 128, 200])
def test_words_of_a_mask_do_not_blur(d):
    codes = np.array([0, d - 1, d // 2, min(63, d - 1), 0])
    column = cover(facts(texts(*(f"v{i}" for i in range(d)))), codes, np.array([0, 0, 1, 2, 2]), 3)
    assert covered(column, 0) == sorted({0, d - 1})
    assert covered(column, 2) == [d // 2]
    assert covered(column, 3) == sorted({0, min(63, d - 1)})


def test_small_codes_do_not_overflow():
    codes = np.array([250, 3], np.uint8)
    column = cover(facts(texts(*(f"v{i}" for i in range(251)))), codes, np.array([0, 0]), 1)
    assert covered(column, 0) == [3, 250]
    numbers = cover(facts(integers(*range(251))), codes, np.array([0, 0]), 1)
    assert numbers.nodes.labels == ("[3, 250]",)


@pytest.mark.parametrize("domain", [texts("a", "b", "c"), integers(1, 2, 3)])
@pytest.mark.parametrize("tree", [False, True])
def test_records_without_a_class_change_nothing(domain, tree):
    column = facts(domain, Hierarchy((domain.values,)) if tree else None)
    codes, classes = np.array([0, 1, 2, 1]), np.array([0, -1, -1, 0])
    with_others = cover(column, codes, classes, 1)
    alone = cover(column, codes[classes >= 0], classes[classes >= 0], 1)
    published = with_others.data[classes >= 0]
    assert [with_others.nodes.labels[i] for i in published] == [alone.nodes.labels[i] for i in alone.data]
    nobody = cover(column, codes, np.full(4, -1), 0)
    assert len(nobody.data) == 4


# ---------------------------------------------------------------- hierarchies made for a column


def test_a_given_hierarchy_stays():
    tree = Hierarchy((("a", "b"), ("*", "*")))
    assert made(facts(texts("a", "b"), tree)) is tree


@pytest.mark.parametrize(
    "domain",
    [
        texts(*"abcdefghijklmnopqrst"),
        integers(*range(16)),
        Domain((*map(str, range(30)), OTHER), "integer", "data"),
        Domain(bin_labels(range(31)), "string", "bins", edges=tuple(range(31))),
        Domain(tuple(f"g{i}" for i in range(30)), "string", "policy"),
    ],
    ids=["categories", "few numbers", "merged", "bins", "declared order"],
)
def test_what_has_no_round_intervals_hangs_under_a_root(domain):
    tree = made(facts(domain))
    assert tree.leaves == domain.values
    assert tree.height == 1


def interval(label: str) -> tuple[float, float]:
    low, high = label[1:-1].split(", ")
    return float(low), float(high)


@settings(max_examples=40)
@given(st.sets(st.integers(-10_000, 10_000), min_size=17, max_size=60), st.sampled_from([1, 0.1, 0.001, 1000]))
def test_intervals_are_round_nested_and_at_most_sixteen_widths_wide(numbers, unit):
    values = sorted(number * unit for number in numbers)
    labels = tuple(map(number_text, values))
    tree = made(facts(Domain(labels, "number", "data")))
    assert tree.height == 4
    assert set(tree.levels[-1]) == {"*"}
    widths = []
    for level in tree.levels[1:4]:
        spans = [interval(label) for label in level]
        assert all(low <= float(value) < high for value, (low, high) in zip(labels, spans, strict=True))
        (width,) = {float(f"{high - low:.6g}") for low, high in spans}
        widths.append(width)
    spread = values[-1] - values[0]
    assert spread / widths[0] <= 16 * (1 + 1e-9)
    assert spread / widths[0] > 16 / 2.6, "no wider than the next round step"
    assert float(f"{widths[0]:e}".split("e")[0]) in (1, 2, 5)
    assert widths[1:] == pytest.approx([2 * widths[0], 4 * widths[0]])


def test_ages_climb_by_five():
    tree = made(facts(integers(*range(17, 91))))
    assert [level[0] for level in tree.levels] == ["17", "[15, 20)", "[10, 20)", "[0, 20)", "*"]
