"""What the related work of paper 001 asks of sets of terms, measured: k^m-anonymity and (h,k,p)-coherence.

Both look at the terms that an adversary may know of a person and at the records that hold them; neither knows of
labels outside the table. Terms are taken out of the whole table until the first is met, as its authors' global
suppression does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

Record = frozenset[int]


@dataclass(frozen=True)
class Coherence:
    """The least k and the largest h that hold against everyone who knows up to p public terms of a person."""

    k: int
    h: float


def combinations_held(records: Sequence[Record], most: int) -> Counter[tuple[int, ...]]:
    """How many records hold each combination of one to `most` terms that any record holds."""
    return Counter(
        chain.from_iterable(
            combinations(sorted(record), size) for record in records for size in range(1, most + 1)
        )
    )  # fmt: skip


def coherence(records: Sequence[Record], private: Collection[int], p: int) -> Coherence:
    """(h,k,p)-coherence (Xu et al.) of records whose private terms are secrets and whose other terms may be known.

    k: fewest records that hold up to p known public terms; h: largest share of them with one and the same private term.
    """
    secret = frozenset(private)
    open_terms = [record - secret for record in records]
    held = combinations_held(open_terms, p)
    beside: Counter[tuple[tuple[int, ...], int]] = Counter()
    for record, known in zip(records, open_terms, strict=True):
        for size in range(p + 1):
            for chosen in combinations(sorted(known), size):
                beside.update((chosen, term) for term in record & secret)
    held[()] = len(records)
    return Coherence(
        min(held.values()), max((count / held[known] for (known, _), count in beside.items()), default=0.0)
    )


def suppressed(records: Sequence[Record], k: int, m: int) -> list[Record]:
    """The records without terms that break k^m-anonymity: step by step the term that is in most rare combinations.

    Ties go to the rarer term, which loses less.
    """
    kept = list(records)
    while True:
        held = combinations_held(kept, m)
        rare = Counter(term for known, count in held.items() if count < k for term in known)
        if not rare:
            return kept
        worst = max(rare, key=lambda term: (rare[term], -held[term,], -term))
        kept = [record - {worst} for record in kept]
