"""The files that hold the cells of a release: one, or several in a row, all listed by the descriptor."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from noren.sources.place import Spot

WHOLE = ("data.parquet", "data.csv")
"""How the one file of the data is called."""
NAME = "data-{:05}.parquet"
PART = re.compile(r"data-\d{5,}\.parquet")
"""How the files are called where they are several,"""
ALL = "data-*.parquet"
"""and how all of them are named at once."""


def checksum(path: Spot) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class Part:
    """One of several files of data."""

    name: str
    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Spot) -> Part:
        return cls(path.name, path.stat().st_size, checksum(path))

    @property
    def entry(self) -> dict[str, Any]:
        return {"path": self.name, "bytes": self.bytes, "hash": f"sha256:{self.sha256}"}


def listed(resource: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """Name, size and checksum of every file of a resource. Raises ValueError where its two lists differ."""
    parts = resource.get("parts")
    if parts is not None and (not parts or [item["path"] for item in parts] != resource["path"]):
        raise ValueError("two lists of files")
    return [(item["path"], item["bytes"], item["hash"]) for item in parts or [resource]]


def are_known(resource: Mapping[str, Any]) -> bool:
    """Whether the files are called as those of a release are, each once."""
    names = [name for name, _, _ in listed(resource)]
    if "parts" not in resource:
        return names[0] in WHOLE
    return all(isinstance(name, str) and PART.fullmatch(name) for name in names) and len(set(names)) == len(names)


def title_of(path: Spot) -> str:
    """How a page for people calls the data of which this is a file."""
    return ALL if PART.fullmatch(path.name) else path.name
