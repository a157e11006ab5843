"""A set that is listed beside the data and that no cell shows would be something else than the cells say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from noren.errors import ReleaseError
from noren.release.store import store_for
from noren.sources.place import Spot
from noren.statements import SetStatement, Statement


def demand_used(files: Sequence[Spot], columns: Sequence[Statement]) -> None:
    """Refuse a release that lists a set which no cell shows."""
    numbered = [column for column in columns if isinstance(column, SetStatement) and column.sets is not None]
    if not numbered:
        return
    seen = {column.name: np.zeros(column.sets or 0, bool) for column in numbered}
    for batch in store_for(files[0], True, *files[1:]).batches(numbered):
        for name, found in seen.items():
            found[batch[name].ids] = True  # type: ignore[attr-defined]
    unused = [name for name, found in seen.items() if not found.all()]
    if unused:
        raise ReleaseError(
            f"{files[0].parent}: not as published: it lists sets of {unused[0]!r} that no cell shows.",
            hint="Do not use it; ask the holder for it again.",
        )
