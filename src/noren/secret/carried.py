"""Keys that may leave this process: those of single purposes, never the secret from which they come.

A cluster draws on other machines, so something must travel there. What travels is derived (`Secret.derive`) for the
purposes that are named, one key each; nobody gets from them to the secret or to the key of another purpose. Whether the
way there is safe is for the engine to judge, which refuses before it packs anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.errors import SecretError
from noren.secret.key import Sealed, Secret
from noren.secret.people import KeyRule
from noren.secret.streams import RecordStream, _ecb

ORDER = "order"
ATTRIBUTE = "attribute"
RECORD_KEYS = "record-keys"


class CarriedKeys(Sealed):
    """The keys of some purposes. Prints without them; the one sealed thing that can be pickled."""

    __slots__ = ("_keys",)

    def __init__(self, keys: Mapping[tuple[str, str], bytes]) -> None:
        self._keys = dict(keys)

    @classmethod
    def of(cls, secret: Secret, purposes: Iterable[tuple[str, str]]) -> CarriedKeys:
        """The keys of these purposes and names."""
        return cls({(purpose, name): secret.derive(purpose, name) for purpose, name in purposes})

    def derive(self, purpose: str, name: str = "") -> bytes:
        """The key of a purpose that was packed."""
        if (purpose, name) not in self._keys:
            raise SecretError(f"the key of {purpose!r} did not travel.", hint="Name it where the keys are packed.")
        return self._keys[purpose, name]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return CarriedKeys, (self._keys,)


class CarriedStream(RecordStream):
    """A `RecordStream` under keys that travel: the same words for the same digest, attribute and code."""

    __slots__ = ()

    def __init__(self, keys: CarriedKeys, rule: KeyRule | None = None, names: Mapping[str, str] | None = None) -> None:
        super().__init__(keys, rule, names)  # type: ignore[arg-type]  # it asks for `derive` and nothing else

    def __reduce_ex__(self, protocol: Any) -> Any:
        return CarriedStream, (self._secret, self._rule, self._names)


def carried(stream: RecordStream, attributes: Iterable[str]) -> CarriedStream:
    """The stream as it may travel: the keys of these attributes and the one that hashes record keys."""
    names = stream._names
    purposes = [(ATTRIBUTE, names.get(name, name)) for name in attributes]
    return CarriedStream(CarriedKeys.of(stream._secret, [*purposes, (RECORD_KEYS, "")]), stream._rule, names)


def fresh_stream(attributes: Iterable[str]) -> CarriedStream:
    """A stream under keys that exist for one run only."""
    return carried(RecordStream(Secret.fresh()), attributes)


def numbered_digests(numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """What keys the draws of records that are known by their number in the table. AES takes any distinct blocks."""
    out = np.zeros((len(numbers), 2), "<u8")
    out[:, 0] = numbers
    return out


def order_keys(keys: CarriedKeys, numbers: NDArray[np.int64], member: NDArray[np.int64]) -> NDArray[np.int64]:
    """128 random bits for every row, as (n, 2) integers: a function of the key, the record and which of its rows."""
    blocks = np.zeros((len(numbers), 2), "<u8")
    blocks[:, 0] = numbers
    blocks[:, 1] = member
    if len(blocks):
        blocks = np.frombuffer(_ecb(keys.derive(ORDER)).update(blocks.view(np.uint8)), "<u8").reshape(-1, 2)
    return blocks.view("<i8")
