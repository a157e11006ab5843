"""Registers that lie beside a policy: a table that does not have their key is none of theirs."""

from __future__ import annotations

from pathlib import Path

import polars as pl

import noren as nr

PEOPLE = pl.DataFrame({"id": [f"p{i}" for i in range(60)], "ill": ["a", "b", "c"] * 20})
ASKED = [nr.models.FrequencyLDiversity(on="ill", l=2)]


def test_a_table_without_the_key_of_a_register_beside_it_is_released(tmp_path: Path) -> None:
    nr.Secret.create(tmp_path / "key")
    keyed = nr.Policy(
        attributes={"id": "identifier", "ill": "sensitive"}, require=ASKED, randomness={"record_key": "id"}
    )
    nr.anonymize(PEOPLE, keyed, secret=tmp_path / "key")
    bare = nr.Policy(attributes={"ill": "sensitive"}, require=ASKED, base=tmp_path)
    assert nr.anonymize(PEOPLE.drop("id"), bare).records == 60
