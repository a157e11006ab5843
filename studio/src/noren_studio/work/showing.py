"""Results as plain data that pages show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from noren.models import Verdict


def verdict_rows(verdicts: Iterable[Verdict]) -> list[dict[str, Any]]:
    """Verdicts as plain data; `holds` is None where nothing can be said."""
    return [
        {
            "column": one.column,
            "model": one.model,
            "required": float(one.required),
            "achieved": float(one.achieved),
            "holds": one.holds,
            "breaches": int(one.breaches),
            "records": int(one.records),
            "statement": one.statement,
            "basis": str(one.basis),
        }
        for one in verdicts
    ]
