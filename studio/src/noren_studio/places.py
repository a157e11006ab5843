"""Where tables and releases are: paths and addresses, and how they are shown."""

from __future__ import annotations

from pathlib import Path


def is_release(place: str) -> bool:
    """Whether a place is a release: a folder of this machine, or a schema of a base."""
    if "://" in place:
        return "schema=" in place.partition("?")[2]
    path = Path(place)
    return path.is_dir() and (path / "datapackage.json").is_file()


def is_packed(place: str) -> bool:
    """Whether a place is one ZIP file, as a release is handed over."""
    return "://" not in place and place.lower().endswith(".zip")


def shown(place: str) -> str:
    """How a place is called: a file by its name, an address without its password."""
    if "://" in place:
        from noren.sources import Address

        return Address.parse(place).name
    return Path(place).name
