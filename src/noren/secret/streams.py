"""Random words from AES-256 that nobody can predict without the key, in two modes.

*Fresh mode* (`Keystream`): a new key every run. Each lane is one AES-CTR keystream whose 16-byte counter block is

    bytes 0-7   lane number, big-endian: 0 for the stream itself, then 1, 2, ... in the order lanes are opened
    bytes 8-15  block number inside the lane, big-endian, counting from 0

so lanes never share a counter (a lane would have to give 2^68 bytes to run into the next one).

*Memoised mode* (`RecordStream`): the words of a cell are AES (one key per attribute) over 16-byte blocks

    bytes 0-11   first 96 bits of the keyed hash of the record key
    bytes 12-13  code of the true value, little-endian
    bytes 14-15  block counter, little-endian: attempt * blocks per attempt + block

so they depend on the secret, the attribute's name, the record key, the true value and nothing else: not on the
batch, the order or the thread. All words are read little-endian.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noren.errors import DataError, SecretError
from noren.secret.key import KeyRule, Sealed, Secret

if TYPE_CHECKING:
    import pyarrow as pa


WORD = np.dtype("<u4")
CODE_LIMIT = 1 << 16
_ATTEMPT_LIMIT = 1 << 16
_ZEROS = bytes(1 << 18)  # what AES-CTR is asked to encrypt; an untouched source is faster than clearing the target
_KEYS_AT_ONCE = 1 << 14


def _ctr(key: bytes, lane: int) -> Any:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return Cipher(algorithms.AES(key), modes.CTR(lane.to_bytes(8, "big") + bytes(8))).encryptor()


def _ecb(key: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    # Not a cipher mode here but the bare pseudo-random function: inputs are distinct by layout, nothing is decrypted.
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor()


class Scratch:
    """Memory that the lanes of one thread reuse for their words, so that it stays in the core's cache."""

    __slots__ = ("_words",)

    def __init__(self) -> None:
        self._words: NDArray[np.uint32] = np.empty(0, WORD)

    def words(self, n: int) -> NDArray[np.uint32]:
        if n > self._words.size:
            self._words = np.empty(n, WORD)
        return self._words[:n]


class KeystreamLane(Sealed):
    """One keystream for one thread. The array from `cell_words` is valid until the next call."""

    __slots__ = ("_cipher", "_scratch")

    def __init__(self, key: bytes, number: int, scratch: Scratch | None = None) -> None:
        self._cipher = _ctr(key, number)
        self._scratch = scratch or Scratch()

    def fill(self, buffer: Any) -> None:
        """Overwrite a writable, contiguous buffer with the next bytes of the keystream."""
        target = memoryview(buffer).cast("B")
        zeros = memoryview(_ZEROS)
        for start in range(0, len(target), len(zeros)):
            part = target[start : start + len(zeros)]
            self._cipher.update_into(zeros[: len(part)], part)

    def cell_words(
        self, digests: NDArray[np.uint64] | None, codes: NDArray, need: int, attempt: int
    ) -> NDArray[np.uint32]:
        """Return (cells, need) new words; a keystream never repeats a word."""
        words = self._scratch.words(len(codes) * need)
        if words.size:
            self.fill(words)
        return words.reshape(len(codes), need)


class Keystream(Sealed):
    """Fresh mode: random words under a key of this object only, so that two runs never share one.

    A given `secret` is mixed with 256 new random bits; it can only add to the operating system's randomness. `salt`
    replaces those bits and makes the stream repeatable: for known-answer tests, never for a release.
    """

    __slots__ = ("_key", "_lanes", "_lock", "_own")

    def __init__(self, secret: Secret | None = None, *, salt: bytes | None = None) -> None:
        salt = os.urandom(32) if salt is None else salt
        self._key = (secret or Secret.fresh()).derive("keystream", salt.hex())
        self._lock = threading.Lock()
        self._lanes = 0
        self._own = KeystreamLane(self._key, 0)

    def lane(self, attribute: str = "", scratch: Scratch | None = None) -> KeystreamLane:
        """Return a keystream for one thread, with the same key and a lane number that is used once."""
        with self._lock:
            self._lanes += 1
            number = self._lanes
        return KeystreamLane(self._key, number, scratch)

    def fill(self, buffer: Any) -> None:
        """Overwrite a writable, contiguous buffer with random bytes."""
        with self._lock:
            self._own.fill(buffer)

    def words32(self, n: int) -> NDArray[np.uint32]:
        words = np.empty(n, WORD)
        if n:
            self.fill(words)
        return words

    def cell_words(
        self, attribute: str, digests: NDArray[np.uint64] | None, codes: NDArray, need: int, attempt: int
    ) -> NDArray[np.uint32]:
        """Return (cells, need) new words."""
        return self.words32(len(codes) * need).reshape(len(codes), need)


class RecordLane(Sealed):
    """The words of one attribute's cells, for one thread; they are valid until the scratch memory is used again."""

    __slots__ = ("_cipher", "_scratch")

    def __init__(self, key: bytes, scratch: Scratch | None = None) -> None:
        self._cipher = _ecb(key)
        self._scratch = scratch or Scratch()

    def cell_words(
        self, digests: NDArray[np.uint64] | None, codes: NDArray, need: int, attempt: int
    ) -> NDArray[np.uint32]:
        """Return (cells, at least need) words: a pure function of each cell's digest, code and the attempt."""
        if digests is None or len(digests) != len(codes):
            raise SecretError(
                "Memoised decoys need the digest of every record's key.",
                hint="Set a record key in the policy, and pass RecordStream.digests of that column.",
            )
        if codes.dtype.itemsize > 2 and len(codes) and int(codes.max()) >= CODE_LIMIT:
            raise SecretError(
                f"Memoised decoys can number at most {CODE_LIMIT} values of an attribute.",
                hint="Bin or generalise the attribute.",
            )
        n, blocks = len(codes), -(-need // 4)
        first = attempt * blocks
        if first + blocks > _ATTEMPT_LIMIT:
            raise SecretError(
                f"A set that needs {need} random words ran out of block counters at attempt {attempt}.",
                hint="Use a smaller set size or a smaller domain.",
            )
        spare = self._scratch.words(4 * n * blocks + 4)  # AES in place wants 15 bytes to spare
        words = spare[:-4]
        if n == 0:
            return words.reshape(0, 4 * blocks)
        pairs, fields = words.view("<u8"), words.view("<u2")
        if blocks == 1:  # the usual case, in one dimension: NumPy is slow at loops over an inner axis of one or two
            pairs[:] = digests.reshape(-1)
            fields[6::8] = codes
        else:
            pairs.reshape(n, blocks, 2)[:] = digests[:, None, :]
            fields.reshape(n, blocks, 8)[:, :, 6] = codes[:, None]
        if first or blocks > 1:
            fields.reshape(n, blocks, 8)[:, :, 7] = np.arange(first, first + blocks)
        self._cipher.update_into(words.view(np.uint8), spare.view(np.uint8))
        return words.reshape(n, 4 * blocks)


class RecordStream(Sealed):
    """Memoised mode: the same person with the same value gets the same words in every release under a secret.

    `rule` evens out how keys are written before they are hashed; `names` says under which name a renamed attribute was
    drawn before.
    """

    __slots__ = ("_names", "_rule", "_secret")

    def __init__(self, secret: Secret, rule: KeyRule | None = None, names: Mapping[str, str] | None = None) -> None:
        self._secret = secret
        self._rule = rule
        self._names = dict(names or {})

    def lane(self, attribute: str = "", scratch: Scratch | None = None) -> RecordLane:
        """Return the words of one attribute, under its own key, for one thread."""
        return RecordLane(self._secret.derive("attribute", self._names.get(attribute, attribute)), scratch)

    def cell_words(
        self, attribute: str, digests: NDArray[np.uint64] | None, codes: NDArray, need: int, attempt: int
    ) -> NDArray[np.uint32]:
        """Return (cells, at least need) words of these cells."""
        return self.lane(attribute).cell_words(digests, codes, need, attempt)

    def digests(self, keys: pa.Array | pa.ChunkedArray) -> NDArray[np.uint64]:
        """Return a keyed 96-bit hash of every record key, as (n, 2) words whose last 32 bits are zero.

        CBC-MAC under AES over the key's length (first block) and its UTF-8 text, zero-padded: with the length in
        front it is a pseudo-random function of texts of any length. An integer key is hashed as its decimal text.
        """
        texts = _key_texts(keys)
        texts = texts if self._rule is None else self._rule.normalise(texts)
        cipher = _ecb(self._secret.derive("record-keys"))
        out = np.empty((len(texts), 2), "<u8")
        row = 0
        for chunk in texts.chunks:
            starts, lengths, data = _text_layout(chunk)
            for begin in range(0, len(chunk), _KEYS_AT_ONCE):
                part = slice(begin, min(begin + _KEYS_AT_ONCE, len(chunk)))
                _cbc_mac(cipher, data, starts[part], lengths[part], out[row + part.start : row + part.stop])
            row += len(chunk)
        out[:, 1] &= np.uint64(0xFFFFFFFF)
        return out

    def people(self, keys: pa.Array | pa.ChunkedArray) -> NDArray[np.uint64]:
        """Return the identities of people in a register: the first 64 bits of the digest of every key."""
        return np.ascontiguousarray(self.digests(keys)[:, 0])


def _key_texts(keys: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    """Return record keys as text; integers become decimal digits, so that CSV and Parquet agree."""
    import pyarrow as pa

    chunked = keys if isinstance(keys, pa.ChunkedArray) else pa.chunked_array([keys])
    if chunked.null_count:
        raise DataError(
            f"The record key is missing in {chunked.null_count} of {len(chunked)} rows.",
            hint="Drop these rows or use another key column; every record needs a key.",
        )
    kind = chunked.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        chunked = chunked.cast(kind)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    if not (is_text or pa.types.is_integer(kind)):
        raise DataError(
            f"A record key must be text or an integer; this column has type {kind}.",
            hint="Write the key as text, the same way in every table that shares the secret.",
        )
    return chunked.cast(pa.large_string())


def _text_layout(chunk: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:
    """Return the offset and length of each text and the bytes, followed by 16 to read past the end."""
    if len(chunk) == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.zeros(16, np.uint8)
    _, offset_buffer, data_buffer = chunk.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64, len(chunk) + 1, 8 * chunk.offset)
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.zeros(last - first + 16, np.uint8)
    if last > first:
        data[:-16] = np.frombuffer(data_buffer, np.uint8, last - first, first)
    return offsets[:-1] - first, np.diff(offsets), data


def _cbc_mac(
    cipher: Any,
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    out: NDArray[np.uint64],
) -> None:
    """CBC-MAC of many texts at once; the loop runs over block positions and keeps only texts that reach them."""
    # Eight bytes from any position: unaligned words over the same memory.
    words: NDArray[np.uint64] = np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))
    keep = np.array([(1 << (8 * count)) - 1 for count in range(9)], np.uint64)
    state = np.zeros((len(starts), 2), "<u8")
    state[:, 0] = lengths
    active = np.arange(len(starts))
    position = 0
    while active.size:
        _encrypt_rows(cipher, state)
        done = lengths[active] <= position
        out[active[done]] = state[done]
        active, state = active[~done], np.ascontiguousarray(state[~done])
        for half in (0, 1):
            left = np.clip(lengths[active] - position - 8 * half, 0, 8)
            where = np.minimum(starts[active] + position + 8 * half, len(words) - 1)
            state[:, half] ^= words[where] & keep[left]
        position += 16


def _encrypt_rows(cipher: Any, blocks: NDArray[np.uint64]) -> None:
    """Encrypt every 16-byte row in place."""
    if len(blocks):
        encrypted = cipher.update(blocks.view(np.uint8))
        blocks[:] = np.frombuffer(encrypted, "<u8").reshape(-1, 2)


# ---------------------------------------------------------------------- keys that travel to a cluster
#
# A cluster draws on other machines, so something must travel there. What travels is derived (`Secret.derive`) for the
# purposes that are named, one key each; nobody gets from them to the secret or to the key of another purpose. The
# engine judges whether the way there is safe, and refuses before it packs anything.


ORDER = "order"
ATTRIBUTE = "attribute"
RECORD_KEYS = "record-keys"


class CarriedKeys(Sealed):
    """The keys of some purposes, printed without them; the only sealed object that can be pickled."""

    __slots__ = ("_keys",)

    def __init__(self, keys: Mapping[tuple[str, str], bytes]) -> None:
        self._keys = dict(keys)

    @classmethod
    def of(cls, secret: Secret, purposes: Iterable[tuple[str, str]]) -> CarriedKeys:
        """Return the keys of these purposes and names."""
        return cls({(purpose, name): secret.derive(purpose, name) for purpose, name in purposes})

    def derive(self, purpose: str, name: str = "") -> bytes:
        """Return the key of a packed purpose."""
        if (purpose, name) not in self._keys:
            raise SecretError(f"the key of {purpose!r} was not sent here.", hint="Please report this defect of Noren.")
        return self._keys[purpose, name]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return CarriedKeys, (self._keys,)


class CarriedStream(RecordStream):
    """A `RecordStream` with derived keys that can be sent to tasks: the same words for the same digest, attribute and
    code."""

    __slots__ = ()

    def __init__(self, keys: CarriedKeys, rule: KeyRule | None = None, names: Mapping[str, str] | None = None) -> None:
        super().__init__(keys, rule, names)  # type: ignore[arg-type]  # it asks for `derive` and nothing else

    def __reduce_ex__(self, protocol: Any) -> Any:
        return CarriedStream, (self._secret, self._rule, self._names)


def carry_stream(stream: RecordStream, attributes: Iterable[str]) -> CarriedStream:
    """Return the stream for tasks, with the keys of these attributes and the one that hashes record keys."""
    names = stream._names
    purposes = [(ATTRIBUTE, names.get(name, name)) for name in attributes]
    return CarriedStream(CarriedKeys.of(stream._secret, [*purposes, (RECORD_KEYS, "")]), stream._rule, names)


def fresh_stream(attributes: Iterable[str]) -> CarriedStream:
    """Return a stream with keys for one run only."""
    return carry_stream(RecordStream(Secret.fresh()), attributes)


def numbered_digests(numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return digests for records that are identified by their number in the table."""
    out = np.zeros((len(numbers), 2), "<u8")
    out[:, 0] = numbers
    return out


def order_keys(keys: CarriedKeys, numbers: NDArray[np.int64], member: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return 128 random bits for every row, as (n, 2) integers: a function of the key, the record and which of its
    rows."""
    blocks = np.zeros((len(numbers), 2), "<u8")
    blocks[:, 0] = numbers
    blocks[:, 1] = member
    if len(blocks):
        blocks = np.frombuffer(_ecb(keys.derive(ORDER)).update(blocks.view(np.uint8)), "<u8").reshape(-1, 2)
    return blocks.view("<i8")
