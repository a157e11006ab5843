"""Where a release is made before it is one: a directory beside the target, and for a store another one here.

A directory is renamed at the end. Stores have no such step for folders, so there the files are named one by one and the
descriptor comes last: it is what makes a release, and without it nothing opens. A task that is late, after another did
its work, writes beside the release and never into it.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from noren.errors import DataError, ReleaseError
from noren.files import DESCRIPTOR
from noren.release.package import Recording, aside, unrecorded
from noren.release.package import refuse_existing as refuse_directory
from noren.release.parts import Part
from noren.sources.place import Place, Spot


@dataclass
class Staged:
    """Small files are written to `work`, and data files there or, by an engine elsewhere, to `cells`."""

    work: Path
    cells: Spot
    data: dict[str, Spot] = field(default_factory=dict)
    """Every data file, by the name that it will have."""

    def holds(self, files: Sequence[Spot], parts: Sequence[Part]) -> Path:
        """These are the data files; gives the name of the first as if it were in `work`."""
        names = [part.name for part in parts] or [file.name for file in files]
        self.data = dict(zip(names, files, strict=True))
        return self.work / names[0]


@contextmanager
def staged(target: Spot, recording: Recording = unrecorded) -> Iterator[Staged]:
    """A place to work, which becomes the target at the end, while `recording` surrounds it, or vanishes."""
    if isinstance(target, Path):
        with aside(target, recording) as work:
            yield Staged(work, work)
        return
    refuse_existing(target)
    there = target.with_name(f"_{target.name}-{secrets.token_hex(8)}.part")
    placed: list[Place] = []
    begun = False
    try:
        with tempfile.TemporaryDirectory(prefix="noren-") as folder:
            there.mkdir()
            made = Staged(Path(folder), there)
            yield made
            _refuse_taken(target)
            begun = True
            target.mkdir()
            _place(made, target, placed)
            with recording((target / DESCRIPTOR).is_file):
                _publish(made, target)
    except BaseException:
        with suppress(ReleaseError):
            for file in reversed(placed):
                file.unlink()
            there.remove()
            if begun and not any(target.iterdir()):
                target.remove()
        raise


def refuse_existing(target: Spot) -> None:
    """Refuse a target that is taken, or lies inside another release."""
    if isinstance(target, Path):
        refuse_directory(target)
        return
    if not target.name:
        raise ReleaseError(f"{target}: a whole store is no place for a release.", hint="Name a folder in it.")
    if any((one / DESCRIPTOR).is_file() for one in target.parents):
        raise DataError(f"{target} lies inside a release.", hint="A release stays as it was published.")
    _refuse_taken(target)


def _refuse_taken(target: Place) -> None:
    if target.is_file() or any(target.iterdir()) or (not target.is_flat and target.exists()):
        raise ReleaseError(
            f"{target} exists already.", hint="A release never overwrites: choose another name, or remove it first."
        )


def _place(made: Staged, target: Place, placed: list[Place]) -> None:
    """Everything but the descriptor in its place; what was placed is noted, so that it can be taken back."""
    for name, file in made.data.items():
        size = file.stat().st_size
        placed.append(target / name)
        if isinstance(file, Place):
            file.move(placed[-1])
        else:
            placed[-1].put(file)
        if placed[-1].stat().st_size != size:
            raise ReleaseError(f"{placed[-1]}: not all of it arrived; nothing is published.")
    assert isinstance(made.cells, Place)
    made.cells.remove()
    for path in sorted(made.work.iterdir()):
        if path.is_file() and path.name not in (*made.data, DESCRIPTOR):
            placed.append(target / path.name)
            placed[-1].put(path)


def _publish(made: Staged, target: Place) -> None:
    """The descriptor, which makes it a release."""
    try:
        (target / DESCRIPTOR).put(made.work / DESCRIPTOR)
    except BaseException:
        (target / DESCRIPTOR).unlink()
        raise
