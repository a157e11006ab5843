"""The register of a secret: what was released about whom, so that no later release can be intersected with it.

It is made with the secret and is never begun anew. `<secret path>.register` holds one line that names its secret, and
behind it, encrypted and authenticated under the secret (AES-256-GCM): how people are distinguished, the domain and
design of every drawn column, eight bytes for every person who was released (64 bits of a keyed hash of the person's
key), for every drawn column one byte a person, and for every column of classes four bytes a person that name the values
which all releases so far leave possible. Nobody without the secret can ask it whether a person was released.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.errors import NorenError, RequirementNotMet, SecretError
from noren.files import write_whole
from noren.secret.key import KeyRule, Secret
from noren.secret.publication import ClassSets, DrawnColumn, Publication
from noren.secret.streams import RecordStream

# ---------------------------------------------------------------------- what a new release must not do


MEMOISED, NEW = 1, 2
"""How a person's set of a column was drawn: as the secret gives it, or anew."""
ALIKE = 0.5
"""Two columns whose domains share this part of their values may be one under two names."""
NEW_SECRET = "a new secret, which means that earlier releases can be intersected with this one"


def demand(known: Contents, new: Publication, secret: str) -> None:
    """Raise if the release could be intersected with an earlier one."""
    _demand_key(known, new, secret)
    _demand_designs(known, new, secret)
    _demand_budget(known, new, secret)
    if new.repeat == "allow":
        return
    _demand_names(known, new)
    _demand_drawn_once(known, new)
    _demand_possible(known, new)


def notes(known: Contents, new: Publication) -> list[str]:
    """Return remarks for the holder about a permitted release."""
    again = int((known.places(new.people) >= 0).sum())
    out = [f"register: {again:,} of {len(new.people):,} people are in earlier releases"] if known.releases else []
    if new.spent:
        total = known.spent + new.spent
        out.append(f"register: noised margins spend epsilon = {new.spent:g}, in total {total:g} over all releases")
    if new.repeat == "allow":
        for name in new.domains:
            count = drawn_otherwise(known, new, name) if name in new.drawn else count_exposed(known, new, name)[0]
            if count:
                out.append(
                    f"register: releases of {count:,} people can be intersected in {name!r}, which the policy allows"
                )
    return out


def _demand_key(known: Contents, new: Publication, secret: str) -> None:
    if known.key is None:
        return
    if known.key.column != new.key.column:
        raise SecretError(
            f"Earlier releases under {secret} identify people by {known.key.column!r}, but this policy by "
            f"{new.key.column!r}, so the same people would not be recognised.",
            hint=(
                f'Set record_key = "{known.key.column}" under [randomness]; if it is that column under a new name, '
                f'write {new.key.column} = "{known.key.column}" under [randomness.columns]; or use {NEW_SECRET}.'
            ),
        )
    if changes := known.key.differences(new.key):
        raise SecretError(
            f"Earlier releases under {secret} normalised keys differently, so the same people would not be "
            f"recognised: {', '.join(changes)}.",
            hint=f"Set key_unicode, key_spaces and key_case as recorded, or use {NEW_SECRET}.",
        )


def _demand_budget(known: Contents, new: Publication, secret: str) -> None:
    """Refuse margins beyond the budget; epsilons add up over releases, whoever is in them."""
    total = known.spent + new.spent
    if new.budget is not None and new.spent and total > new.budget * (1 + 1e-9):
        raise RequirementNotMet(
            f"noised margins under {secret} have spent epsilon = {known.spent:g}; with {new.spent:g} more the total "
            f"would be {total:g}, above the budget of {new.budget:g}.",
            hint="Publish fewer margins, or use a smaller epsilon.",
        )


def _demand_designs(known: Contents, new: Publication, secret: str) -> None:
    """Refuse another domain, set size, p or design of a memoised column, because two different sets could be
    intersected."""
    problems, recorded = [], []
    for name, entry in new.drawn.items() if new.memoised else ():
        before = known.drawn.get(name)
        changes = [] if before is None or not before.binding else before.entry.differences(entry)
        if before is not None and changes:
            problems.append(f"{name!r}: {', '.join(changes)}")
            if before.entry.design.startswith("semantic"):
                recorded.append(f"the l, d, distance and design of {name!r} as they were")
            else:
                one = before.entry
                recorded.append(f"eta = {one.eta} and p = {one.p} under [method.parameters.{name}]")
    if problems:
        raise SecretError(
            f"An earlier release under {secret} drew these attributes differently, and two different sets of one "
            f"person can be intersected: {'; '.join(problems)}.",
            hint=f"Use the recorded domain and parameters (in the policy: {'; '.join(recorded)}), or {NEW_SECRET}.",
        )


def _demand_names(known: Contents, new: Publication) -> None:
    """Refuse an unknown column with the values of a missing one, because it may be the same column."""
    gone = {name: values for name, values in known.domains.items() if name not in new.domains}
    again = int((known.places(new.people) >= 0).sum())
    for name, values in new.domains.items():
        if name in known.domains or name in new.named or not again:
            continue
        for other, theirs in gone.items():
            mine, old = {value.strip().casefold() for value in values}, {value.strip().casefold() for value in theirs}
            if len(mine & old) >= ALIKE * len(mine | old):
                raise SecretError(
                    f"{name!r} has {len(mine & old)} of the {len(old)} values of {other!r}, which earlier releases "
                    f"contain for {again:,} of these people; if both are the same column, they could be "
                    "intersected.",
                    hint=(
                        f'Under [randomness.columns], write {name} = "{other}" if it is the same column under a new '
                        f'name, or {name} = "{name}" if it is another one.'
                    ),
                )


def drawn_otherwise(known: Contents, new: Publication, name: str) -> int:
    """Return how many people already have a set of a drawn column that differs from the new one."""
    marks = known.marks_of(name, new.people)
    clash = (marks & NEW) > 0 if new.memoised else marks > 0
    return int((clash | (known.sets_of(name, new.people).which >= 0)).sum())


def _demand_drawn_once(known: Contents, new: Publication) -> None:
    for name in new.drawn:
        if count := drawn_otherwise(known, new, name):
            how = "drawn anew" if not new.memoised else "drawn by the secret"
            raise SecretError(
                f"{count:,} people of this release are in earlier releases with sets or classes of {name!r}, which "
                f"could be intersected with the new ones ({how}).",
                hint=(
                    "Publish them as before, remove these people, or accept that releases can be intersected: repeat = "
                    '"allow" under [randomness].'
                ),
            )
    for name in new.classes:
        if count := int((known.marks_of(name, new.people) > 0).sum()):
            raise SecretError(
                f"{count:,} people of this release are in earlier releases with sets of {name!r}, which can be "
                "intersected with their classes.",
                hint=(
                    'Draw the column as before, remove these people, or accept it: repeat = "allow" under [randomness].'
                ),
            )


def count_exposed(known: Contents, new: Publication, name: str) -> tuple[int, int]:
    """Return for how many people two releases of classes leave too few values, and for how many of those a single value
    or none."""
    one = new.classes[name]
    met = known.sets_of(name, new.people).meet(one.sets)
    found = met.find_exposed(one.least)
    return int(found.sum()), int((met.left[found] <= 1).sum())


def _demand_possible(known: Contents, new: Publication) -> None:
    for name, one in new.classes.items():
        count, alone = count_exposed(known, new, name)
        changed = known.sets_of(name, new.people).meet(one.sets).changed
        if one.invariant and changed.any():
            raise RequirementNotMet(
                f"{int(changed.sum()):,} people would get other possible values of {name!r} than before ({count:,} "
                f"would keep fewer than {one.least}), so nothing is published.",
                hint='Use [method] name = "m-invariance", with which everybody keeps the same possible values.',
            )
        if count:
            raise RequirementNotMet(
                f"{count:,} people were in other classes before: both releases together would leave them fewer than "
                f"{one.least} possible values of {name!r} ({alone:,} of them only one), so nothing is published.",
                hint=(
                    'Require m-invariance with [method] name = "m-invariance", remove these people, or accept it: '
                    'repeat = "allow" under [randomness].'
                ),
            )


SUFFIX = ".register"
_HEADER = "noren-register-1"
_NONCE = 12


def _nobody() -> NDArray[np.uint64]:
    return np.zeros(0, np.uint64)


@dataclass(frozen=True)
class Drawn:
    """A column that was drawn: how, and for whom (MEMOISED, NEW, both or neither)."""

    entry: DrawnColumn
    binding: bool
    """Whether memoised sets were drawn that way, so that later ones must be too."""
    marks: NDArray[np.uint8]


@dataclass(frozen=True)
class Contents:
    """The contents of a register. Marks and sets are those of `people`, in ascending order."""

    key: KeyRule | None = None
    releases: int = 0
    people: NDArray[np.uint64] = field(default_factory=_nobody)
    drawn: Mapping[str, Drawn] = field(default_factory=dict)
    classes: Mapping[str, ClassSets] = field(default_factory=dict)
    spent: float = 0.0
    """The sum of the epsilons of all noised margins that were released."""

    @property
    def domains(self) -> dict[str, tuple[str, ...]]:
        """Return the values of every released column."""
        drawn = {name: one.entry.domain for name, one in self.drawn.items()}
        return drawn | {name: sets.values for name, sets in self.classes.items()}

    def places(self, people: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the positions of these people; -1 for those who were never released."""
        if not len(self.people):
            return np.full(len(people), -1, np.int64)
        place = np.minimum(np.searchsorted(self.people, people), len(self.people) - 1)
        return np.where(self.people[place] == people, place, -1)

    def sets_of(self, column: str, people: NDArray[np.uint64]) -> ClassSets:
        """Return what earlier releases leave possible in a column, for each of these people."""
        if column not in self.classes:
            return ClassSets.none(len(people))
        sets, place = self.classes[column], self.places(people)
        which = np.where(place >= 0, sets.which[np.maximum(place, 0)], -1)
        return replace(sets, which=which)

    def marks_of(self, column: str, people: NDArray[np.uint64]) -> NDArray[np.uint8]:
        """Return how these people's sets of a column were drawn before."""
        if column not in self.drawn:
            return np.zeros(len(people), np.uint8)
        place = self.places(people)
        return np.where(place >= 0, self.drawn[column].marks[np.maximum(place, 0)], 0).astype(np.uint8)

    def with_release(self, new: Publication) -> Contents:
        """Return the contents with one more release."""
        people = np.union1d(self.people, new.people)
        old_at, new_at = np.searchsorted(people, self.people), np.searchsorted(people, new.people)
        drawn: dict[str, Drawn] = {}
        for name in dict.fromkeys([*self.drawn, *new.drawn]):
            marks = np.zeros(len(people), np.uint8)
            known = self.drawn.get(name)
            if known is not None:
                marks[old_at] = known.marks
            if name in new.drawn:
                marks[new_at] |= MEMOISED if new.memoised else NEW
            binding = known is not None and known.binding
            entry = new.drawn[name] if known is None or (not binding and name in new.drawn) else known.entry
            drawn[name] = Drawn(entry, binding or (name in new.drawn and new.memoised), marks)
        classes = {name: sets.place_among(len(people), old_at) for name, sets in self.classes.items()}
        for name, one in new.classes.items():
            now = one.sets.place_among(len(people), new_at)
            classes[name] = classes.get(name, ClassSets.none(len(people))).meet(now).after
        spent = self.spent + new.spent
        return Contents(new.key, self.releases + 1, people.astype(np.uint64), drawn, classes, spent)


class Register:
    """The register of a secret file, readable by its owner only."""

    def __init__(self, secret_path: Path, secret: Secret) -> None:
        self.path = register_path(secret_path)
        self._secret_path = secret_path
        self._secret = secret
        self.contents = self._read()

    @classmethod
    def open(cls, secret_path: str | os.PathLike[str]) -> Register:
        """Open the register of a secret file; a missing register is an error."""
        secret_path = Path(secret_path)
        return cls(secret_path, Secret.load(secret_path))

    @classmethod
    def create(cls, secret_path: Path, secret: Secret) -> None:
        """Create an empty register for a new secret."""
        path = register_path(secret_path)
        if path.exists():
            raise SecretError(
                f"{path} exists already and belongs to another secret.",
                hint="Restore that secret, or choose another name for the new one.",
            )
        try:
            _write(path, _seal(secret, Contents()))
        except BaseException:
            path.unlink(missing_ok=True)
            raise

    @classmethod
    def beside(cls, folder: Path) -> list[Register]:
        """Return the registers of a folder that record people and have their secret beside them."""
        out = []
        for path in sorted(folder.glob(f"*{SUFFIX}")):
            with contextlib.suppress(SecretError):
                found = cls.open(path.with_name(path.name.removesuffix(SUFFIX)))
                out += [found] if found.contents.releases else []
        return out

    def stream(self) -> RecordStream:
        """Return the stream that identifies people in this register."""
        return RecordStream(self._secret, self.contents.key)

    @property
    def size(self) -> int:
        """Return the size of the file in bytes."""
        return self.path.stat().st_size

    def check(self, new: Publication) -> list[str]:
        """Raise if a release could be intersected with an earlier one; otherwise return remarks for the holder."""
        demand(self.contents, new, self._secret_path.name)
        return notes(self.contents, new)

    def record(self, new: Publication) -> None:
        """Record a release."""
        with self.recording(new):
            pass

    @contextlib.contextmanager
    def recording(self, new: Publication, published: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Add a release to the register, let the block publish it, and undo the entry if the block fails and
        `published` says that nothing exists. Nobody else can write meanwhile; after a crash the release is recorded or
        absent.
        """
        with self._lock():
            self.contents = self._read()  # another run may have released something meanwhile
            self.check(new)
            before, known = self.path.read_bytes(), self.contents
            try:
                self.contents = known.with_release(new)
                _write(self.path, _seal(self._secret, self.contents))
                yield
            except BaseException:
                with contextlib.suppress(NorenError):  # what cannot be taken back stays recorded
                    if not published():
                        _write(self.path, before)
                        self.contents = known
                raise

    def _read(self) -> Contents:
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            raise SecretError(
                f"There is no register at {self.path}: what was released under {self._secret_path.name} is not known.",
                hint=(
                    "Restore it from a backup into the folder of its secret. If it is lost, make a new secret with "
                    "`noren secret`; its releases can be intersected with the earlier ones."
                ),
            ) from None
        except OSError:
            content = b""
        header, _, body = content.partition(b"\n")
        words = header.decode("ascii", "replace").split(" ")
        if len(words) == 2 and words[0].startswith("noren-register-") and words[0] != _HEADER:
            raise SecretError(
                f"The register {self.path} has the format {words[0]!r}; this version reads {_HEADER!r}.",
                hint="Use the version of Noren that wrote it, or a newer one.",
            )
        if len(words) == 2 and words[0] == _HEADER and words[1] != self._secret.fingerprint:
            raise SecretError(
                f"The register {self.path} does not belong to {self._secret_path.name}, which has the fingerprint "
                f"{self._secret.fingerprint}.",
                hint="Restore the secret that the register was made with.",
            )
        try:
            return _unseal(self._secret, header, body)
        except Exception:
            raise SecretError(
                f"The register {self.path} cannot be read, so earlier releases are not known.",
                hint="Restore it from a backup that fits the secret file.",
            ) from None

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """Lock the secret file for one writer at a time (if the system has such locks)."""
        try:
            import fcntl
        except ImportError:
            yield
            return
        with self._secret_path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def register_path(secret_path: Path) -> Path:
    """Return the path of the register of a secret file."""
    return secret_path.with_name(secret_path.name + SUFFIX)


# ---------------------------------------------------------------------- the file


def _write(path: Path, content: bytes) -> None:
    try:
        write_whole(path, content, private=True)
    except OSError as error:
        raise SecretError(
            f"Cannot write the register {path}: {error.strerror}.",
            hint=(
                "Make the directory of the secret file writable; a release that cannot be recorded is not published."
            ),
        ) from None


def _seal(secret: Secret, contents: Contents) -> bytes:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    header = f"{_HEADER} {secret.fingerprint}".encode("ascii")
    nonce = os.urandom(_NONCE)
    return header + b"\n" + nonce + AESGCM(secret.derive("register")).encrypt(nonce, _pack(contents), header)


def _unseal(secret: Secret, header: bytes, body: bytes) -> Contents:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return _unpack(AESGCM(secret.derive("register")).decrypt(body[:_NONCE], body[_NONCE:], header))


def _pack(contents: Contents) -> bytes:
    facts: dict[str, Any] = {
        "key": None if contents.key is None else asdict(contents.key),
        "releases": contents.releases,
        "spent": contents.spent,
        "drawn": {name: asdict(one.entry) | {"binding": one.binding} for name, one in contents.drawn.items()},
        "classes": {name: list(sets.values) for name, sets in contents.classes.items()},
    }
    arrays: dict[str, NDArray] = {
        "facts": np.frombuffer(json.dumps(facts, ensure_ascii=False).encode(), np.uint8),
        "people": contents.people,
    }
    for number, one in enumerate(contents.drawn.values()):
        arrays[f"marks{number}"] = one.marks
    for number, sets in enumerate(contents.classes.values()):
        arrays[f"which{number}"] = sets.which.astype(np.int32)
        arrays[f"bounds{number}"] = sets.bounds
        arrays[f"codes{number}"] = sets.codes.astype(np.int32)
    out = io.BytesIO()
    np.savez(out, allow_pickle=False, **arrays)
    return out.getvalue()


def _unpack(body: bytes) -> Contents:
    with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
        facts = json.loads(arrays["facts"].tobytes())
        drawn = {}
        for number, (name, entry) in enumerate(facts["drawn"].items()):
            binding = entry.pop("binding")
            entry["domain"] = tuple(entry["domain"])
            drawn[name] = Drawn(DrawnColumn(**entry), binding, arrays[f"marks{number}"])
        classes = {}
        for number, (name, values) in enumerate(facts["classes"].items()):
            which, bounds, codes = (arrays[f"{part}{number}"].astype(np.int64) for part in ("which", "bounds", "codes"))
            classes[name] = ClassSets(tuple(values), which, bounds, codes)
        key = None if facts["key"] is None else KeyRule(**facts["key"])
        return Contents(key, facts["releases"], arrays["people"], drawn, classes, facts.get("spent", 0.0))
