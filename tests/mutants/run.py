"""Does a test notice? `make mutants`: random single changes of the rooms that guarantees rest on, one at a time.

Each runs against the tests of its room, then against those that look at whole releases, in a copy of the sources. What
nobody notices is listed to be read: it either changes nothing that can be observed, or a test is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

from tests.mutants.mutate import Mutant, chosen

ROOT = Path(__file__).parents[2]
ROOMS = ("models", "designs", "cells", "table", "release", "pipeline", "secret")
WHOLE = ["tests/leaks", "tests/contracts", "tests/golden", "tests/properties", "tests/cli"]
"""Tests of whole releases, for what the tests of a room do not notice."""
LONGEST = 900
"""Seconds after which a run counts as noticed: a change that never ends does not pass unseen."""


def room_tests(room: str) -> list[str]:
    return [str(one.relative_to(ROOT)) for one in (ROOT / "tests" / "unit").glob(room)]


def noticed(mutant: Mutant, home: Path) -> str | None:
    """Which tests failed on the change, or None."""
    target = home / mutant.path
    kept = target.read_text()
    target.write_text(mutant.text)
    try:
        room = mutant.path.parts[2]
        for tests in (room_tests(room), WHOLE):
            if tests and not passes(tests, home):
                return tests[0] if tests != WHOLE else "whole"
        return None
    finally:
        target.write_text(kept)


def passes(tests: list[str], home: Path) -> bool:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(home / "src"), str(home / "papers" / "src")]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "CI": "1",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(command, cwd=home, env=environment, capture_output=True, timeout=LONGEST, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="changes to try")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rooms", nargs="*", default=list(ROOMS))
    parser.add_argument("--summary", type=Path, default=Path("mutants.json"))
    given = parser.parse_args()
    files = [p.relative_to(ROOT) for room in given.rooms for p in sorted((ROOT / "src/noren" / room).rglob("*.py"))]
    tried = chosen(ROOT, files, given.count, given.seed)
    with tempfile.TemporaryDirectory() as scratch:
        homes: Queue[Path] = Queue()
        for number in range(given.workers):
            home = Path(scratch) / str(number)
            shutil.copytree(ROOT, home, ignore=shutil.ignore_patterns(".venv", ".git", "site", ".numba", "benchmarks"))
            homes.put(home)

        def run(mutant: Mutant) -> dict[str, object]:
            home, begin = homes.get(), time.monotonic()
            try:
                by = noticed(mutant, home)
            finally:
                homes.put(home)
            print(f"{'noticed' if by else 'UNNOTICED':<10} {time.monotonic() - begin:4.0f} s  {mutant}", flush=True)
            return {"mutant": str(mutant), "by": by}

        with ThreadPoolExecutor(given.workers) as pool:
            found = list(pool.map(run, tried))
    missed = [one["mutant"] for one in found if one["by"] is None]
    given.summary.write_text(json.dumps({"tried": len(found), "unnoticed": missed, "all": found}, indent=1) + "\n")
    print(f"{len(found) - len(missed)} of {len(found)} noticed ({1 - len(missed) / max(1, len(found)):.1%})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
