"""Generalisation hierarchies: the ways to write one, what is refused, and what can be asked of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from noren.errors import NorenError
from noren.schema.domain import MISSING, OTHER
from noren.schema.hierarchy import Hierarchy, HierarchyError, value_text

ARX = """\
13021;1302*;130**;*
13022;1302*;130**;*
14850;1485*;148**;*
"""


def write(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    path = folder / "tree.csv"
    path.write_text(text, encoding=encoding)
    return path


def test_a_csv_in_arx_layout_gives_one_level_per_column(tmp_path: Path) -> None:
    tree = Hierarchy.read_csv(write(tmp_path, ARX))
    assert tree.leaves == ("13021", "13022", "14850")
    assert tree.levels[1:] == (("1302*", "1302*", "1485*"), ("130**", "130**", "148**"), ("*", "*", "*"))
    assert tree.height == 3


@pytest.mark.parametrize("separator", [",", "\t", "|"])
def test_other_separators_are_found(tmp_path: Path, separator: str) -> None:
    assert Hierarchy.read_csv(write(tmp_path, ARX.replace(";", separator))).height == 3


def test_quotes_spaces_blank_lines_and_a_byte_order_mark_do_not_matter(tmp_path: Path) -> None:
    tree = Hierarchy.read_csv(write(tmp_path, ' "Grün; hell" ;Farbe;*\n\n紅; Farbe ;*\n'.lstrip(), "utf-8-sig"))
    assert tree.leaves == ("Grün; hell", "紅")
    assert tree.levels[1] == ("Farbe", "Farbe")


def test_a_tree_without_a_common_root_gets_one(tmp_path: Path) -> None:
    tree = Hierarchy.read_csv(write(tmp_path, "a;vowel\nb;consonant\n"))
    assert tree.levels[-1] == ("*", "*")
    assert tree.height == 2
    alone = Hierarchy.read_csv(write(tmp_path, "only\n"))
    assert alone.levels == (("only",), ("*",))


def test_rows_of_unequal_length_are_refused_with_their_line(tmp_path: Path) -> None:
    with pytest.raises(HierarchyError, match="line 4 has 2 levels, line 1 has 3"):
        Hierarchy.read_csv(write(tmp_path, "a;g;*\nb;g;*\n\nc;*\n"))


def test_two_parents_are_refused_by_the_name_of_the_node(tmp_path: Path) -> None:
    with pytest.raises(HierarchyError, match="node 'flu' at level 1 has two parents, 'lung' and 'virus'"):
        Hierarchy.read_csv(write(tmp_path, "H1N1;flu;lung;*\nH5N1;flu;virus;*\n"))


def test_a_repeated_leaf_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(HierarchyError, match="value 'H1N1' is in more than one line"):
        Hierarchy.read_csv(write(tmp_path, "H1N1;flu;*\nH5N1;flu;*\nH1N1;cold;*\n"))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(HierarchyError, match="no such file"):
        Hierarchy.read_csv(tmp_path / "absent.csv")
    with pytest.raises(HierarchyError, match="cannot be read"):
        Hierarchy.read_csv(tmp_path)
    with pytest.raises(HierarchyError, match="empty"):
        Hierarchy.read_csv(write(tmp_path, "\n\n"))
    with pytest.raises(HierarchyError, match="not UTF-8 at byte 1"):
        Hierarchy.read_csv(write(tmp_path, "Müll;*\n", "cp1252"))


def test_short_branches_of_a_nested_tree_are_padded_with_their_leaf() -> None:
    tree = Hierarchy.from_tree({"lung": {"virus": ["flu", "corona"], "bacteria": ["pneumonia"]}, "bone": ["fracture"]})
    assert tree.leaves == ("flu", "corona", "pneumonia", "fracture")
    assert tree.levels[1] == ("virus", "virus", "bacteria", "fracture")
    assert tree.levels[2] == ("lung", "lung", "lung", "bone")
    assert tree.levels[3] == ("*",) * 4


def test_a_nested_tree_takes_numbers_and_booleans() -> None:
    assert Hierarchy.from_tree({"low": [1, 2.0], "high": [3.5, True]}).leaves == ("1", "2", "3.5", "true")


def test_a_lone_star_is_the_root() -> None:
    assert Hierarchy.from_tree({"*": ["a", "b"]}).levels == (("a", "b"), ("*", "*"))
    assert Hierarchy.from_tree({"top": ["a", "b"]}).height == 2


def test_a_nested_tree_without_values_is_refused() -> None:
    with pytest.raises(HierarchyError, match="no values"):
        Hierarchy.from_tree({"a": [], "b": {}})


def test_prefix_masks() -> None:
    tree = Hierarchy.from_prefixes(("13021", "14850", "130", MISSING), [3, 1])
    assert tree.levels[1] == ("130**", "148**", "130", MISSING)
    assert tree.levels[2] == ("1****", "1****", "1**", MISSING)
    assert tree.levels[3] == ("*",) * 4


@pytest.mark.parametrize("lengths", [[1, 3], [2, 2], [3, -1]])
def test_prefix_lengths_must_fall(lengths: list[int]) -> None:
    with pytest.raises(HierarchyError, match="in descending order"):
        Hierarchy.from_prefixes(("13021",), lengths)


def test_widths_count_from_zero_and_cover_negative_numbers() -> None:
    tree = Hierarchy.from_widths(("-3", "4", "5", "19.5", OTHER), [5, 10])
    assert tree.levels[1] == ("[-5, 0)", "[0, 5)", "[5, 10)", "[15, 20)", OTHER)
    assert tree.levels[2] == ("[-10, 0)", "[0, 10)", "[0, 10)", "[10, 20)", OTHER)


def test_widths_may_count_from_elsewhere() -> None:
    assert Hierarchy.from_widths(("3", "7", "8"), [5], start=3).levels[1] == ("[3, 8)", "[3, 8)", "[8, 13)")


def test_widths_of_tenths_put_every_tenth_where_it_belongs() -> None:
    tree = Hierarchy.from_widths(("0.2", "0.3", "0.7"), [0.1, 0.3])
    assert tree.levels[1] == ("[0.2, 0.3)", "[0.3, 0.4)", "[0.7, 0.8)")
    assert tree.levels[2] == ("[0, 0.3)", "[0.3, 0.6)", "[0.6, 0.9)")


def test_widths_do_not_list_the_intervals_between_far_values() -> None:
    assert Hierarchy.from_widths(("0", "1000000000000"), [1]).levels[1] == ("[0, 1)", "[1000000000000, 1000000000001)")


@pytest.mark.parametrize(
    ("values", "widths", "message"),
    [
        (("1",), [5, 12], "12 is not a multiple of 5"),
        (("1",), [10, 5], "5 is not a multiple of 10"),
        (("1",), [0], "not all positive"),
        (("1",), [float("inf")], "not all positive"),
        (("one",), [5], "needs numbers"),
        (("nan",), [5], "needs numbers"),
    ],
)
def test_widths_that_make_no_tree(values: tuple[str, ...], widths: list[float], message: str) -> None:
    with pytest.raises(HierarchyError, match=message):
        Hierarchy.from_widths(values, widths)


def test_a_column_of_missing_cells_has_no_widths() -> None:
    assert Hierarchy.from_widths((MISSING,), [5]).levels == ((MISSING,), (MISSING,), ("*",))


def test_intervals_are_half_open_and_the_last_one_closed() -> None:
    tree = Hierarchy.from_edges(("0", "18", "64", "120", MISSING), [[0, 18, 65, 120], [0, 120]])
    assert tree.levels[1] == ("[0, 18)", "[18, 65)", "[18, 65)", "[65, 120]", MISSING)
    assert tree.levels[2] == ("[0, 120]",) * 4 + (MISSING,)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([[0, 10, 10, 20]], "not in ascending order"),
        ([[20, 0]], "not in ascending order"),
        ([[5]], "not in ascending order"),
        ([[0, 10]], "do not cover all values"),
        ([[0, 10, 30], [0, 5, 30]], r"'\[0, 10\)' at level 1 has two parents"),
    ],
)
def test_intervals_that_make_no_tree(edges: list[list[float]], message: str) -> None:
    with pytest.raises(HierarchyError, match=message):
        Hierarchy.from_edges(("2", "7", "15"), edges)


def test_restricted_keeps_the_order_asked_for_and_hangs_special_values_under_the_root() -> None:
    tree = Hierarchy.from_tree({"fruit": ["apple", "pear"], "tool": ["saw"]})
    part = tree.restrict_to(("saw", MISSING, "apple"))
    assert part.leaves == ("saw", MISSING, "apple")
    assert part.levels[1:] == (("tool", MISSING, "fruit"), ("*", "*", "*"))
    assert tree.missing(("saw", "axe", MISSING, OTHER, "oak")) == ["axe", "oak"]


def test_groups_number_the_labels_in_leaf_order() -> None:
    tree = Hierarchy.from_tree({"tool": ["saw"], "fruit": ["apple", "pear"]}).restrict_to(("pear", "saw", "apple"))
    labels, groups = tree.groups(1)
    assert labels == ("fruit", "tool")
    assert groups.tolist() == [0, 1, 0]
    assert tree.groups(0)[1].tolist() == [0, 1, 2]
    assert tree.groups(2)[0] == ("*",)


def test_heights_of_lowest_common_ancestors() -> None:
    tree = Hierarchy.from_tree({"lung": {"virus": ["flu", "corona"], "bacteria": ["tb"]}, "bone": ["fracture"]})
    expected = [[0, 1, 2, 3], [1, 0, 2, 3], [2, 2, 0, 3], [3, 3, 3, 0]]
    assert np.array_equal(tree.lca_heights(), expected)


def test_errors_are_this_packages_own_and_carry_a_remedy() -> None:
    with pytest.raises(NorenError) as caught:
        Hierarchy.from_prefixes(("a",), [1, 2])
    assert caught.value.hint


@pytest.mark.parametrize(
    ("value", "text"), [(True, "true"), (False, "false"), (18.0, "18"), (0.5, "0.5"), (7, "7"), ("01", "01")]
)
def test_value_text(value: object, text: str) -> None:
    assert value_text(value) == text
