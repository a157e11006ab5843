"""Writes .ci/hashes.txt: the pinned packages with the SHA-256 of every file that may be installed for them.

`make HASHED=1 ...` installs from it and from nothing else. Names and sums come from the index that pip uses;
its address is not recorded.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from urllib.request import urlopen

from pip._internal.models.index import PyPI

ROOT = Path(__file__).parents[1]
FILE = re.compile(r"#sha256=([0-9a-f]{64})\"[^>]*>([^<]+)</a>")
PYTHONS = ("py3", "py2.py3", "cp311", "cp312", "cp313", "cp314")


def sums(name: str, version: str) -> list[str]:
    with urlopen(f"{PyPI.simple_url}/{name}/", timeout=60) as page:
        listed = FILE.findall(page.read().decode())
    return sorted({digest for digest, file in listed if fits(file, version)})


def fits(file: str, version: str) -> bool:
    """Whether a file is of this version and can be installed by a Python that Noren runs on."""
    if file.endswith(".whl"):
        _, found, *_, python, abi, _ = file.removesuffix(".whl").split("-")
        return found == version and (python in PYTHONS or abi == "abi3")
    return file.endswith(f"-{version}.tar.gz")


def main() -> int:
    lines = []
    for pin in (ROOT / ".ci/constraints.txt").read_text().split():
        name, _, version = pin.partition("==")
        found = sums(re.sub(r"[-_.]+", "-", name).lower(), version)
        if not found:
            print(f"no file of {pin} is listed.", file=sys.stderr)
            return 1
        lines += [f"{pin} \\", *(f"    --hash=sha256:{one} \\" for one in found[:-1]), f"    --hash=sha256:{found[-1]}"]
    (ROOT / ".ci/hashes.txt").write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
