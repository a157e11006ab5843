"""Methods. The registry is explicit: one line per method."""

from __future__ import annotations

from noren.methods.base import Method
from noren.methods.decoys import DecoyParameters, Decoys

METHODS: dict[str, type[Method]] = {
    "decoys": Decoys,
}

__all__ = ["METHODS", "DecoyParameters", "Decoys", "Method"]
