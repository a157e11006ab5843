"""How to repeat what the page says: commands, the policy, versions, and checksums of the files.

A checksum of the original would let anybody test a guess about it, so it stands on the holder's page alone.
"""

from __future__ import annotations

import hashlib
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shlex import quote
from typing import Any

from noren import __version__
from noren.errors import PolicyError
from noren.files import DESCRIPTOR
from noren.release.package import checksum
from noren.report.material import Material
from noren.sources.source import SCHEME

LIBRARIES = ("numpy", "numba", "polars", "pyarrow", "pydantic", "cryptography", "altair", "vl-convert-python")


def reproduction(material: Material) -> dict[str, Any]:
    """Everything somebody needs to check the page."""
    out: dict[str, Any] = {
        "versions": versions(),
        "release_made_with": material.release.manifest.noren,
        "commands": _commands(material),
        "files": _files(material.release.directory),
        "seconds": dict(material.seconds),
    }
    policy = _policy(material)
    if policy is not None:
        out["policy"] = policy
    if material.holder_only and (path := _path(material.original)) is not None and path.is_file():
        out["original"] = {"name": path.name, "sha256": checksum(path), "holder_only": True}
    return out


def versions() -> dict[str, str]:
    """Noren, Python and the libraries that figures may depend on."""
    found = {"noren": __version__, "Python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _commands(material: Material) -> list[dict[str, Any]]:
    """Commands by file names alone: a page says nothing about the holder's directories."""
    path = material.release.path
    if path is None:
        return []
    release = quote(path.resolve().name if isinstance(path, Path) else path.name)
    policy = "policy.toml" if material.policy_file is None else quote(material.policy_file.name)
    rules = "" if material.policy is None else f" --policy {policy}"
    told = [
        ("Anyone can recheck the claims", f"noren verify {release}", False),
        ("What the table reaches in every model", f"noren measure {release}", False),
        ("This report, as anybody can make it", f"noren report {release}{rules} --to report.html", False),
    ]
    if material.holder_only:
        original = quote(source.name) if (source := _path(material.original)) is not None else "original.csv"
        told += [
            (
                "The release again; decoys and order are drawn anew"
                if material.release.designs
                else "The release again; the order of rows is drawn anew",
                f"noren anonymize {original} {policy} --to again",
                True,
            ),
            (
                "With the original",
                f"noren report {release} --policy {policy} --original {original} --to report.html",
                True,
            ),
        ]
    return [{"what": what, "command": command, "holder_only": holder} for what, command, holder in told]


def _files(path: Path | None) -> list[dict[str, Any]]:
    """Every file of the release directory, the descriptor first."""
    if path is None:
        return []
    names = sorted(file.name for file in path.iterdir() if file.is_file())
    names.sort(key=lambda name: name != DESCRIPTOR)
    return [{"name": n, "bytes": (path / n).stat().st_size, "sha256": checksum(path / n)} for n in names]


SIDE_FILE = re.compile(r'\b(hierarchy|csv|matrix|semilattice|knowledge|priors) = "(?:[^"]*[/\\])?([^"/\\]+)"')


def _without_places(text: str) -> str:
    """A policy for a page that anybody may read: side files by their names alone, the secret not at all."""
    lines = [line for line in SIDE_FILE.sub(r'\1 = "\2"', text).splitlines() if not line.startswith("secret = ")]
    return "\n".join(lines) + "\n"


def _policy(material: Material) -> dict[str, Any] | None:
    """The policy as it was written, or as it would be written; its checksum is of exactly this text.

    A page for anybody shows it without comments and without the holder's directories.
    """
    if material.policy is None:
        return None
    if material.policy_file is not None and material.holder_only:
        raw = material.policy_file.read_bytes()
        text = raw.decode("utf-8-sig")
        return {"name": material.policy_file.name, "text": text, "sha256": hashlib.sha256(raw).hexdigest()}
    try:
        text = material.policy.to_toml()
        text = text if material.holder_only else _without_places(text)
    except PolicyError as error:
        return {"name": "policy", "text": "", "sha256": "", "note": error.problems[0].message}
    return {"name": "policy.toml", "text": text, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def _path(data: Any) -> Path | None:
    """The file of the original, if it is one; an address may hold a password and is not shown."""
    if isinstance(data, str) and SCHEME.match(data):
        return None
    return Path(data) if isinstance(data, str | Path) else None
