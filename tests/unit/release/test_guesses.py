"""How well secrets are guessed from a release: against beliefs that can be worked out, and what is said of them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.release import guesses
from noren.release.guesses import Guess, measure_guesses, warn_of_guesses

N = 4000


def dogs(tells: float) -> nr.Release:
    """Breeds in sets of two of four; the colour of the coat follows from the breed for a share of the dogs."""
    rng = np.random.default_rng(1)
    breed = rng.integers(0, 4, N)
    coat = np.where(rng.random(N) < tells, breed, rng.integers(0, 4, N))
    table = pl.DataFrame({"breed": [f"b{x}" for x in breed], "coat": [f"c{x}" for x in coat]})
    policy = nr.Policy(
        attributes={"breed": "sensitive", "coat": "plain"},
        require=[nr.models.FrequencyLDiversity(on="breed", l=2)],
        dependence={"most": 1.0},
    )
    return nr.anonymize(table, policy)


@pytest.mark.parametrize("tells", [0.0, 0.6])
def test_sets_of_two_beside_a_column_that_tells(tells: float) -> None:
    (found,) = dogs(tells).guesses
    right, other = (1 + 3 * tells) / 4, (1 - tells) / 4
    # the coat is that of the own breed, of the decoy, or of neither
    expected = right * right / (right + other) + other * right / (right + other) + (1 - right - other) / 2
    assert found.right == pytest.approx(expected, abs=0.05)
    assert found.before == pytest.approx(0.25, abs=0.05)
    assert (found.rows, found.whole, found.by_class) == (guesses.ROWS, False, False)
    assert found.sentence == (
        "Somebody who knows all other published columns of the row guesses 'breed' right for "
        f"{found.right:.1%} of the people ({found.before:.1%} without the release, measured on 2,000 rows)."
    )


def test_the_holder_is_warned_where_many_are_nearly_certain() -> None:
    loud, quiet = dogs(0.98).guesses, dogs(0.3).guesses
    assert loud[0].is_loud
    assert not quiet[0].is_loud
    text = warn_of_guesses([*loud, *quiet])
    assert text.startswith(f"WARNING: 'breed' is believed above 0.9 for {loud[0].sure:.1%} of the people. Generalise")
    for way in ("t-closeness", "belief", "local-privacy"):
        assert way in text
    assert warn_of_guesses(quiet) == ""


def test_what_is_nearly_certain_without_the_release_is_no_warning() -> None:
    table = pl.DataFrame({"ill": ["no"] * 980 + ["yes"] * 20, "sex": ["f", "m"] * 500})
    asked = [nr.models.TCloseness(on="ill", t=0.5)]  # the estimated share of "no" varies by 0.01
    policy = nr.Policy(attributes={"ill": "sensitive", "sex": "plain"}, require=asked)
    (found,) = nr.anonymize(table, policy).guesses
    assert found.before > 0.9
    assert not found.is_loud


def classes(n: int) -> nr.Release:
    rng = np.random.default_rng(2)
    table = pl.DataFrame({"age": rng.integers(0, 60, n), "ill": [f"i{x}" for x in rng.integers(0, 5, n)]})
    asked = [nr.models.KAnonymity(k=10), nr.models.FrequencyLDiversity(on="ill", l=2)]
    attributes = {"age": "quasi-identifier", "ill": "sensitive"}
    return nr.anonymize(table, nr.Policy(attributes=attributes, require=asked, method="mondrian"))


def test_in_classes_the_commonest_secret_of_the_class_is_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    release = classes(3000)
    (found,) = release.guesses
    frame = release.frame().with_columns(pl.col("age").cast(pl.String))
    shares = frame.group_by("age", "ill").len().group_by("age").agg(pl.col("len").max(), n=pl.col("len").sum())
    assert found.by_class
    assert found.right == pytest.approx(float(shares["len"].sum() / shares["n"].sum()), abs=1e-9)
    monkeypatch.setattr(guesses, "CLASS_ROWS", 1500)
    (some,) = measure_guesses(release)
    assert 500 < some.rows < 2500
    assert not some.whole
    assert some.right == pytest.approx(found.right, abs=0.08), "whole classes are measured"


def test_who_knows_the_row_of_a_person_reads_a_secret_that_is_published() -> None:
    (found,) = measure_guesses(classes(500), knows_row=True)
    assert (found.by_class, found.right) == (False, 1.0)
    assert found.sentence.startswith("Somebody who knows all other published columns of the row")


def test_a_release_without_secrets_has_no_guesses() -> None:
    table = pl.DataFrame({"age": [1, 2] * 10})
    policy = nr.Policy(attributes={"age": "quasi-identifier"}, require=[nr.models.KAnonymity(k=5)], method="mondrian")
    assert nr.anonymize(table, policy).guesses == ()


def test_a_guess_is_plain_data() -> None:
    one = Guess("ill", 0.5, 0.2, 0.06, True, 10, True)
    assert one.to_dict()["is_loud"]
    assert one.sentence.startswith("Somebody who knows a person's quasi-identifiers guesses 'ill' right for 50.0%")
