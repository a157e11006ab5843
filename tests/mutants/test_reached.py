"""Which tests meet a change: those that run its statement, near and quick ones first; how a fork gets the change."""

from __future__ import annotations

import importlib.util
from math import inf
from pathlib import Path

from tests.mutants.reached import FIRST, Reached, batches, statement
from tests.mutants.run import OTHERS, ROOMS, ROOT, files_of
from tests.mutants.serve import give, outermost

SOURCE = """LIMIT = 3


class Box:
    size: int = 4

    @property
    def full(self) -> bool:
        return any(
            self.size > LIMIT
            for _ in range(2)
        )


def counted(n: int = 5) -> int:
    def inner() -> int:
        return n + 1

    if n < 2:
        return 0
    return inner()
"""


def test_a_change_belongs_to_a_statement_or_to_the_import():
    spans = {line: statement(SOURCE, line) for line in (1, 5, 8, 10, 15, 17, 19, 20)}
    assert spans == {
        1: None,
        5: None,
        8: None,
        10: range(9, 13),
        15: None,
        17: range(17, 18),
        19: range(19, 20),
        20: range(20, 21),
    }


def test_tests_by_line_with_shared_fixtures_as_those_of_their_file():
    reached, near = Reached(), "tests/unit/x/test_facts.py::e"
    own, other = "tests/unit/x/test_box.py::", "tests/unit/y/test_all.py::"
    reached.add(
        {
            "seconds": {own + "a": 2.0, own + "b": 1.0, other + "c": 0.1, other + "d": 0.2, near: 3.0},
            "lines": {"src/noren/x/box.py": {"10": [own + "a|setup"], "19": [other + "d", other + "gone"], "1": [""]}},
        }
    )
    path = Path("src/noren/x/box.py")
    assert reached.tests(path, SOURCE, 10) == [own + "b", own + "a"]
    assert reached.tests(path, SOURCE, 19) == [other + "d"]
    assert reached.tests(path, SOURCE, 20) == []
    assert reached.tests(path, SOURCE, 5) == [own + "b", own + "a", near, other + "d"], "what uses the file or is near"


def test_a_few_varied_tests_come_first_and_no_test_twice():
    tests = [f"tests/test_{file}.py::f[{i}]" for i in range(30) for file in "abcdef"]
    seconds = dict.fromkeys(tests, 1.0)
    found = batches(tests, seconds, inf)
    assert sorted(test for some in found for test in some) == sorted(tests)
    many, alike, files = FIRST[0]
    assert len(found[0]) <= min(many, alike * files)
    assert [len(some) for some in batches(tests, seconds, 5.0)] == [len(found[0]), 5], "a bound of what follows"
    assert len(found[1]) > 5


def test_a_fork_gives_an_imported_function_its_new_code(tmp_path):
    file = tmp_path / "box.py"
    file.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("box_of_a_test", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (outermost(SOURCE, 10), outermost(SOURCE, 17)) == (("Box.full", 7), ("counted", 15))
    assert (module.Box().full, module.counted(1), module.counted()) == (True, 0, 6)
    give(file, SOURCE, SOURCE.replace("self.size > LIMIT", "(self.size <= LIMIT)"), 10)
    give(file, SOURCE, SOURCE.replace("n + 1", "(n + 2)"), 17)
    assert (module.Box().full, module.counted(1), module.counted()) == (False, 0, 7)


def test_rounds_hold_every_part_once():
    files = [file for parts in OTHERS for part in parts for file in files_of([part])]
    assert len({*files}) == len(files)
    assert all(files_of([part]) for parts in OTHERS for part in parts), "a part that is gone"
    folders = {one.name for one in (ROOT / "tests/unit").iterdir() if any(one.glob("test_*.py"))}
    held = {part.removeprefix("unit/") for parts in OTHERS for part in parts}
    assert folders - held - {*ROOMS} == set()
