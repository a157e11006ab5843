"""A second release of the same people in other classes: whoever intersects both learns what neither tells alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.methods import METHODS
from noren.methods.base import ClassMethod
from noren.secret import Register

N, L = 90, 3
ILLS = tuple("abcdef")
GENERAL = [name for name, kind in METHODS.items() if issubclass(kind, ClassMethod) and name != "suppress"]
"""Methods of classes; `suppress` is about terms, which a register does not keep."""
LARGE = ("sweep", "incognito", "auto", "local-suppression", "three-phase", "microaggregation")
"""Methods that may form classes so large that any two of them share enough values."""


def people(seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "id": [f"p{i}" for i in range(N)],
            "age": rng.integers(20, 60, N),
            "town": rng.choice(["north", "south", "west"], N),
            "ill": rng.choice(ILLS, N),
        }
    )


def policy(method: str, **randomness: Any) -> nr.Policy:
    asked: list[dict[str, Any]] = [{"model": "frequency-l-diversity", "on": "ill", "l": L}]
    if method == "microaggregation":
        asked.append({"model": "k-anonymity", "k": 2})
    return nr.Policy(
        mechanism="ignored",
        attributes={
            "id": "identifier",
            "age": {"role": "quasi-identifier"},
            "town": "quasi-identifier",
            "ill": {"role": "sensitive", "values": ILLS},
        },
        require=asked,
        method={"name": method},
        randomness={"record_key": "id", **randomness},
    )


@pytest.fixture
def key(tmp_path) -> Path:
    nr.Secret.create(tmp_path / "key")
    return tmp_path / "key"


def possible(release: nr.Release) -> dict[tuple[Any, ...], set[str]]:
    """What every class leaves possible, read from the published frame: groups, or records that look alike."""
    statement = release.column("ill")
    if statement.is_class:
        table = statement.table
        return {(g,): {ILLS[v] for v in table.value[table.group == g]} for g in range(table.groups)}
    out: dict[tuple[Any, ...], set[str]] = {}
    for age, town, ill in release.frame().select("age", "town", "ill").rows():
        general = statement.nodes
        values = {ill} if general is None else {ILLS[c] for c in general.members(general.labels.index(ill))}
        out.setdefault((str(age), str(town)), set()).update(values)
    return out


@pytest.mark.parametrize("method", GENERAL)
def test_the_register_knows_what_the_published_classes_leave_possible(method, key):
    release = nr.anonymize(people(), policy(method), secret=key)
    sets = Register.open(key).contents.classes["ill"]
    kept = [frozenset(sets.values[c] for c in sets.codes[sets.bounds[i] : sets.bounds[i + 1]]) for i in sets.which]
    assert set(kept) == {frozenset(values) for values in possible(release).values()}


def refusal(*given: Any, **more: Any) -> nr.errors.RequirementNotMet | None:
    """Why a release is not made; None if it is."""
    try:
        nr.anonymize(*given, **more)
    except nr.errors.RequirementNotMet as error:
        return error
    return None


@pytest.mark.parametrize("method", GENERAL)
def test_a_second_release_in_other_classes_leaves_l_values_or_is_refused_with_a_number(method, key, tmp_path):
    """Everybody's age and town are other ones, so that the classes are too; the secrets are the same."""
    nr.anonymize(people(), policy(method), secret=key)
    moved = people(seed=2).with_columns(people()["ill"])
    error = refusal(moved, policy(method), to=tmp_path / "second", secret=key)
    if error is None:  # its classes are so large that they hold all values
        now = Register.open(key).contents.classes["ill"]
        assert now.sizes[now.which].min() >= L
        assert method in LARGE
        return
    assert 0 < int(error.message.split(" ")[0]) <= N
    assert "both releases together" in error.message
    assert 'repeat = "allow"' in str(error.hint)
    assert not (tmp_path / "second").exists()
    nr.anonymize(moved, policy(method, repeat="allow"), secret=key)


@pytest.mark.parametrize("method", ["mondrian", "anatomy", "hilbert", "rating"])
def test_the_number_is_that_of_a_plain_count(method, key, tmp_path, monkeypatch):
    """Who is left fewer than l values, counted person by person from what the register kept of each release."""
    halves = [people().head(70), people(seed=4).with_columns(people()["ill"]).tail(70)]
    kept = []
    for number, part in enumerate(halves):
        nr.Secret.create(tmp_path / f"own{number}")
        own = policy(method)
        monkeypatch.setattr("noren.methods.base.permutation", lambda n, _: np.arange(n))  # the same classes again
        nr.anonymize(part, own, secret=tmp_path / f"own{number}")
        register = Register.open(tmp_path / f"own{number}")
        known, stream = register.contents, register.stream()
        sets = known.sets_of("ill", stream.people(part["id"].to_arrow()))
        members = [
            frozenset(sets.values[c] for c in sets.codes[sets.bounds[i] : sets.bounds[i + 1]]) for i in sets.which
        ]
        kept.append(dict(zip(part["id"].to_list(), members, strict=True)))
    exposed = [who for who in kept[0].keys() & kept[1].keys() if len(kept[0][who] & kept[1][who]) < L]
    nr.anonymize(halves[0], policy(method), secret=key)
    with pytest.raises(nr.errors.RequirementNotMet, match=f"^{len(exposed)} people were in other classes before"):
        nr.anonymize(halves[1], policy(method), secret=key)


def test_sets_and_classes_of_one_column_are_not_mixed(key):
    nr.anonymize(people(), policy("mondrian"), secret=key)
    with pytest.raises(
        nr.errors.SecretError, match=f"^{N} people of this release are in earlier releases with sets or classes"
    ):
        nr.anonymize(people(), policy("decoys"), secret=key)


def test_a_renamed_secret_of_classes_is_refused(key):
    nr.anonymize(people(), policy("mondrian"), secret=key)
    other = policy("mondrian")
    rules = nr.Policy(
        mechanism="ignored",
        attributes={**{n: c for n, c in other.attributes.items() if n != "ill"}, "illness": other.attributes["ill"]},
        require=[{"model": "frequency-l-diversity", "on": "illness", "l": L}],
        method={"name": "mondrian"},
        randomness={"record_key": "id"},
    )
    with pytest.raises(nr.errors.SecretError, match="'illness' has 6 of the 6 values of 'ill'"):
        nr.anonymize(people().rename({"ill": "illness"}), rules, secret=key)
