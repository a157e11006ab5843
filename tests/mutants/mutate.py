"""Single changes to a source file that a test should notice: comparisons, and/or, not, small constants."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
SMALL = 10


@dataclass(frozen=True)
class Mutant:
    """A file with one expression written otherwise."""

    path: Path
    line: int
    before: str
    after: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.before}  ->  {self.after}"


def mutants(path: Path, root: Path) -> Iterator[Mutant]:
    """Every change that this file offers, in its order. Texts, annotations and type checking blocks are left alone."""
    text = (root / path).read_text()
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    starts = list(accumulate(map(len, lines), initial=0))

    def place(line: int | None, column: int | None) -> int:
        """Where a place of the syntax tree stands in the text; columns count bytes."""
        assert line is not None
        assert column is not None
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    for node in _live(tree):
        for other in _others(node):
            start, end = place(node.lineno, node.col_offset), place(node.end_lineno, node.end_col_offset)
            changed = text[:start] + f"({other})" + text[end:]
            yield Mutant(path, node.lineno, " ".join(text[start:end].split()), " ".join(other.split()), changed)


def chosen(root: Path, files: list[Path], count: int, seed: int) -> list[Mutant]:
    """Some changes at random: every place of every file is as likely as another."""
    found = every(root, files)
    return random.Random(seed).sample(found, min(count, len(found)))


def every(root: Path, files: list[Path]) -> list[Mutant]:
    """All changes of some files, file by file."""
    return [one for file in files for one in mutants(file, root)]


def _live(tree: ast.AST) -> Iterator[ast.expr]:
    """Expressions that run: not annotations, not defaults of typing blocks, not docstrings."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST):
                continue
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            if isinstance(child, ast.JoinedStr):  # words for people
                continue
            if isinstance(child, ast.expr):
                yield child
            yield from _live(child)


def _others(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        _, other = COMPARISONS[type(node.ops[0])]
        yield f"{ast.unparse(node.left)} {other} {ast.unparse(node.comparators[0])}"
    elif isinstance(node, ast.BoolOp):
        joiner = " or " if isinstance(node.op, ast.And) else " and "
        yield joiner.join(f"({ast.unparse(value)})" for value in node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield ast.unparse(node.operand)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, bool):
        if isinstance(node.value, bool):
            yield str(not node.value)
        elif abs(node.value) <= SMALL:
            yield str(node.value + 1)
