"""Which tests run which lines: found once for every file of tests, and kept until the sources or that file change."""

from __future__ import annotations

import ast
import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.mutants.watch import SHARED

FIRST = ((15, 1, 2), (40, 3, 5))
"""How many tests run first and then, how many at most of one function's parameters, and of how many files, because
collecting a file takes its time too: few changes pass these."""


@dataclass
class Reached:
    """Seconds by test, and tests by line of every watched file."""

    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[int, set[str]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(set)))

    def add(self, found: dict[str, dict[str, dict[str, list[str]]]]) -> None:
        seconds: dict[str, float] = found["seconds"]  # type: ignore[assignment]
        self.seconds |= seconds
        for path, lines in found["lines"].items():
            for line, tests in lines.items():
                held = self.lines[path][int(line)]
                for test in tests:
                    if not test.endswith(SHARED):
                        held |= {test} & seconds.keys()
                    else:  # a fixture that others of the file may share
                        file = test.split("::")[0] + "::"
                        held |= {one for one in seconds if one.startswith(file)}

    def tests(self, path: Path, text: str, line: int) -> list[str]:
        """The tests that run the statement of a line, best first; for what runs at import, those that use the file or
        stand in the folder of its room, because what a class declares is seen without running a line of it."""
        lines = self.lines.get(str(path), {})
        span, folder = statement(text, line), f"tests/unit/{path.parts[2]}/"
        if span is None:
            inside = {n for n in lines if statement(text, n) is not None}
            some = {test for n in inside for test in lines[n]} | {one for one in self.seconds if one.startswith(folder)}
            some = some or {*self.seconds}
        else:
            some = {test for n in span for test in lines.get(n, ())}
        own, room = f"test_{path.stem}", f"/{path.parts[2]}/"
        files = {test: test.split("::")[0] for test in some}
        return sorted(
            some, key=lambda test: (own not in files[test], room not in files[test], self.seconds[test], test)
        )


def batches(tests: list[str], seconds: dict[str, float], most: float) -> list[list[str]]:
    """Few and varied ones first, and then others, of which no more than take so long; each batch file by file,
    because fixtures are shared in a file."""
    out: list[list[str]] = []
    left, spent = tests, 0.0
    for number, (many, alike, most_files) in enumerate(FIRST):
        times: dict[str, int] = defaultdict(int)
        files: set[str] = set()
        some = []
        for test in left:
            name, file = test.split("[")[0], test.split("::")[0]
            times[name] += 1
            varied = times[name] <= alike and (file in files or len(files) < most_files)
            if len(some) < many and varied and (number == 0 or spent + seconds[test] <= most):
                spent += seconds[test] if number else 0.0
                some.append(test)
                files.add(file)
        out.append(_by_file(some))
        left = [test for test in left if test not in set(some)]
    others = []
    for test in left:
        if spent + seconds[test] <= most:
            others.append(test)
            spent += seconds[test]
    return [some for some in (*out, _by_file(others)) if some]


def _by_file(tests: list[str]) -> list[str]:
    files: dict[str, list[str]] = {}
    for test in tests:
        files.setdefault(test.split("::")[0], []).append(test)
    return [test for some in files.values() for test in some]


def statement(text: str, line: int) -> range | None:
    """The lines of a function's innermost statement at this line, without its body; None for what runs at import."""
    found: range | None = None

    def visit(node: ast.AST, inside: bool) -> None:
        nonlocal found
        for name, value in ast.iter_fields(node):
            runs = inside or (name == "body" and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))
            for child in value if isinstance(value, list) else [value]:
                if not isinstance(child, ast.AST):
                    continue
                if isinstance(child, ast.stmt) and runs and child.lineno <= line <= (child.end_lineno or 0):
                    found = _header(child)
                visit(child, runs)

    visit(ast.parse(text), False)
    return found if found is not None and line in found else None


def _header(node: ast.stmt) -> range:
    body = getattr(node, "body", None)
    end = node.end_lineno or node.lineno
    return range(node.lineno, max(node.lineno, body[0].lineno - 1 if body else end) + 1)


def mark(root: Path, test: Path) -> str:
    """What a map of one file of tests rests on: the sources, what tests share, and the file itself."""
    return hashlib.sha256(_shared(root) + (root / test).read_bytes()).hexdigest()[:16]


@cache
def _shared(root: Path) -> bytes:
    whole = hashlib.sha256()
    every = [path.relative_to(root) for part in ("src", "tests") for path in (root / part).rglob("*.py")]
    apart = (Path("tests/mutants"), Path("tests/fuzz"))
    for path in sorted(p for p in every if not p.name.startswith("test_") and p.parent not in apart):
        whole.update(str(path).encode() + (root / path).read_bytes())
    return whole.digest()


def gathered(
    root: Path, files: Iterable[Path], kept: Path, watch: Callable[[Path, Path], None], every: Callable
) -> Reached:
    """The map of these files of tests; `watch` runs one that is not kept yet, `every` maps a function over them."""
    kept.mkdir(exist_ok=True)

    def one(test: Path) -> Path:
        target = kept / f"{'-'.join(test.with_suffix('').parts)}-{mark(root, test)}.json"
        if not target.exists():
            watch(test, target)
        return target

    out = Reached()
    for target in every(one, files):
        if target.exists():
            out.add(json.loads(target.read_text()))
    return out
