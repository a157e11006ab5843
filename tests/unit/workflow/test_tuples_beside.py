"""Composite columns of a release beside a policy: made of the same columns, or refused by name."""

from __future__ import annotations

import pytest

from noren.errors import ReleaseError
from noren.schema.column import Column
from noren.schema.roles import Role
from noren.workflow.truth import with_members
from tests.statements import meaning


def test_a_column_that_is_made_of_no_others_stays_as_it_is() -> None:
    single = meaning("job", 3, Role.SENSITIVE)
    assert with_members(Column(role=Role.SENSITIVE), single) is single
    texts = Column(role=Role.PLAIN).over("note", None)
    assert texts.is_open
    assert with_members(Column(role=Role.PLAIN), texts) is texts


def test_a_column_that_the_policy_makes_of_others_is_no_single_one() -> None:
    parts = {name: Column(role=Role.SENSITIVE) for name in ("code", "major")}
    declared = Column(role=Role.SENSITIVE).of_members(parts, ["code"])
    single = meaning("job", 3, Role.SENSITIVE)
    with pytest.raises(ReleaseError, match="'job' consists of itself alone in the release, but of 'code', 'major'"):
        with_members(declared, single)
