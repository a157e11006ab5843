"""Several releases of the same people: fresh decoys can be intersected, memoised ones give the same set again."""

from __future__ import annotations

from math import comb

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import noren as nr
from tests.leaks.world import binomial_bounds

N, D, L = 20_000, 14, 5


@pytest.fixture(scope="module")
def original() -> pa.Table:
    """An outsider knows everybody's `row` and wants the illness, one of fourteen."""
    truth = np.random.default_rng(3).integers(0, D, N)
    return pa.table({"row": np.arange(N), "ill": [f"ill {code:02d}" for code in truth]})


def policy(**randomness: str) -> nr.Policy:
    return nr.Policy(
        attributes={"row": "quasi-identifier", "ill": "sensitive"},
        require=[{"model": "frequency-l-diversity", "on": "ill", "l": L}],
        randomness=randomness,
    )


def sets(release: nr.Release) -> np.ndarray:
    """The published sets as masks, in the order of the people."""
    rows, cells = (release.cells([name])[name] for name in ("row", "ill"))
    return cells.data[np.argsort(rows.data)].astype(np.int64)


def alone(releases: int) -> float:
    """P(the sets of `releases` independent draws have only the truth in common).

    Inclusion and exclusion over which of the other D - 1 values are in every set: j given values are among the L - 1
    decoys with probability C(D - 1 - j, L - 1 - j) / C(D - 1, L - 1).
    """
    others, decoys = D - 1, L - 1
    terms = [
        (-1) ** j * comb(others, j) * (comb(others - j, decoys - j) / comb(others, decoys)) ** releases
        for j in range(decoys + 1)
    ]
    return sum(terms)


def test_fresh_decoys_are_stripped_by_intersection_as_often_as_predicted(original):
    assert alone(1) == pytest.approx(0)
    assert alone(2) == pytest.approx(126 / 715)
    assert alone(5) == pytest.approx(0.96, abs=0.005)
    truth = np.array([1 << int(text.split()[1]) for text in original["ill"].to_pylist()])
    common = np.full(N, (1 << D) - 1)
    for releases in range(1, 6):
        common &= sets(nr.anonymize(original, policy()))
        assert (common & truth == truth).all()
        low, high = binomial_bounds(N, alone(releases), tests=5)
        assert low <= (common == truth).sum() <= high


def test_with_a_secret_and_a_record_key_a_second_release_tells_nothing_new(original, tmp_path):
    nr.Secret.create(tmp_path / "key")
    keyed = policy(record_key="row", secret=str(tmp_path / "key"))
    first = sets(nr.anonymize(original, keyed))
    again = pa.concat_tables([original.slice(N // 2), original.slice(0, N // 2)])
    second = sets(nr.anonymize(again, keyed, to=tmp_path / "release"))
    assert (first == second).all()
    assert ((first & second) == first).all()


def test_a_person_who_is_in_both_releases_keeps_the_set_even_if_others_come_and_go(original, tmp_path):
    nr.Secret.create(tmp_path / "key")
    keyed = policy(record_key="row", secret=str(tmp_path / "key"))
    frames = []
    for part in (original.slice(0, 15_000), original.slice(5_000)):
        frame = nr.anonymize(part, keyed).frame()
        assert frame["ill"].list.len().unique().to_list() == [L]
        frames.append(frame)
    both = frames[0].join(frames[1], on="row", suffix="_later", validate="1:1")
    assert len(both) == 10_000
    assert both.select((pl.col("ill") == pl.col("ill_later")).all()).item()


def test_a_person_whose_value_changes_gets_a_set_that_has_nothing_to_do_with_the_first(original, tmp_path):
    """Memoised sets depend on the true value: an old set repeated for a new value would not even contain it."""
    nr.Secret.create(tmp_path / "key")
    keyed = policy(record_key="row", secret=str(tmp_path / "key"))
    codes = np.array([int(text.split()[1]) for text in original["ill"].to_pylist()])
    moved = (codes + 1) % D
    later = pa.table({"row": original["row"], "ill": [f"ill {code:02d}" for code in moved]})
    first, second = sets(nr.anonymize(original, keyed)), sets(nr.anonymize(later, keyed))
    assert ((second >> moved) & 1 == 1).all()
    # The first set holds the new value as one of its L - 1 decoys among D - 1, no more and no less often.
    low, high = binomial_bounds(N, (L - 1) / (D - 1))
    assert low <= ((first >> moved) & 1).sum() <= high
