"""Does a test notice? `make mutants`: random single changes of the rooms that guarantees rest on, one at a time.

First the files of tests run once while the lines that each test reaches are noted (kept in `.mutants`, so that only
what changed runs again). Then each change is made in a copy of the sources and meets the tests that reach its
statement, the near and the quick ones first, up to the first failure: those of the rooms, and then, for what these do
not notice, those of other rooms and of whole releases, the dear ones last. The files of a later round run only while
something is left for them. What nobody notices is listed to be read: it either changes nothing that can be observed,
or a test is missing.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property, partial
from math import inf
from pathlib import Path
from queue import Queue
from typing import Any

from tests.mutants.mutate import Mutant, chosen, every
from tests.mutants.reached import Reached, batches, gathered, statement
from tests.mutants.serve import FAULT

ROOT = Path(__file__).parents[2]
ROOMS = ("models", "designs", "statements", "release", "workflow", "secret")
OTHERS = (
    ("unit/schema", "unit/policy", "unit/metrics", "unit/cli"),
    (
        "unit/test_kernel.py",
        "unit/test_results.py",
        "unit/test_ragged.py",
        "unit/test_ahead.py",
        "unit/report",
        "golden",
        "properties",
    ),
    ("unit/engines", "unit/estimates", "unit/sources", "unit/methods", "unit/audit"),
    ("contracts", "leaks", "cli", "postgres"),
)
"""Tests of other rooms and of whole releases, round by round and the dear ones later, for what the tests of the
changed rooms do not notice."""
SLOWER, SPARE = 10, 120
"""A run that takes so many times its usual seconds, and some more, never ends: that does not pass unseen."""
TICK = itertools.count(1_000_000_000)
"""Times for changed files, no two alike: compiled forms of the unchanged ones stay good."""


class Home:
    """A copy of the sources in which one worker runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        unwanted = shutil.ignore_patterns(
            ".venv", ".git", "site", "__pycache__", "benchmarks", ".mutants", "*.egg-info"
        )
        shutil.copytree(ROOT, folder, ignore=unwanted)

    @cached_property
    def server(self) -> subprocess.Popen[str] | None:
        """The process that forks for every change; None where it cannot."""
        single = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        started = subprocess.Popen(
            [sys.executable, "-m", "tests.mutants.serve"],
            cwd=self.folder,
            env=self.environment | single,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert started.stdout is not None
        return started if started.stdout.readline() == "ready\n" else None

    def close(self) -> None:
        if "server" in vars(self) and self.server is not None:
            self.server.kill()
            self.server.wait()

    def forked(self, mutant: Mutant, before: str, tests: list[str], seconds: float, failed: Path) -> int | None:
        """The exit code of a child of the server, or None if it did not end in time."""
        file = str(self.folder / mutant.path)
        asked = {"file": file, "before": before, "line": mutant.line, "tests": tests, "seconds": seconds}
        answer = self.asked(asked | {"failed": str(failed)})
        if answer in ("", str(FAULT)):
            raise RuntimeError(f"the server cannot run the tests of {mutant}")
        return None if answer == "late" else int(answer)

    def asked(self, what: dict[str, Any]) -> str:
        """The server's answer."""
        assert self.server is not None
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.write(json.dumps(what) + "\n")
        self.server.stdin.flush()
        return self.server.stdout.readline().strip()

    @property
    def environment(self) -> dict[str, str]:
        paths = os.pathsep.join(str(self.folder / part) for part in (".", "src", "papers/src"))
        return {**os.environ, "PYTHONPATH": paths, "CI": "1"}

    def pytest(self, files: list[str], seconds: float | None, **variables: str) -> int | None:
        """The exit code, or None if it did not end in time."""
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.mutants.watch", *files]
        try:
            done = subprocess.run(
                command,
                cwd=self.folder,
                env=self.environment | variables,
                capture_output=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None
        return done.returncode

    def watch(self, test: Path, target: Path) -> None:
        """Note what the tests of a file reach; in a fork where there can be one, because imports cost much."""
        folders = [str(self.folder / "src/noren" / room) for room in ROOMS]
        begin = time.monotonic()
        if self.server is not None:
            self.asked({"watch": str(target.absolute()), "folders": folders, "tests": [str(test)], "seconds": inf})
        else:
            watched = os.pathsep.join(folders)
            self.pytest([str(test)], None, NOREN_WATCH=str(target.absolute()), NOREN_WATCHED=watched)
        print(f"{time.monotonic() - begin:4.0f} s  {test}", flush=True)

    @contextmanager
    def changed(self, mutant: Mutant) -> Iterator[None]:
        target = self.folder / mutant.path
        kept, when = target.read_text(), target.stat()
        try:
            target.write_text(mutant.text)
            moment = next(TICK)
            os.utime(target, (moment, moment))
            yield
        finally:
            target.write_text(kept)
            os.utime(target, ns=(when.st_atime_ns, when.st_mtime_ns))

    def noticed(self, mutant: Mutant, reached: Reached, most: float) -> str | None:
        """The test that failed on the change, or None."""
        before = (self.folder / mutant.path).read_text()
        tests = reached.tests(mutant.path, before, mutant.line)
        # what is done at import a fork comes too late for; the server itself starts with unchanged sources
        forks = statement(before, mutant.line) is not None and bool(tests) and self.server is not None
        with self.changed(mutant), tempfile.TemporaryDirectory() as scratch:
            only, failed = Path(scratch) / "only.json", Path(scratch) / "failed"
            for some in batches(tests, reached.seconds, most):
                only.write_text(json.dumps(some))
                files = list(dict.fromkeys(test.split("::")[0] for test in some))
                usual = sum(reached.seconds[test] for test in some) + len(files)
                seconds = SLOWER * usual + SPARE
                if forks:
                    ended = self.forked(mutant, before, some, seconds, failed)
                else:
                    ended = self.pytest(["-x", *files], seconds, NOREN_ONLY=str(only), NOREN_FAILED=str(failed))
                if ended is None:
                    return "it did not end"
                if ended not in (0, 5):  # 5: nothing was collected
                    return failed.read_text() if failed.exists() else f"exit code {ended}"
        return None


def files_of(parts: Iterable[str]) -> list[Path]:
    """Those of folders, in their order; a part may also be a file."""
    places = [ROOT / "tests" / part for part in parts]
    found = [path for one in places for path in ([one] if one.is_file() else sorted(one.rglob("test_*.py")))]
    return [path.relative_to(ROOT) for path in found]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="changes to try")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--skip", type=int, default=0, help="leave out the first of them")
    parser.add_argument("--only", help="try those alone whose words contain this")
    parser.add_argument("--seconds", type=float, default=60, help="of tests that a change meets at most in each round")
    parser.add_argument("--rounds", type=int, help="only the first of them")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rooms", nargs="*", default=list(ROOMS))
    parser.add_argument("--summary", type=Path, default=Path("mutants.json"))
    parser.add_argument("--kept", type=Path, default=ROOT / ".mutants", help="where maps from lines to tests are kept")
    parser.add_argument("--files", nargs="+", type=Path, help="every change of these instead, as src/noren/models/a.py")
    given = parser.parse_args()
    files = [p.relative_to(ROOT) for room in given.rooms for p in sorted((ROOT / "src/noren" / room).rglob("*.py"))]
    tried = every(ROOT, given.files) if given.files else chosen(ROOT, files, given.count, given.seed)
    tried = tried[given.skip :]
    tried = [one for one in tried if given.only is None or given.only in str(one)]
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(given.workers) as pool:
        homes: Queue[Home] = Queue()
        for worker in range(given.workers):
            homes.put(Home(Path(scratch) / str(worker)))

        @contextmanager
        def home() -> Iterator[Home]:
            one = homes.get()
            try:
                yield one
            finally:
                homes.put(one)

        def watch(test: Path, target: Path) -> None:
            with home() as one:
                one.watch(test, target)

        def run(mutant: Mutant, reached: Reached, last: bool) -> str | None:
            with home() as one:
                begin = time.monotonic()
                by = one.noticed(mutant, reached, given.seconds)
            word = "noticed" if by else "UNNOTICED" if last else "later"
            print(f"{word:<10} {time.monotonic() - begin:4.0f} s  {mutant}  [{by}]", flush=True)
            return by

        found: dict[Mutant, str | None] = dict.fromkeys(tried)
        rounds = [[f"unit/{room}" for room in given.rooms], *OTHERS][: given.rounds]
        for number, parts in enumerate(rounds, 1):
            left = [one for one, by in found.items() if by is None]
            if not left:
                break
            reached = gathered(ROOT, files_of(parts), given.kept, watch, pool.map)
            print(f"{len(reached.seconds)} tests, {sum(reached.seconds.values()):.0f} s", flush=True)
            found |= zip(left, pool.map(partial(run, reached=reached, last=number == len(rounds)), left), strict=True)
        for _ in range(given.workers):
            homes.get().close()
    missed = [str(one) for one, by in found.items() if by is None]
    told = {"tried": len(found), "unnoticed": missed, "noticed": {str(one): by for one, by in found.items() if by}}
    given.summary.write_text(json.dumps(told, indent=1) + "\n")
    print(f"{len(found) - len(missed)} of {len(found)} noticed ({1 - len(missed) / max(1, len(found)):.1%})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
