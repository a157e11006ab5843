"""Key files: none is ever overwritten, none is read that others could have read, none opens without its passphrase."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from noren.errors import SecretError
from noren.secret.signing import MOST_BYTES, PASSPHRASE, PublicKey, Signature, SigningKey, _write, signing_key

WORDS = "four plain words"


def files(path: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in path.iterdir() if one.is_file()}


@pytest.mark.parametrize("ending", ["", ".pub"])
@pytest.mark.parametrize("kind", ["file", "link to nothing"])
def test_a_key_is_never_overwritten(ending: str, kind: str, tmp_path: Path) -> None:
    taken = tmp_path / f"mine.key{ending}"
    if kind == "file":
        taken.write_bytes(b"older")
    else:
        taken.symlink_to(tmp_path / "nowhere")
    before = files(tmp_path)
    with pytest.raises(SecretError, match=f"{taken.name} exists already; a key is never overwritten"):
        SigningKey.create(tmp_path / "mine.key")
    assert files(tmp_path) == before


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o610, 0o601])
def test_a_key_that_others_could_have_read_is_refused(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "mine.key"
    SigningKey.create(path)
    path.chmod(mode)
    with pytest.raises(SecretError, match=f"open to other users \\(mode {mode:04o}\\)"):
        SigningKey.load(path)
    (tmp_path / "mine.key.pub").chmod(0o666)
    assert PublicKey.load(tmp_path / "mine.key.pub").fingerprint


def test_a_locked_key_opens_with_its_passphrase_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PASSPHRASE, raising=False)
    path = tmp_path / "mine.key"
    with pytest.raises(SecretError, match="passphrase is empty"):
        SigningKey.create(path, "")
    made = SigningKey.create(path, WORDS)
    for none in (None, ""):
        with pytest.raises(SecretError, match="is locked with a passphrase"):
            SigningKey.load(path, none)
    with pytest.raises(SecretError, match="the passphrase is wrong"):
        SigningKey.load(path, "other words")
    monkeypatch.setenv(PASSPHRASE, "other words")
    assert SigningKey.load(path, WORDS).public == made.public, "what is given goes before the environment"
    monkeypatch.setenv(PASSPHRASE, WORDS)
    assert SigningKey.load(path).public == made.public
    with pytest.raises(SecretError, match="is locked with a passphrase"):
        SigningKey.load(path, "")


def test_a_key_without_a_passphrase_needs_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSPHRASE, WORDS)
    made = SigningKey.create(tmp_path / "mine.key")
    assert SigningKey.load(tmp_path / "mine.key").public == made.public
    assert signing_key(made) is made
    assert signing_key(tmp_path / "mine.key").public == made.public


def _other_kind() -> bytes:
    key = X25519PrivateKey.generate()
    return key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (lambda: b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "is damaged"),
        (_other_kind, "is not an Ed25519 key"),
        (lambda: b"", "is not a signing key"),
        (lambda: b" " * MOST_BYTES + _other_kind(), "is not a signing key"),
    ],
)
def test_what_is_no_signing_key_is_refused(content: Callable[[], bytes], said: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.key"
    path.write_bytes(content())
    path.chmod(0o600)
    with pytest.raises(SecretError, match=said):
        SigningKey.load(path)
    with pytest.raises(SecretError, match="There is no signing key at"):
        SigningKey.load(tmp_path / "nowhere")


def test_a_signature_is_over_these_bytes_by_this_signer(tmp_path: Path) -> None:
    mine, other = SigningKey.create(tmp_path / "mine.key"), SigningKey.create(tmp_path / "other.key")
    signature = mine.sign(b"these")
    assert signature.covers(b"these")
    assert not signature.covers(b"those")
    assert not Signature(other.public, signature.raw).covers(b"these")
    assert Signature.parse(signature.text().encode()) == signature
    for wrong in (signature.text()[:-1], signature.text() + "\n", "x" + signature.text(), ""):
        assert Signature.parse(wrong.encode()) is None
    assert PublicKey.load(tmp_path / "mine.key.pub") == mine.public
    assert len(mine.public.fingerprint) == 32


@pytest.mark.parametrize("half", [1, 2])
@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_key_that_cannot_be_written_leaves_nothing_in_the_way_of_the_next(
    half: int, fault: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key is written first, and then its public half."""
    written: list[int] = []

    def fails(handle: int) -> None:
        written.append(handle)
        if len(written) == half:
            raise fault

    with monkeypatch.context() as patched:
        patched.setattr("noren.secret.signing.os.fsync", fails)
        with pytest.raises(SecretError if isinstance(fault, OSError) else KeyboardInterrupt):
            SigningKey.create(tmp_path / "mine.key")
    assert files(tmp_path) == {}
    SigningKey.create(tmp_path / "mine.key")
    before = files(tmp_path)
    with pytest.raises(SecretError, match="Cannot write"):
        _write(tmp_path / "mine.key", b"other", 0o600)
    assert files(tmp_path) == before, "what was there before is nobody's to remove"
