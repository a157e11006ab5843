"""What verification names when it refuses, what a run says while it works, and keys of nobody."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

import noren as nr
from noren.progress import silent
from noren.release.closed import list_names
from noren.workflow.anonymize import run


def test_three_are_named_and_the_others_counted() -> None:
    assert list_names(["a", "b", "c"]) == "'a', 'b', 'c'"
    assert list_names(["a", "b", "c", "d", "e"]) == "'a', 'b', 'c' and 2 more"
    assert list_names(["x" * 90]) == repr("x" * 60)


def test_a_run_says_whether_it_writes(tmp_path: Path) -> None:
    people = pl.DataFrame({"town": ["Ulm", "Bonn"] * 20, "ill": ["a"] * 15 + ["b"] * 15 + ["c"] * 10})
    attributes = {"town": "quasi-identifier", "ill": "sensitive"}
    policy = nr.Policy(attributes=attributes, require=[nr.models.FrequencyLDiversity(on="ill", l=2)])
    for target, word in ((None, "Shuffling"), (tmp_path / "release", "Shuffling and writing")):
        seen: list[str] = []

        @contextmanager
        def stage(name: str, *_: Any, seen: list[str] = seen, **__: Any) -> Iterator[Any]:
            seen.append(name)
            yield silent

        run(people, policy, to=target, stage=stage)
        assert [name for name in seen if name.startswith("Shuffling")] == [word]
