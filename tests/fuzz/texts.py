"""Cells as texts, as a person writes them and CSV holds them."""

from __future__ import annotations

import datetime
from math import isnan
from typing import Any


def is_missing(value: Any) -> bool:
    """NaN and the empty text are missing, as they are in CSV."""
    return value is None or value == "" or (isinstance(value, float) and isnan(value))


def text(value: Any) -> str:
    """A cell as a person would write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return value.isoformat() if isinstance(value, datetime.date) else str(value)
