"""What a wheel and a sdist must carry, and what they must not: python contents.py SOURCE ARCHIVE..."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

DATA = (".typed", ".pyi", ".toml", ".csv", ".html", ".css", ".svg")


def faults(archive: Path, source: Path) -> list[str]:
    """One line for each file that is missing or should not be there."""
    wheel = archive.suffix == ".whl"
    if wheel:
        with zipfile.ZipFile(archive) as opened:
            names = set(opened.namelist())
    else:
        with tarfile.open(archive) as opened:
            names = {name.partition("/")[2] for name in opened.getnames()}
    under = "" if wheel else "src/"
    wanted = {
        under + path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.suffix in (".py", *DATA) and not any(part.endswith(".egg-info") for part in path.parts)
    }
    found = [f"lacks {name}" for name in sorted(wanted - names)]
    if source == Path("src") and not any(name.endswith("LICENSE") for name in names):
        found.append("lacks LICENSE")
    if wheel:  # the package and nothing else: no tests, no papers, nothing left over from an earlier build
        strange = {name for name in names - wanted if not name.split("/")[0].endswith(".dist-info")}
        found += [f"brings {name}" for name in sorted(strange)]
    return [f"{archive.name} {fault}" for fault in found]


if __name__ == "__main__":
    problems = [fault for name in sys.argv[2:] for fault in faults(Path(name), Path(sys.argv[1]))]
    sys.exit("\n".join(problems) if problems else 0)
