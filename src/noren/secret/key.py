"""Secret keys, which leave this process only into their own file and are never shown.

Every key that is really used is derived from it by HKDF-Expand with SHA-256 (RFC 5869, section 3.3: a uniformly
random 256-bit key needs no extraction step) under a label that names its purpose, so that keys of different
purposes know nothing about each other.
"""

from __future__ import annotations

import hmac
import os
import re
import stat
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from noren.errors import DataError, SecretError
from noren.files import keep_out, write_new

if TYPE_CHECKING:
    import pyarrow as pa


KEY_BYTES = 32
_HEADER = "noren-secret-1"
_FILE = re.compile(rf"{_HEADER} ([0-9a-f]{{{2 * KEY_BYTES}}})\s*", re.ASCII)
_LABEL = b"noren/1/"


class Sealed:
    """The base of everything that holds a key: prints without it, cannot be pickled, has no `__dict__`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: masked>"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise SecretError(
            f"A {type(self).__name__} cannot be pickled or copied, because the key must not leave this process.",
            hint="Pass the path of the secret file and load it where it is needed.",
        )


class Secret(Sealed):
    """A 256-bit key. Its repr, its errors and its pickle never contain it; comparing takes constant time."""

    __slots__ = ("__expand",)

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise SecretError(f"A secret has {KEY_BYTES} bytes; got {len(key)} instead.")
        # Kept inside a closure, so that attribute walks (debuggers, error reporters, loggers) do not print it.
        self.__expand: Callable[[bytes], bytes] = _expander(bytes(key))

    @classmethod
    def fresh(cls) -> Secret:
        """Return a new secret from the operating system's generator; it is not stored."""
        return cls(os.urandom(KEY_BYTES))

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> Secret:
        """Write a new secret file that only its owner can read, and its empty register in the same folder.

        An existing file is never overwritten.
        """
        from noren.secret.register import Register

        path = Path(path)
        keep_out(path)
        key = os.urandom(KEY_BYTES)
        made = cls(key)
        try:
            write_new(path, f"{_HEADER} {key.hex()}\n".encode("ascii"), 0o600)
        except FileExistsError:
            raise SecretError(
                f"{path} exists already; a secret file is never overwritten.",
                hint=(
                    "Load it, or use another path. If a secret is lost, new releases can be intersected with the "
                    "earlier ones."
                ),
            ) from None
        except OSError as error:
            raise SecretError(
                f"Cannot create the secret file {path}: {error.strerror}.",
                hint="Use a file in an existing directory that you may write to.",
            ) from None
        try:
            Register.create(path, made)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return made

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Secret:
        """Read a secret file; refuse one that is malformed or that other users can read."""
        path = Path(path)
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                if os.name == "posix" and status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                    raise SecretError(
                        f"{path} is open to other users (mode {stat.S_IMODE(status.st_mode):04o}).",
                        hint=f"Run: chmod 600 {path}",
                    )
                content = file.read(1024)
        except FileNotFoundError:
            raise SecretError(
                f"There is no secret file at {path}.",
                hint="Create one with `noren secret` or Secret.create, or correct the path.",
            ) from None
        except OSError as error:
            raise SecretError(f"Cannot read the secret file {path}: {error.strerror}.") from None
        match = _FILE.fullmatch(content.decode("ascii", errors="replace"))
        if match is None:
            raise SecretError(
                f"{path} is not a secret file: it must hold one line, '{_HEADER}' and {2 * KEY_BYTES} hex digits.",
                hint="Restore the file from its backup; its content is not shown here on purpose.",
            )
        return cls(bytes.fromhex(match[1]))

    @property
    def fingerprint(self) -> str:
        """Return 16 hex digits that identify the secret without disclosing it; they may be published."""
        return self.derive("fingerprint")[:8].hex()

    def derive(self, purpose: str, name: str = "") -> bytes:
        """Return a 256-bit key for one purpose (a word without slashes) and one name (any text)."""
        return self.__expand(_LABEL + purpose.encode("ascii") + b"/" + name.encode("utf-8"))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self.derive("equality"), other.derive("equality"))

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self


def _expander(key: bytes) -> Callable[[bytes], bytes]:
    def expand(info: bytes) -> bytes:
        return hmac.digest(key, info + b"\x01", "sha256")

    return expand


# ---------------------------------------------------------------------- how people are told apart


Unicode = Literal["NFKC", "NFC", "keep"]
Spaces = Literal["trim", "keep"]
Case = Literal["fold", "keep"]
UNSEEN = r"\p{Cf}"
"""Characters without a width: a key with one of them looks the same."""


@dataclass(frozen=True)
class KeyRule:
    """The key column, and the normalisation of keys before they are hashed."""

    column: str
    unicode: Unicode = "NFKC"
    spaces: Spaces = "trim"
    case: Case = "fold"

    def differences(self, other: KeyRule) -> list[str]:
        """Return the settings in which `other` differs, in words."""
        own, theirs = asdict(self), asdict(other)
        return [f"{name} (recorded {own[name]}, now {theirs[name]})" for name in ("unicode", "spaces", "case")
                if own[name] != theirs[name]]  # fmt: skip

    def normalise(self, texts: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return the normalised keys. Letters are folded through capitals, so that ß and SS are equal."""
        import polars as pl
        import pyarrow as pa

        if not len(texts):
            return texts
        column: Any = pl.Series(texts)
        column = column if self.unicode == "keep" else column.str.normalize(self.unicode)
        if self.case == "fold":
            column = column.str.to_uppercase().str.to_lowercase()
            column = column if self.unicode == "keep" else column.str.normalize(self.unicode)
        if self.spaces == "trim":
            column = column.str.replace_all(UNSEEN, "").str.replace_all(r"\s+", " ").str.strip_chars()
        if empty := int((column == "").sum()):
            raise DataError(
                f"The record key is missing in {empty} of {len(column)} rows.",
                hint="Drop these rows or use another key column; every record needs a key.",
            )
        return pa.chunked_array([column.to_arrow().cast(pa.large_string())])
