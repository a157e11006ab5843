"""What counts as a change, and that each is one."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.mutants.mutate import chosen, every, mutants

SOURCE = '''"""Of 3 and 4."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import os
def f(x: int, é: "3" = 2) -> bool:
    if not x and é < 3:
        return f"{x == 1}" == "a"
    return x is None or x in (1, 200)
'''


def test_every_change_is_one_change(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(SOURCE)
    found = list(mutants(Path("a.py"), tmp_path))
    told = {(one.line, one.before, one.after) for one in found}
    assert told == {
        (5, "2", "3"),
        (6, "not x and é < 3", "(not x) or (é < 3)"),
        (6, "not x", "x"),
        (6, "é < 3", "é <= 3"),
        (6, "3", "4"),
        (7, 'f"{x == 1}" == "a"', "f'{x == 1}' != 'a'"),
        (8, "x is None or x in (1, 200)", "(x is None) and (x in (1, 200))"),
        (8, "x is None", "x is not None"),
        (8, "x in (1, 200)", "x not in (1, 200)"),
        (8, "1", "2"),
    }
    same = ast.dump(ast.parse(SOURCE))
    for one in found:
        assert ast.dump(ast.parse(one.text)) != same
    assert chosen(tmp_path, [Path("a.py")], 3, 1) == chosen(tmp_path, [Path("a.py")], 3, 1)
    assert len(chosen(tmp_path, [Path("a.py")], 99, 1)) == 10


def test_every_change_of_some_files_is_all_of_each_in_order(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(SOURCE)
    (tmp_path / "b.py").write_text("x = 1\n")
    found = every(tmp_path, [Path("b.py"), Path("a.py")])
    assert [str(one) for one in found[:1]] == ["b.py:1: 1  ->  2"]
    assert found[1:] == list(mutants(Path("a.py"), tmp_path))
