"""Files and folders in object storage or a distributed file system.

A place answers what the rooms that read and write releases ask of a `pathlib.Path`, through the file systems of
PyArrow. It travels as its address; every process opens the store by itself, with credentials from its own surroundings.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlsplit

from noren.errors import ReleaseError

STORES = {"s3": "s3", "s3a": "s3", "gs": "gs", "hdfs": "hdfs", "viewfs": "viewfs", "abfs": "abfs", "abfss": "abfss"}
"""Schemes of addresses, and what PyArrow calls them."""
KNOWN = ", ".join(f"{scheme}://" for scheme in STORES)
FLAT = ("s3", "gs")
"""Stores without folders: a name has slashes in it."""
CHUNK = 1 << 22


@dataclass(frozen=True)
class Place:
    """An address in a store. The part after a question mark is for the store and is never shown."""

    store: str
    """Scheme, authority and a slash."""
    path: PurePosixPath
    query: str = ""

    @classmethod
    def parse(cls, address: str) -> Place:
        parts = urlsplit(address)
        scheme = STORES.get(parts.scheme, parts.scheme)
        if parts.password is not None:
            raise ReleaseError(
                f"{parts.scheme}://{parts.hostname or ''}: the address holds a password.",
                hint="Remove it, and set the credentials in the environment of every machine that writes.",
            )
        return cls(f"{scheme}://{parts.netloc}/", PurePosixPath(unquote(parts.path).strip("/")), parts.query)

    def __str__(self) -> str:
        return f"{self.store}{self.path}"

    # ------------------------------------------------------------------ names

    def __truediv__(self, name: str) -> Place:
        return Place(self.store, self.path / name, self.query)

    def with_name(self, name: str) -> Place:
        return Place(self.store, self.path.with_name(name), self.query)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def stem(self) -> str:
        return self.path.stem

    @property
    def suffix(self) -> str:
        return self.path.suffix

    @property
    def parent(self) -> Place:
        return Place(self.store, self.path.parent, self.query)

    @property
    def parents(self) -> list[Place]:
        """Return the folders around it, the nearest first, without the store itself."""
        return [Place(self.store, one, self.query) for one in self.path.parents if one.name]

    # ------------------------------------------------------------------ what is there

    @property
    def _there(self) -> tuple[Any, str]:
        """Return the file system, and its path of this place."""
        with _translate_errors(self):
            system, base = _open_store(self.store, self.query)
        return system, f"{base.rstrip('/')}/{self.path}"

    def _info(self) -> Any:
        system, path = self._there
        with _translate_errors(self):
            return system.get_file_info(path)

    def exists(self) -> bool:
        return self._kind() != "NotFound"

    def is_file(self) -> bool:
        return self._kind() == "File"

    def is_dir(self) -> bool:
        return self._kind() == "Directory"

    def _kind(self) -> str:
        return str(self._info().type.name)

    def is_symlink(self) -> bool:
        return False

    def stat(self) -> Any:
        return SimpleNamespace(st_size=self._info().size)

    def iterdir(self) -> Iterator[Place]:
        from pyarrow.fs import FileSelector

        system, path = self._there
        with _translate_errors(self):
            found = system.get_file_info(FileSelector(path, allow_not_found=True))
        yield from (self / one.base_name for one in found)

    def open(self, mode: str = "r", **text: Any) -> Any:
        """Open the file for reading from any position."""
        system, path = self._there
        stream = system.open_input_file(path)
        return stream if "b" in mode else io.TextIOWrapper(stream, **text)

    def read_bytes(self) -> bytes:
        with self.open("rb") as file:
            return bytes(file.read())

    def read_text(self, encoding: str = "utf-8") -> str:
        return self.read_bytes().decode(encoding)

    # ------------------------------------------------------------------ changing it

    @property
    def is_flat(self) -> bool:
        """Return whether the store has no real folders."""
        return self.store.partition(":")[0] in FLAT

    def mkdir(self) -> None:
        system, path = self._there
        if not self.is_flat:
            with _translate_errors(self):
                system.create_dir(path, recursive=True)

    def sink(self) -> Any:
        """Open the file for writing. Some stores show it only when it is closed."""
        system, path = self._there
        return system.open_output_stream(path)

    def put(self, file: Path) -> None:
        """Copy a local file here, and read it back."""
        whole = hashlib.sha256()
        with _translate_errors(self), file.open("rb") as source, self.sink() as sink:
            while chunk := source.read(CHUNK):
                whole.update(chunk)
                sink.write(chunk)
        with self.open("rb") as again:
            if hashlib.file_digest(again, "sha256").digest() != whole.digest():
                raise ReleaseError(f"{self}: the store returns other data than were written.")

    def move(self, to: Place) -> None:
        """Rename a file in the same store."""
        system, path = self._there
        with _translate_errors(self):
            system.move(path, to._there[1])

    def remove(self) -> None:
        """Remove a folder with all its contents, if it exists."""
        system, path = self._there
        if self.is_dir():
            with _translate_errors(self):
                system.delete_dir(path)

    def unlink(self) -> None:
        """Remove a file, if it exists."""
        system, path = self._there
        if self.is_file():
            with _translate_errors(self):
                system.delete_file(path)


class Upload:
    """A file that is written to a place, opened with the first byte; its size and checksum are known at the end."""

    def __init__(self, place: Place) -> None:
        self.closed = False
        self.size = 0
        self._place = place
        self._sink: Any = None
        self._found = hashlib.sha256()

    def write(self, data: Any) -> int:
        self._sink = self._place.sink() if self._sink is None else self._sink
        content = memoryview(data)
        self._found.update(content)
        self._sink.write(content)
        self.size += content.nbytes
        return content.nbytes

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        """Do nothing: no data is buffered."""

    def close(self) -> None:
        if self._sink is not None and not self.closed:
            self._sink.close()
        self.closed = True

    def hexdigest(self) -> str:
        return self._found.hexdigest()


Spot = Path | Place


@lru_cache(maxsize=64)
def _open_store(store: str, query: str) -> tuple[Any, str]:
    from pyarrow.fs import FileSystem

    found: tuple[Any, str] = FileSystem.from_uri(store + (f"?{query}" if query else ""))
    return found


@contextmanager
def _translate_errors(place: Place) -> Iterator[None]:
    """Turn a store's errors, which may quote addresses and keys, into errors that name only the kind."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise ReleaseError(
            f"{place}: the store refused ({type(error).__name__}).",
            hint="Check the address, and that every machine has credentials in its environment.",
        ) from None


def place_of(given: str | Path | Place) -> Spot:
    """Return a local path, or a place in a store. `file://` is a path that all machines can access."""
    if isinstance(given, Path) and given.parts and given.parts[0].removesuffix(":") in STORES and ":" in given.parts[0]:
        given = given.as_posix().replace(":/", "://", 1)  # a path takes the second slash away
    if not isinstance(given, str):
        return given
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", given)
    if found is None:
        return Path(given)
    scheme = found[1].lower()
    if scheme == "file":
        return Path(unquote(urlsplit(given).path))
    if scheme not in STORES:
        raise ReleaseError(f"a release cannot be written to {scheme}://.", hint=f"A directory, or {KNOWN}.")
    return Place.parse(given)


def readable(spot: Spot) -> Any:
    """Return what PyArrow reads: the path, or an open file of a store."""
    return spot.open("rb") if isinstance(spot, Place) else spot
