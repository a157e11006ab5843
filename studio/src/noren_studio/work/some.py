"""Some records of a long table, drawn by chance: what is compared must not take hours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from noren import Policy
from noren.sources import Source

RECORDS = 20_000


def rules_of(policy: dict[str, Any], base: str) -> Policy:
    """The policy of a session."""
    return Policy(**policy, base=Path(base))


def some_of(place: str, rules: Policy, most: int = RECORDS) -> tuple[Source, bool]:
    """The table, or about `most` of its records in memory; and whether it is all of them."""
    import pyarrow as pa

    from noren.policy import open_table
    from noren.sources import FrameSource, sampled

    source = open_table(place, rules)
    rows = source.rows if source.rows is not None else sum(b.num_rows for b in source.batches(source.columns[:1]))
    if rows <= most:
        return source, True
    picked = FrameSource(pa.Table.from_batches(sampled(source, most / rows).batches(source.columns)))
    picked.name = source.name
    return picked, False
