"""A run from table to release: what is noted of keys, registers and margins, what is signed, what is left in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import noren as nr
from noren.errors import DataError, ReleaseError, SecretError
from noren.secret import Secret, SigningKey
from noren.workflow.anonymize import run
from noren.workflow.republish import UNCOUNTED, UNREGISTERED

N = 24
PEOPLE = pl.DataFrame(
    {
        "pid": [f"p{i}" for i in range(N)],
        "town": ["Ulm", "Hof"] * (N // 2),
        "job": ["cook", "clerk", "smith", "nurse"] * (N // 4),
    }
)
ROLES: dict[str, Any] = {"pid": "identifier", "town": "quasi-identifier", "job": "sensitive"}


def rules(model: Any = None, **more: Any) -> nr.Policy:
    asked = model or nr.models.FrequencyLDiversity(on="job", l=2)
    return nr.Policy(
        mechanism="ignored", **({"attributes": ROLES, "require": [asked], "dependence": {"most": 1.0}} | more)
    )


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "noren.secret"
    Secret.create(path)
    return path


KEYED = {"randomness": {"record_key": "pid", "mode": "memoised"}}


def sets(release: nr.Release) -> list[str]:
    """Every record's town and set, in an order of their own."""
    return sorted(map(str, release.frame().rows()))


# ---------------------------------------------------------------- keys and registers


def test_drawn_by_the_secret_is_told(secret: Path) -> None:
    one, other = (run(PEOPLE, rules(**KEYED), secret=secret) for _ in range(2))
    assert one.facts.memoised
    assert other.facts.memoised
    assert sets(one.release) == sets(other.release)
    fresh = run(PEOPLE, rules())
    assert not fresh.facts.memoised
    Secret.create(secret.with_name("other"))
    classes = run(PEOPLE, rules(method="mondrian", **KEYED), secret=secret.with_name("other"))
    assert not classes.facts.memoised, "nothing is drawn"


@pytest.mark.parametrize("written", [False, True])
def test_what_was_released_is_remembered(written: bool, secret: Path, tmp_path: Path) -> None:
    """Also what is only held in memory: whoever gets it can intersect it with classes."""
    run(PEOPLE, rules(**KEYED), secret=secret, to=tmp_path / "release" if written else None)
    with pytest.raises(SecretError, match="24 people of this release are in earlier releases with sets of 'job'"):
        run(PEOPLE, rules(method="mondrian", **KEYED), secret=secret)


def test_keys_of_the_secret_are_unique(secret: Path) -> None:
    twice = PEOPLE.with_columns(pid=pl.when(pl.col("pid") == "p3").then(pl.lit("p4")).otherwise("pid"))
    with pytest.raises(DataError, match="'pid' is not unique: 1 records repeat"):
        run(twice, rules(people={"rows": "independent"}, **KEYED), secret=secret)
    run(twice, rules(people={"key": "pid"}, **KEYED), secret=secret)
    run(twice, rules(people={"rows": "independent"}))


def test_a_release_that_later_ones_must_keep_to_needs_a_register(secret: Path) -> None:
    invariant = {"model": nr.models.MInvariance(on="job", m=2), "method": "m-invariance"}
    assert UNREGISTERED in run(PEOPLE, rules(**invariant)).facts.notes
    kept = run(PEOPLE, rules(**invariant, randomness={"record_key": "pid"}), secret=secret)
    assert UNREGISTERED not in kept.facts.notes
    assert UNREGISTERED not in run(PEOPLE, rules()).facts.notes


def test_what_margins_spend_is_counted_by_a_register(secret: Path) -> None:
    margins = {"margins": [{"of": ["job"], "epsilon": 0.5}]}
    fresh = run(PEOPLE, rules(**margins))
    assert UNCOUNTED.format(0.5) in fresh.facts.notes
    assert [one.of for one in fresh.release.manifest.margins] == [("job",)]
    told = run(PEOPLE, rules(**margins, **KEYED), secret=secret).facts.notes
    assert [note.split(":")[0] for note in told if "margins spend" in note] == ["register"]
    assert not [note for note in run(PEOPLE, rules()).facts.notes if "margins spend" in note]


# ---------------------------------------------------------------- where it goes


def test_a_release_in_memory_cannot_be_signed_and_one_that_is_written_is(tmp_path: Path) -> None:
    key = SigningKey.create(tmp_path / "key")
    with pytest.raises(ReleaseError, match="a release in memory cannot be signed, because it has no descriptor"):
        run(PEOPLE, rules(), sign=key)
    for to, sign in ((tmp_path / "signed", key), (tmp_path / "plain", None)):
        assert run(PEOPLE, rules(), to=to, sign=sign).release.path == to
    nr.verify(tmp_path / "signed", signer=key.public)
    with pytest.raises(ReleaseError):
        nr.verify(tmp_path / "plain", signer=key.public)


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_a_release_that_is_written_says_the_same_as_one_in_memory(file_format: Any, tmp_path: Path) -> None:
    method = {"method": "mondrian"}
    held = run(PEOPLE, rules(**method))
    made = run(PEOPLE, rules(**method), to=tmp_path / "release", file_format=file_format)
    assert held.release.path is None
    assert sorted(made.release.frame().columns) == sorted(held.release.frame().columns)
    opened = nr.open_release(tmp_path / "release")
    assert (opened.records, made.facts.records, made.facts.suppressed) == (N, N, 0)
    assert sets(opened) == sets(made.release)
    suffixes = {path.suffix for path in (tmp_path / "release").iterdir()}
    assert (".csv" in suffixes) == (file_format == "csv")
    with pytest.raises(ReleaseError, match="exists"):
        run(PEOPLE, rules(**method), to=tmp_path / "release")


def test_people_with_several_rows_are_said_to_have_them(tmp_path: Path) -> None:
    twice = pl.concat([PEOPLE, PEOPLE])
    made = run(twice, rules(people={"key": "pid"}), to=tmp_path / "release").release
    assert made.manifest.rows_are_people is False
    assert PEOPLE.height * 2 == made.records
    assert set(made.frame().columns) == {"town", "job"}
    assert run(PEOPLE, rules()).release.manifest.rows_are_people is True


def test_losses_are_those_of_classes_and_none_of_decoys() -> None:
    assert run(PEOPLE, rules()).facts.losses == {}
    found = run(PEOPLE, rules(method=nr.methods.Mondrian(blind=False))).facts.losses
    assert found["classes"] == 2


@pytest.mark.parametrize("method", [nr.methods.Decoys(), nr.methods.Mondrian(blind=False)], ids=lambda one: one.name)
def test_texts_that_a_spreadsheet_would_compute_are_read_back_as_they_were(method: Any, tmp_path: Path) -> None:
    table = PEOPLE.with_columns(town=pl.Series(["=Ulm", "+Hof"] * (N // 2)))
    made = run(table, rules(method=method), to=tmp_path / "release", file_format="csv").release
    assert set(made.frame()["town"]) == {"=Ulm", "+Hof"}
