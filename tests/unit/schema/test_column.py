"""What a policy may say about one column."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from noren.schema.column import (
    Column,
    HierarchySpec,
    MatrixSpec,
    identifier,
    plain,
    quasi_identifier,
    sensitive,
    sensitive_quasi_identifier,
)
from noren.schema.hierarchy import Hierarchy
from noren.schema.roles import Role


def test_helpers_set_the_role_and_pass_options_on() -> None:
    assert identifier().role is Role.IDENTIFIER
    assert plain().role is Role.PLAIN
    assert quasi_identifier(missing="drop").missing == "drop"
    assert sensitive(values=["a", "b"]).values == ("a", "b")
    assert sensitive_quasi_identifier(bins=[0, 10]).role is Role.SENSITIVE_QUASI_IDENTIFIER


def test_only_secrets_need_a_requirement() -> None:
    needing = {role for role in Role if role.needs_requirement}
    assert needing == {Role.SENSITIVE, Role.SENSITIVE_QUASI_IDENTIFIER, Role.QUASI_SENSITIVE}


def test_values_are_kept_as_texts_in_their_order() -> None:
    assert sensitive(values=["01234", 7, 2.0, 0.5, True, "漢"]).values == ("01234", "7", "2", "0.5", "true", "漢")


def test_ways_to_give_a_hierarchy() -> None:
    assert sensitive(hierarchy="icd.csv").hierarchy == HierarchySpec(csv="icd.csv")
    assert sensitive(hierarchy={"prefix": [3, 1]}).hierarchy == HierarchySpec(prefix=(3, 1))
    tree = Hierarchy.from_tree({"a": ["b"]})
    assert sensitive(hierarchy=tree).hierarchy is tree


def test_ways_to_give_a_distance() -> None:
    assert sensitive().distance == "equal"
    assert sensitive(distance={"matrix": "far.csv"}).distance == MatrixSpec(matrix="far.csv")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"role": "secret"}, "Input should be 'identifier'"),
        ({"role": "sensitive", "value": ["a"]}, "Extra inputs are not permitted"),
        ({"role": "sensitive", "values": ["a", "a"]}, "lists an entry twice"),
        ({"role": "sensitive", "values": ["1", 1]}, "lists an entry twice"),
        ({"role": "sensitive", "values": []}, "values is empty"),
        ({"role": "sensitive", "values": ["a"], "bins": [0, 1]}, "values or bins, not both"),
        ({"role": "sensitive", "bins": [0, 10, 10]}, "bins need at least two edges"),
        ({"role": "sensitive", "bins": [10, 0]}, "bins need at least two edges"),
        ({"role": "sensitive", "bins": [0]}, "at least two edges"),
        ({"role": "sensitive", "bins": [0, float("nan")]}, "bins need at least two edges"),
        ({"role": "sensitive", "distance": "tree"}, "needs a hierarchy"),
        ({"role": "sensitive", "distance": "far"}, "'ordinal'"),
        ({"role": "sensitive", "hierarchy": {}}, "needs exactly one of its forms, got none"),
        ({"role": "sensitive", "hierarchy": {"prefix": [1], "widths": [5]}}, "needs exactly one of its forms"),
        ({"role": "sensitive", "hierarchy": {"levels": [["a"], ["*"]]}}, "Extra inputs are not permitted"),
        ({"role": "sensitive", "min_count": 0}, "greater than or equal to 1"),
        ({"role": "sensitive", "rare": "hide"}, "'merge' or 'refuse'"),
        ({"role": "sensitive", "missing": "ignore"}, "'category', 'drop' or 'reject'"),
    ],
)
def test_what_is_refused(options: dict, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Column(**options)


def test_attributes_do_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        plain().role = Role.SENSITIVE


def test_every_option_is_described() -> None:
    for kind in (Column, HierarchySpec, MatrixSpec):
        assert [name for name, field in kind.model_fields.items() if not field.description] == []
