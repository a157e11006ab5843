"""Orders and buckets are exactly uniform."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

from noren.engines.kernels import shuffle_with
from noren.engines.shuffle import bucket_numbers, permutation
from noren.errors import DataError
from noren.secret import Keystream, Secret

TWO_32 = 1 << 32
ALPHA = 1e-9


def stream() -> Keystream:
    return Keystream(Secret(bytes(32)), salt=b"test")


def assert_uniform(counts: np.ndarray) -> None:
    """Each count is binomial; exact two-sided tails, shared out so that all together fail with chance below ALPHA."""
    n, k = int(counts.sum()), len(counts)
    low, high = stats.binom.ppf([ALPHA / (2 * k), 1 - ALPHA / (2 * k)], n, 1 / k)
    assert counts.min() >= low
    assert counts.max() <= high


def word_for(choice: int, n: int) -> int:
    """The smallest word that is accepted and picks this one of n."""
    return -(-(choice * TWO_32 + TWO_32 % n) // n)


def test_every_sequence_of_choices_gives_its_own_order():
    seen = set()
    for choices in product(range(4), range(3), range(2)):
        words = np.array([word_for(choice, n) for choice, n in zip(choices, (4, 3, 2), strict=True)], np.uint32)
        order = np.arange(4)
        assert shuffle_with(words, order, 4) == 1
        seen.add(tuple(order))
    assert seen == set(permutations(range(4)))


def test_words_that_would_favour_an_order_are_skipped():
    # 2^32 mod 3 = 1: of all words only 0 is refused.
    with_refused, without = np.arange(3), np.arange(3)
    left = shuffle_with(np.array([0, 0, 5, 7], np.uint32), with_refused, 3)
    assert left == shuffle_with(np.array([5, 7], np.uint32), without, 3) == 1
    assert (with_refused == without).all()
    assert shuffle_with(np.array([0, 0], np.uint32), np.arange(3), 3) == 3
    assert shuffle_with(np.array([5], np.uint32), np.arange(3), 3) == 2


def test_permutations_of_four_are_uniform():
    source = stream()
    ranks = {order: rank for rank, order in enumerate(permutations(range(4)))}
    counts = np.zeros(24, np.int64)
    for _ in range(12_000):
        counts[ranks[tuple(permutation(4, source).tolist())]] += 1
    assert_uniform(counts)


@pytest.mark.parametrize("n", [0, 1, 2, 1000, 300_000])
def test_permutation_is_one(n):
    order = permutation(n, stream())
    assert order.dtype == np.int64
    assert (np.sort(order) == np.arange(n)).all()
    if n > 100:
        assert (order != np.arange(n)).any()


def test_where_a_row_lands_in_a_long_order_is_uniform():
    source = stream()
    counts = np.zeros(10, np.int64)
    for _ in range(3000):
        counts[int(np.flatnonzero(permutation(1000, source) == 0)[0]) // 100] += 1
    assert_uniform(counts)


def test_too_many_rows_for_one_shuffle_are_refused():
    with pytest.raises(DataError, match="Cannot shuffle 4294967296 rows"):
        permutation(TWO_32, stream())


@pytest.mark.parametrize("buckets", [1, 2, 64, 1024])
def test_buckets_are_uniform(buckets):
    numbers = bucket_numbers(400_000, buckets, stream())
    assert numbers.dtype == np.uint16
    assert_uniform(np.bincount(numbers, minlength=buckets))


def test_buckets_of_nothing_and_impossible_buckets():
    assert bucket_numbers(0, 8, stream()).size == 0
    assert bucket_numbers(100, 1 << 16, stream()).size == 100
    for buckets in (0, 7, 1 << 17):
        with pytest.raises(ValueError, match="power of two"):
            bucket_numbers(10, buckets, stream())
