"""What has been released under a secret file, so that a later release cannot quietly contradict an earlier one.

Memoised decoys protect a person over several releases only while an attribute keeps its domain, set size, coin
and design: two different sets for one person can be intersected. The ledger remembers those parameters.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from noren.errors import SecretError
from noren.secret.key import Secret

_VERSION = 1


@dataclass(frozen=True)
class LedgerEntry:
    """How one attribute is drawn: its domain in order, the design's name, set size eta and coin p."""

    domain: tuple[str, ...]
    design: str
    eta: int
    p: float

    def differences(self, other: LedgerEntry) -> list[str]:
        """What `other` would change, in words. Values are counted, not quoted: a domain may come from the data."""
        changes = []
        if self.domain != other.domain:
            old, new = set(self.domain), set(other.domain)
            if old == new:
                changes.append(f"domain (the same {len(old)} values in another order)")
            else:
                changes.append(
                    f"domain (recorded {len(self.domain)} values, now {len(other.domain)}: "
                    f"{len(new - old)} new, {len(old - new)} gone)"
                )
        for name in ("design", "eta", "p"):
            old_value, new_value = getattr(self, name), getattr(other, name)
            if old_value != new_value:
                changes.append(f"{name} (recorded {old_value}, now {new_value})")
        return changes


class Ledger:
    """The record beside a secret file: `<secret path>.ledger.json`, readable by its owner only."""

    def __init__(self, path: Path, secret_path: Path, fingerprint: str) -> None:
        self.path = path
        self._secret_path = secret_path
        self._fingerprint = fingerprint
        self._entries = self._read()

    @classmethod
    def open(cls, secret_path: str | os.PathLike[str]) -> Ledger:
        """The ledger of a secret file; empty if nothing was released under it yet."""
        secret_path = Path(secret_path)
        fingerprint = Secret.load(secret_path).fingerprint
        return cls(secret_path.with_name(secret_path.name + ".ledger.json"), secret_path, fingerprint)

    @property
    def entries(self) -> Mapping[str, LedgerEntry]:
        return MappingProxyType(self._entries)

    def check(self, entries: Mapping[str, LedgerEntry]) -> None:
        """Refuse a release that would draw a recorded attribute differently than before."""
        problems, recorded = [], []
        for name, entry in entries.items():
            known = self._entries.get(name)
            changes = [] if known is None else known.differences(entry)
            if known is not None and changes:
                problems.append(f"{name!r}: {', '.join(changes)}")
                if known.design.startswith("semantic"):
                    recorded.append(f"the l, d, distance and design of {name!r} as they were")
                else:
                    recorded.append(f"eta = {known.eta} and p = {known.p} under [method.parameters.{name}]")
        if problems:
            raise SecretError(
                f"An earlier release under {self._secret_path.name} drew these attributes differently, and two "
                f"different sets of one person can be intersected: {'; '.join(problems)}.",
                hint=f"Use the recorded domain and parameters (in the policy: {'; '.join(recorded)}), or a new "
                "secret, which means that earlier releases can be intersected with this one.",
            )

    def record(self, entries: Mapping[str, LedgerEntry]) -> None:
        """Add what was released. The file is complete at every moment: written aside, then renamed."""
        with self._locked():
            self._entries = self._read()  # another run may have released something meanwhile
            self.check(entries)
            self._entries = {**self._entries, **entries}
            self._write()

    def _read(self) -> dict[str, LedgerEntry]:
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            version, fingerprint = content["noren_ledger"], content["fingerprint"]
            entries = {name: _entry(fields) for name, fields in content["attributes"].items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            raise SecretError(
                f"The ledger {self.path} cannot be read; without it earlier releases are forgotten.",
                hint="Restore it from a backup that fits the secret file.",
            ) from None
        if version != _VERSION:
            raise SecretError(
                f"The ledger {self.path} has format {version}; this version reads {_VERSION}.",
                hint="Use the version of Noren that wrote it, or a newer one.",
            )
        if fingerprint != self._fingerprint:
            raise SecretError(
                f"The ledger {self.path} belongs to secret {fingerprint}, but {self._secret_path.name} holds "
                f"{self._fingerprint}.",
                hint="Restore the secret the ledger was written for, or move the ledger away: releases made "
                "under the other secret can then be intersected with new ones.",
            )
        return entries

    def _write(self) -> None:
        content = {
            "noren_ledger": _VERSION,
            "fingerprint": self._fingerprint,
            "attributes": {
                name: {"domain": list(entry.domain), "design": entry.design, "eta": entry.eta, "p": entry.p}
                for name, entry in sorted(self._entries.items())
            },
        }
        aside = None
        try:
            # mkstemp creates the file with mode 0600.
            handle, aside = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(content, file, indent=1, ensure_ascii=False)
                file.flush()
                os.fsync(file.fileno())
            Path(aside).replace(self.path)
        except BaseException as error:
            if aside is not None:
                with contextlib.suppress(OSError):
                    Path(aside).unlink(missing_ok=True)
            if not isinstance(error, OSError):
                raise
            raise SecretError(
                f"Cannot write the ledger {self.path}: {error.strerror}.",
                hint="Make the secret file's directory writable: a release that is not recorded is not made.",
            ) from None

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """One writer at a time, by a lock on the secret file (where the system has such locks)."""
        try:
            import fcntl
        except ImportError:
            yield
            return
        with self._secret_path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _entry(fields: Mapping[str, Any]) -> LedgerEntry:
    domain = fields["domain"]
    if not isinstance(domain, list):
        raise TypeError("a domain is a list")
    return LedgerEntry(
        domain=tuple(str(value) for value in domain),
        design=str(fields["design"]),
        eta=int(fields["eta"]),
        p=float(fields["p"]),
    )
