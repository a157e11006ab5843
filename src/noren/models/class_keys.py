"""The columns by which records look alike, packed into as few numbers as hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from noren.models.base import Evidence
from noren.statements import CellBatch, Statement


def class_keys(evidence: Evidence, names: Sequence[str]) -> list[Statement]:
    """Columns that define classes. Raises ModelDoesNotApply for one in which nobody can say who looks alike."""
    columns = [evidence.columns[name] for name in names]
    for key in columns:
        if not key.is_key and not key.is_class:
            raise key.unlike()
    return columns


def key_layout(keys: Sequence[Statement]) -> list[list[Statement]]:
    """Which keys stand in each column of `key_columns`: one open one, or as many coded ones as fit one number."""
    out: list[list[Statement]] = []
    packed: list[Statement] = []
    room = 1
    for key in keys:
        if key.kinds is None:
            out.append([key])
            continue
        size = max(1, key.kinds)
        if packed and room * size < 1 << 62:
            packed.append(key)
            room *= size
            continue
        if packed:
            out.append(packed)
        packed, room = [key], size
    return [*out, packed] if packed else out


def key_columns(keys: Sequence[Statement], batch: CellBatch) -> list[Any]:
    """The key columns for grouping, with as many codes as fit put into one number."""
    out: list[Any] = []
    for part in key_layout(keys):
        found = part[0].key(batch[part[0].name])
        for key in part[1:]:
            found = found * max(1, key.kinds or 1) + key.key(batch[key.name])
        out.append(found)
    return out
