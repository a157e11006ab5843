"""Slow, obvious twins of the streams and of drawing: one record at a time, in plain Python integers."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import comb

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

TWO_32 = 1 << 32


def derive(key: bytes, purpose: str, name: str = "") -> bytes:
    """HKDF-Expand as the cryptography package has it."""
    info = b"noren/1/" + purpose.encode() + b"/" + name.encode()
    return HKDFExpand(algorithm=hashes.SHA256(), length=32, info=info).derive(key)


def aes(key: bytes, block: bytes) -> bytes:
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(block)


def ctr(key: bytes, lane: int, size: int) -> bytes:
    start = lane.to_bytes(8, "big") + bytes(8)
    return Cipher(algorithms.AES(key), modes.CTR(start)).encryptor().update(bytes(size))


def digest(key: bytes, text: str) -> bytes:
    """CBC-MAC of length block and zero-padded text, cut to 96 bits."""
    subkey, data = derive(key, "record-keys"), text.encode()
    padded = data + bytes(-len(data) % 16)
    message = len(data).to_bytes(16, "little") + padded
    state = bytes(16)
    for start in range(0, len(message), 16):
        state = aes(subkey, bytes(a ^ b for a, b in zip(state, message[start : start + 16], strict=True)))
    return state[:12]


def cell_words(key: bytes, attribute: str, record: str, code: int, need: int, attempt: int) -> list[int]:
    subkey, blocks = derive(key, "attribute", attribute), -(-need // 4)
    head = digest(key, record) + code.to_bytes(2, "little")
    stream = b"".join(aes(subkey, head + (attempt * blocks + block).to_bytes(2, "little")) for block in range(blocks))
    return [int.from_bytes(stream[4 * i : 4 * i + 4], "little") for i in range(need)]


def index(word: int, n: int) -> int | None:
    """One of n from a 32-bit word, or None where the word would favour some of them."""
    chosen, low = divmod(word * n, TWO_32)
    return None if low < TWO_32 % n else chosen


@lru_cache(maxsize=8)
def subsets(n: int, k: int) -> list[tuple[int, ...]]:
    """All k-subsets of 0..n-1, ordered as the numbers their bits spell."""
    return sorted(combinations(range(n), k), key=lambda values: sum(1 << v for v in values))


def heads(d: int, eta: int, p: float) -> int:
    """Pt in units of 2^-32, rounded down; 0 where that would fall below blind chance."""
    threshold = (Fraction(p) + (1 - Fraction(p)) * Fraction(eta, d)) * TWO_32 // 1
    return 0 if p == 0 or Fraction(threshold, TWO_32) < Fraction(eta, d) else int(threshold)


def floyd(words: list[int], pool: list[int], k: int) -> set[int] | None:
    """k of the pool, uniformly (Bentley and Floyd 1987); None if a word must be redrawn."""
    picks = [index(word, len(pool) - k + step + 1) for step, word in enumerate(words)]
    if None in picks:
        return None
    chosen: set[int] = set()
    for step, t in enumerate(picks):
        chosen.add(pool[len(pool) - k + step] if pool[t] in chosen else pool[t])
    return chosen


def one_set(words: list[int], d: int, eta: int, p: float, v: int, table_limit: int) -> set[int] | None:
    """The set that these words draw around the true value v; None if they must be redrawn."""
    threshold = heads(d, eta, p)
    certain, blind = threshold == TWO_32, threshold == 0
    others = list(range(d)) if blind else [value for value in range(d) if value != v]
    sizes = [comb(d, eta)] if blind else [comb(d - 1, eta - 1)] + ([] if certain else [comb(d - 1, eta)])
    if d <= 64 and max(sizes) <= table_limit:
        if any(index(words[len(sizes) - 1], size) is None for size in sizes):
            return None
        inside = certain or (not blind and words[0] < threshold)
        ranked = subsets(len(others), eta - inside)
        chosen = {others[i] for i in ranked[index(words[len(sizes) - 1], len(ranked))]}
    else:
        inside = certain or (not blind and words[0] < threshold)
        if floyd(words[1 : 1 + eta], others, eta) is None:
            return None
        chosen = floyd(words[1 + inside : 1 + eta], others, eta - inside)
    return chosen | {v} if inside else chosen


def words_needed(d: int, eta: int, p: float, table_limit: int) -> int:
    threshold = heads(d, eta, p)
    sizes = [comb(d, eta)] if threshold == 0 else [comb(d - 1, eta - 1)]
    if 0 < threshold < TWO_32:
        sizes.append(comb(d - 1, eta))
    return len(sizes) if d <= 64 and max(sizes) <= table_limit else 1 + eta


def memoised_set(
    key: bytes, attribute: str, record: str, v: int, d: int, eta: int, p: float, table_limit: int
) -> set[int]:
    """The set of one record in memoised mode."""
    if eta == d:
        return set(range(d))
    if eta == 1 and p == 1:
        return {v}
    need = words_needed(d, eta, p, table_limit)
    for attempt in range(100):
        words = cell_words(key, attribute, record, v, need, attempt)
        chosen = one_set(words, d, eta, p, v, table_limit)
        if chosen is not None:
            return chosen
    raise AssertionError("a hundred rejections in a row")
