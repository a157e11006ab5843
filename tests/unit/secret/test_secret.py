"""The secret stays hidden, its streams are AES as documented, and record keys are evened out as the rule says."""

from __future__ import annotations

import copy
import pickle
import stat
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from noren.errors import DataError, SecretError
from noren.secret import KeyRule, Keystream, RecordStream, Secret
from noren.secret.streams import ORDER, CarriedKeys, Scratch, numbered_digests, order_keys
from tests.oracles import draw as oracle

KEY = bytes(range(100, 132))


def shows(text: str | bytes) -> bool:
    """Whether some form of the key can be read in the text."""
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    forms = [KEY, KEY.hex().encode(), repr(KEY).encode(), KEY[:8], KEY.hex()[:16].encode()]
    return any(form in raw for form in forms)


def holders() -> list[object]:
    secret = Secret(KEY)
    keystream, records = Keystream(secret), RecordStream(secret)
    return [secret, keystream, records, keystream.lane("a"), records.lane("a")]


@pytest.mark.parametrize("holder", holders(), ids=lambda holder: type(holder).__name__)
def test_nothing_that_holds_a_key_shows_it(holder):
    assert not shows(repr(holder))
    assert not shows(str(holder))
    assert not shows(f"{holder} {[holder]}")
    with pytest.raises(TypeError):
        vars(holder)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(SecretError) as caught:
            pickle.dumps(holder, protocol)
        assert not shows(str(caught.value))


def test_no_attribute_of_a_secret_is_the_key():
    secret = Secret(KEY)
    for name in dir(secret):
        value = getattr(secret, name)
        assert not (isinstance(value, str | bytes) and shows(value))
        assert not shows(repr(value))


def test_secrets_compare_by_key_and_copy_to_themselves():
    secret = Secret(KEY)
    assert secret == Secret(KEY)
    assert secret != Secret(bytes(32))
    assert secret != KEY
    assert hash(secret) == hash(Secret(KEY))
    assert copy.copy(secret) is secret
    assert copy.deepcopy({"key": secret})["key"] is secret
    with pytest.raises(SecretError, match="32 bytes; got 5"):
        Secret(b"short")


def test_fingerprint_is_a_one_way_name():
    print_ = Secret(KEY).fingerprint
    assert len(print_) == 16
    assert int(print_, 16) >= 0
    assert print_ == oracle.derive(KEY, "fingerprint")[:8].hex()
    assert not shows(print_)
    assert Secret.fresh().fingerprint != Secret.fresh().fingerprint


def test_create_and_load(tmp_path):
    path = tmp_path / "secret"
    created = Secret.create(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Secret.load(path) == created
    before = path.read_bytes()
    with pytest.raises(SecretError, match="never overwritten") as caught:
        Secret.create(path)
    assert "Load it" in str(caught.value)
    assert path.read_bytes() == before
    with pytest.raises(SecretError, match="existing directory"):
        Secret.create(tmp_path / "nowhere" / "secret")


def test_load_refuses_what_it_cannot_trust(tmp_path):
    path = tmp_path / "secret"
    with pytest.raises(SecretError, match="no secret file"):
        Secret.load(path)
    path.write_text(f"noren-secret-1 {KEY.hex()}\n")
    path.chmod(0o640)
    with pytest.raises(SecretError, match="chmod 600"):
        Secret.load(path)
    path.chmod(0o600)
    assert Secret.load(path) == Secret(KEY)
    for content in ("", KEY.hex(), f"noren-secret-1 {KEY.hex()[:-2]}", f"noren-secret-2 {KEY.hex()}", "\xff\xfe"):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(SecretError, match="not a secret file") as caught:
            Secret.load(path)
        assert not shows(str(caught.value))
    with pytest.raises(SecretError):
        Secret.load(tmp_path)


def test_keystream_is_aes_ctr_with_the_documented_counter_blocks():
    salt = bytes(32)
    key = oracle.derive(KEY, "keystream", salt.hex())
    stream = Keystream(Secret(KEY), salt=salt)
    lanes = [stream.lane("a"), stream.lane("b")]
    assert stream.words32(5).tobytes() + stream.words32(6).tobytes() == oracle.ctr(key, 0, 44)
    words = stream.cell_words("a", None, np.zeros(3, np.uint8), need=2, attempt=0)
    assert words.shape == (3, 2)
    assert words.tobytes() == oracle.ctr(key, 0, 68)[44:]
    size = (1 << 18) + 4  # beyond the source of zeros
    for number, lane in enumerate(lanes, start=1):
        buffer = bytearray(size)
        lane.fill(buffer)
        assert bytes(buffer) == oracle.ctr(key, number, size)
    assert stream.words32(0).size == 0


def test_two_keystreams_never_share_a_key():
    secret = Secret(KEY)
    starts = [Keystream().words32(4).tobytes(), Keystream().words32(4).tobytes()]
    starts += [Keystream(secret).words32(4).tobytes(), Keystream(secret).words32(4).tobytes()]
    assert len(set(starts)) == 4


TEXTS = ["", "a", *("x" * length for length in (7, 8, 15, 16, 17, 32, 33)), "\0", "\0\0", "日本語のれん", "y" * 200]


def digest_bytes(digests: np.ndarray) -> list[bytes]:
    assert digests.dtype == np.dtype("<u8")
    assert all(row.tobytes()[12:] == bytes(4) for row in digests)
    return [row.tobytes()[:12] for row in digests]


def test_digests_are_cbc_mac_with_the_length_first():
    stream = RecordStream(Secret(KEY))
    expected = [oracle.digest(KEY, text) for text in TEXTS]
    assert len(set(expected)) == len(TEXTS)
    for keys in (
        pa.array(TEXTS),
        pa.array(TEXTS, pa.large_string()),
        pa.array(TEXTS).cast(pa.string_view()),
        pa.array(TEXTS).dictionary_encode(),
        pa.array(["in front", *TEXTS, "behind"])[1:-1],
        pa.chunked_array([TEXTS[:4], [], TEXTS[4:]]),
        pa.chunked_array([TEXTS[:4], [], TEXTS[4:]], pa.large_string()),
    ):
        assert digest_bytes(stream.digests(keys)) == expected
    assert stream.digests(pa.array([], pa.string())).shape == (0, 2)
    assert stream.digests(pa.chunked_array([], pa.string())).shape == (0, 2)
    assert digest_bytes(stream.digests(pa.array([""]))) == expected[:1]


def test_integer_keys_hash_as_their_decimal_text():
    stream = RecordStream(Secret(KEY))
    numbers = [0, 7, -3, 123456789012345]
    assert (stream.digests(pa.array(numbers)) == stream.digests(pa.array([str(number) for number in numbers]))).all()
    assert (stream.digests(pa.array([5], pa.uint8())) == stream.digests(pa.array(["5"]))).all()


def test_many_keys_at_once_and_other_keys_under_another_secret():
    texts = [f"person {number}" * (1 + number % 5) for number in range(40_000)]
    digests = RecordStream(Secret(KEY)).digests(pa.array(texts))
    assert len({row.tobytes() for row in digests}) == len(texts)
    for row in (0, 16_383, 16_384, 39_999):
        assert digests[row].tobytes()[:12] == oracle.digest(KEY, texts[row])
    assert (RecordStream(Secret(bytes(32))).digests(pa.array(texts[:10])) != digests[:10]).any()


def test_unusable_keys_are_refused_without_quoting_them():
    stream = RecordStream(Secret(KEY))
    with pytest.raises(DataError, match="missing in 2 of 3 rows") as caught:
        stream.digests(pa.array([None, "patient-17", None]))
    assert "patient-17" not in str(caught.value)
    with pytest.raises(DataError, match="type double"):
        stream.digests(pa.array([1.5]))


@pytest.mark.parametrize("need", [1, 2, 4, 5, 9])
@pytest.mark.parametrize("attempt", [0, 1, 3])
def test_record_words_are_aes_over_the_documented_blocks(need, attempt):
    stream = RecordStream(Secret(KEY))
    codes = np.array([0, 3, 299], np.uint16)
    words = stream.cell_words("job", stream.digests(pa.array(["ann", "bob", "cid"])), codes, need, attempt)
    for row, record in enumerate(["ann", "bob", "cid"]):
        assert words[row, :need].tolist() == oracle.cell_words(KEY, "job", record, int(codes[row]), need, attempt)


@pytest.mark.parametrize("attempt", [0, (1 << 16) - 1])
def test_one_record_has_its_words_up_to_the_last_block_and_none_has_none(attempt):
    stream = RecordStream(Secret(KEY))
    digests = stream.digests(pa.array(["ann"]))
    words = stream.cell_words("job", digests, np.array([7], np.uint8), 4, attempt)
    assert words.tolist() == [oracle.cell_words(KEY, "job", "ann", 7, 4, attempt)]
    assert stream.cell_words("job", digests[:0], np.zeros(0, np.uint8), 5, attempt // 2).shape == (0, 8)
    assert stream.people(pa.array(["ann"])).tobytes() == oracle.digest(KEY, "ann")[:8]


@pytest.mark.parametrize("given", [True, False])
def test_words_of_a_lane_live_in_the_scratch_that_it_was_given(given):
    scratch = Scratch() if given else None
    secret = Secret(KEY)
    for lane in (Keystream(secret).lane("a", scratch), RecordStream(secret).lane("a", scratch)):
        words = lane.cell_words(np.zeros((3, 2), "<u8"), np.zeros(3, np.uint8), 4, 0)
        assert words.shape == (3, 4)
        assert scratch is None or np.shares_memory(words, scratch.words(12))


def test_record_words_refuse_what_their_blocks_cannot_hold():
    stream = RecordStream(Secret(KEY))
    digests = stream.digests(pa.array(["ann"]))
    with pytest.raises(SecretError, match="65536 values"):
        stream.cell_words("job", digests, np.array([1 << 16], np.uint32), 1, 0)
    with pytest.raises(SecretError, match="block counters"):
        stream.cell_words("job", digests, np.array([1], np.uint8), 4, 1 << 16)
    with pytest.raises(SecretError, match="digest of every record"):
        stream.cell_words("job", None, np.array([1], np.uint8), 1, 0)


def test_keys_are_evened_out_as_the_rule_says():
    keys = pa.chunked_array([["Straße 1 ", "STRASSE 1"], ["\u00a0straße 1", "Zoe\u0308", "Zoë", "ﬁ", "FI"]])
    kinds = {
        KeyRule("id"): [0, 0, 0, 1, 1, 2, 2],
        KeyRule("id", case="keep"): [0, 1, 2, 3, 3, 4, 5],
        KeyRule("id", spaces="keep"): [0, 1, 2, 3, 3, 4, 4],
        KeyRule("id", unicode="NFC"): [0, 0, 0, 1, 1, 2, 2],  # capitals part the letters of ﬁ
        KeyRule("id", "keep", "keep", "keep"): [0, 1, 2, 3, 4, 5, 6],
    }
    for rule, expected in kinds.items():
        found = RecordStream(Secret(KEY), rule).people(keys)
        assert np.unique(found, return_index=True)[1].size == len(set(expected))
        assert all((found[i] == found[j]) == (expected[i] == expected[j]) for i in range(7) for j in range(7)), (
            rule,
            found,
        )
    with pytest.raises(DataError, match="missing in 1 of 2"):
        RecordStream(Secret(KEY), KeyRule("id")).people(pa.array(["a", "  "]))


def test_importing_loads_no_cipher_no_compiler_no_arrow():
    code = (
        "import sys, noren.secret, noren.designs.draw\n"
        "print([name for name in ('cryptography', 'numba', 'pyarrow') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_keys_that_are_kept_as_they_are_written_differ_in_their_marks() -> None:
    """An accent that is a character of its own is another key then, whatever is done about capitals."""
    import pyarrow as pa

    from noren.secret.key import KeyRule

    keys = pa.chunked_array([["\u00c9va", "E\u0301va", "\u00e9va"]])
    assert len(set(KeyRule("id", unicode="keep").normalise(keys).to_pylist())) == 2
    assert len(set(KeyRule("id").normalise(keys).to_pylist())) == 1


def test_a_part_of_a_longer_array_of_keys_has_the_digests_of_its_own_texts() -> None:
    """An array that was cut out of another begins in the middle of its buffers."""
    stream = RecordStream(Secret(KEY))
    names = ["Ada", "Bo", "Christine", "", "Eve of a longer name than one block", "Fay"]
    whole = stream.digests(pa.array(names))
    for kind in (pa.string(), pa.large_string()):
        for first in range(1, len(names)):
            assert (stream.digests(pa.array(names, kind).slice(first)) == whole[first:]).all()


def test_rows_are_ordered_by_aes_of_the_record_and_which_of_its_rows():
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    keys = CarriedKeys.of(Secret(KEY), [(ORDER, "")])
    numbers, member = np.array([0, 1, 1, 7]), np.array([0, 0, 1, 3])
    found = order_keys(keys, numbers, member)
    blocks = b"".join(
        int(n).to_bytes(8, "little") + int(m).to_bytes(8, "little") for n, m in zip(numbers, member, strict=True)
    )
    aes = Cipher(algorithms.AES(Secret(KEY).derive(ORDER)), modes.ECB()).encryptor()
    assert found.astype("<i8").tobytes() == aes.update(blocks)
    assert found.shape == (4, 2)
    assert order_keys(keys, numbers[:0], member[:0]).shape == (0, 2)
    assert numbered_digests(numbers).tolist() == [[0, 0], [1, 0], [1, 0], [7, 0]]
    with pytest.raises(SecretError, match="was not sent here"):
        keys.derive("attribute", "job")
