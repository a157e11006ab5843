"""m-invariance by its definition, person by person: slow, obvious, from published rows and group tables alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence


def wrong_groups(table: Sequence[tuple[int, str, int]], rows: Sequence[int], fakes: Mapping[int, int], m: int) -> list:
    """Groups that are not m-unique, or whose records and counterfeits are not as many as their entries."""
    out = []
    for group in {group for group, _, _ in table} | set(rows):
        entries = [(value, count) for number, value, count in table if number == group]
        single = all(count == 1 for _, count in entries)
        whole = Counter(rows)[group] + fakes.get(group, 0) == sum(count for _, count in entries)
        if len(entries) < m or not single or not whole or not Counter(rows)[group]:
            out.append(group)
    return out


def signature(table: Sequence[tuple[int, str, int]], group: int) -> frozenset[str]:
    """The values that a group holds."""
    return frozenset(value for number, value, _ in table if number == group)


def least_counterfeits(kept: Mapping[str, frozenset[str]], secrets: Mapping[str, str]) -> int:
    """Entries that the buckets of people who are published again cannot fill with each other, before newcomers."""
    missing = 0
    for values in set(kept.values()):
        held = Counter(secrets[who] for who, own in kept.items() if own == values)
        missing += sum(max(held.values()) - held[value] for value in values)
    return missing
