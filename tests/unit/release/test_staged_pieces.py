"""How a release comes to its place elsewhere: nothing is overwritten, the descriptor last, all or nothing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from noren.errors import ReleaseError
from noren.release import package as room
from noren.release.package import Staged, _place, _publish, _refuse_taken


@pytest.mark.parametrize(
    ("is_file", "inside", "flat", "exists", "taken"),
    [
        (False, [], True, False, False),
        (False, [], True, True, False),
        (False, [], False, False, False),
        (False, [], False, True, True),
        (True, [], True, True, True),
        (False, ["data.csv"], True, True, True),
    ],
)
def test_a_target_is_taken_where_something_is(
    is_file: bool, inside: list[str], flat: bool, exists: bool, taken: bool
) -> None:
    """A flat store has no folders, so that an empty one is nothing."""
    target: Any = SimpleNamespace(
        is_file=lambda: is_file, iterdir=lambda: iter(inside), is_flat=flat, exists=lambda: exists
    )
    if taken:
        with pytest.raises(ReleaseError, match="exists already"):
            _refuse_taken(target)
        return
    _refuse_taken(target)


class There:
    """A place in a store that keeps the names of what was put there."""

    def __init__(self, log: list[str], name: str = "", size: int = 5) -> None:
        self.log, self.name, self.size = log, name, size

    def __truediv__(self, name: str) -> There:
        return There(self.log, name, self.size)

    def put(self, path: Path) -> None:
        self.log.append(f"put {self.name} from {path.name}")

    def move(self, target: There) -> None:
        self.log.append(f"move {self.name} to {target.name}")

    def remove(self) -> None:
        self.log.append(f"remove {self.name}")

    def stat(self) -> Any:
        return SimpleNamespace(st_size=self.size)


def placed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arrives: int) -> tuple[list[str], list[str]]:
    monkeypatch.setattr(room, "Place", There)
    for name in ("datapackage.json", "README.md", "data.csv"):
        (tmp_path / name).write_text("12345")
    (tmp_path / "folder").mkdir()
    log: list[str] = []
    made: Any = Staged(tmp_path, There(log, "cells"))  # type: ignore[arg-type]
    made.holds([tmp_path / "data.csv", There(log, "part-1")], [])
    target: Any = There(log, "target", arrives)
    noted: list[Any] = []
    try:
        _place(made, target, noted)
        _publish(made, target)
    except ReleaseError:
        log.append("refused")
    return log, [one.name for one in noted]


def test_the_descriptor_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, noted = placed(tmp_path, monkeypatch, 5)
    assert log[:3] == ["put data.csv from data.csv", "move part-1 to part-1", "remove cells"]
    assert log[3:] == ["put README.md from README.md", "put datapackage.json from datapackage.json"]
    assert noted == ["data.csv", "part-1", "README.md"]


def test_what_did_not_arrive_whole_is_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, noted = placed(tmp_path, monkeypatch, 4)
    assert log == ["put data.csv from data.csv", "refused"]
    assert noted == ["data.csv"]
