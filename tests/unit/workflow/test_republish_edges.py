"""What a register is told: by which key, in which mode, and which values the classes of a draft leave possible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.secret import KeyRule
from noren.workflow.prepare import prepare
from noren.workflow.republish import Registers, class_sets, publication
from noren.workflow.settling import settle_draft

PEOPLE = pl.DataFrame(
    {
        "id": [f"p{i}" for i in range(8)],
        "town": ["v", "v", "v", "v", "u", "u", "u", "u"],
        "ill": ["a", "b", "a", "c", "c", "d", "d", "e"],
    }
)
ROLES = {"id": "identifier", "town": "quasi-identifier", "ill": "sensitive"}


def rules(**more: Any) -> nr.Policy:
    given: dict[str, Any] = {"require": [nr.models.DistinctLDiversity(on="ill", l=2)], "mechanism": "ignored"}
    return nr.Policy(**({"attributes": ROLES, "method": {"name": "mondrian", "blind": False}} | given | more))


@pytest.mark.parametrize("mode", ["memoised", "fresh"])
def test_the_register_of_a_secret_goes_by_the_policys_key_and_mode(mode: str, tmp_path: Path) -> None:
    nr.Secret.create(tmp_path / "key")
    policy = rules(randomness={"record_key": "id", "mode": mode, "key_case": "keep"})
    (found,) = Registers(policy, tmp_path / "key").all
    assert (found.key, found.rule, found.memoised) == ("id", KeyRule("id", case="keep"), mode == "memoised")
    found.read(prepare(PEOPLE, policy))
    assert found.digests is not None
    assert len(set(found.digests.tolist())) == 8


def test_everybody_has_the_values_of_the_own_class() -> None:
    """Two towns of four people: a, b, c in the one, c, d, e in the other."""
    draft = settle_draft(prepare(PEOPLE, rules()), rules())
    sets = class_sets(draft, draft.by_name["ill"])
    assert sets is not None
    assert len(sets.bounds) == 3, "every different set stands once"
    words = ["".join(sets.values[c] for c in sets.codes[sets.bounds[w] : sets.bounds[w + 1]]) for w in sets.which]
    assert sorted(words) == ["abc"] * 4 + ["cde"] * 4
    by_town = dict(zip(PEOPLE["town"].to_list(), words, strict=True))
    assert by_town == {"v": "abc", "u": "cde"}


def test_people_with_several_records_are_told_once() -> None:
    table = PEOPLE.with_columns(id=pl.Series([f"p{i // 2}" for i in range(8)]))
    policy = rules(people={"key": "id"})
    draft = settle_draft(prepare(table, policy), policy)
    digests = np.array([9, 9, 3, 3, 5, 5, 1, 1], np.uint64)
    found = publication(draft, policy, digests, KeyRule("id"), memoised=False)
    assert found.people.tolist() == [1, 3, 5, 9]
    assert (found.memoised, found.drawn, found.classes["ill"].least) == (False, {}, 2)
