"""Signatures: with the holder's public key, recipients can recognise forged releases.

Checksums find accidents; whoever can rewrite a release can rewrite them too. A signature (Ed25519) stands over the
bytes of the descriptor, which hold the checksums of all other files, so it covers the whole release. The key is a file
of its own, apart from the secret of decoys: the one is shown to nobody, the other half of this one to everybody.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noren.errors import SecretError
from noren.files import keep_out, write_new
from noren.secret.key import Sealed

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PASSPHRASE = "NOREN_PASSPHRASE"
"""The variable of the environment that holds the passphrase of a signing key."""
MOST_BYTES = 1 << 14
_CONTEXT = b"noren release signature 1\0"
_SIGNATURE = re.compile(r"noren-signature-1 ([0-9a-f]{64}) ([0-9a-f]{128})\n", re.ASCII)
AGAIN = "Restore it from its backup; its content is not shown here on purpose."


@dataclass(frozen=True)
class PublicKey:
    """The public half of a signing key."""

    raw: bytes

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint of the key, 32 hex digits, to be compared with the one that the holder gives in
        another way."""
        return hashlib.sha256(self.raw).hexdigest()[:32]

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PublicKey:
        """Read a .pub file."""
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        content = _content(Path(path), "public key")
        if b"PRIVATE KEY" in content:
            raise SecretError(
                f"{path} is the private signing key, which only the holder may have.",
                hint="Give the public key, the file of the same name that ends in .pub.",
            )
        try:
            key = load_pem_public_key(content)
        except (ValueError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, Ed25519PublicKey):
            message = f"{path} is not the public key of a signer."
            raise SecretError(message, hint="Give the .pub file that `noren key new` wrote.")
        return cls(key.public_bytes_raw())

    def pem(self) -> bytes:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        key = Ed25519PublicKey.from_public_bytes(self.raw)
        return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@dataclass(frozen=True)
class Signature:
    """The signature of a signer over some bytes."""

    signer: PublicKey
    raw: bytes

    def text(self) -> str:
        """Return the line of a signature file."""
        return f"noren-signature-1 {self.signer.raw.hex()} {self.raw.hex()}\n"

    @classmethod
    def parse(cls, content: bytes) -> Signature | None:
        """Return the signature in a file; None if it holds anything else."""
        found = _SIGNATURE.fullmatch(content.decode("ascii", errors="replace"))
        return None if found is None else cls(PublicKey(bytes.fromhex(found[1])), bytes.fromhex(found[2]))

    def covers(self, content: bytes) -> bool:
        """Return whether the signer signed exactly these bytes."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.signer.raw).verify(self.raw, _CONTEXT + content)
        except (InvalidSignature, ValueError):
            return False
        return True


class SigningKey(Sealed):
    """A private Ed25519 key. Its repr and its errors do not contain it, and it cannot be pickled."""

    __slots__ = ("__sign", "public")

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self.__sign = key.sign
        self.public = PublicKey(key.public_key().public_bytes_raw())

    def sign(self, content: bytes) -> Signature:
        return Signature(self.public, self.__sign(_CONTEXT + content))

    @classmethod
    def create(cls, path: str | os.PathLike[str], passphrase: str | None = None) -> SigningKey:
        """Write a new key file that only its owner can read, and the public key as a second file with the ending
        .pub."""
        from cryptography.hazmat.primitives import serialization as form
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        if passphrase == "":
            raise SecretError("The passphrase is empty.", hint="Give a passphrase of several words, or no passphrase.")
        path = Path(path)
        keep_out(path)
        public = path.with_name(path.name + ".pub")
        if path.exists() or path.is_symlink() or public.exists() or public.is_symlink():
            taken = path if path.exists() or path.is_symlink() else public
            raise SecretError(f"{taken} exists already; a key is never overwritten.", hint="Name another file.")
        key = Ed25519PrivateKey.generate()
        lock: Any = form.NoEncryption() if passphrase is None else form.BestAvailableEncryption(passphrase.encode())
        made = cls(key)
        _write(path, key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, lock), 0o600)
        try:
            _write(public, made.public.pem(), 0o644)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return made

    @classmethod
    def load(cls, path: str | os.PathLike[str], passphrase: str | None = None) -> SigningKey:
        """Read a signing key; refuse a file that other users can read. The passphrase of a locked key comes from a
        prompt or NOREN_PASSPHRASE."""
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        path = Path(path)
        content = _content(path, "signing key", private=True)
        if b"PRIVATE KEY" not in content:
            raise SecretError(
                f"{path} is not a signing key.", hint="Give the file that `noren key new` wrote, not .pub."
            )
        word = None
        if is_locked(content):
            word = passphrase if passphrase is not None else os.environ.get(PASSPHRASE)
            if not word:
                hint = f"Set {PASSPHRASE}, or give a file that holds it with --passphrase-file."
                raise SecretError(f"{path} is locked with a passphrase.", hint=hint)
        try:
            key = load_pem_private_key(content, None if word is None else word.encode())
        except (ValueError, TypeError, UnsupportedAlgorithm):
            if word is None:
                raise SecretError(f"{path} is damaged.", hint=AGAIN) from None
            message = f"{path} cannot be opened: the passphrase is wrong, or the file is damaged."
            raise SecretError(message, hint="Give the passphrase that it was made with.") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise SecretError(f"{path} is not an Ed25519 key.", hint="Make one with `noren key new`.")
        return cls(key)


def signing_key(given: SigningKey | str | os.PathLike[str]) -> SigningKey:
    """Return a key, or read it from a file."""
    return given if isinstance(given, SigningKey) else SigningKey.load(given)


def is_locked(content: bytes) -> bool:
    """Return whether a key file needs a passphrase."""
    return b"ENCRYPTED PRIVATE KEY" in content


def _content(path: Path, what: str, private: bool = False) -> bytes:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if private and os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise SecretError(
                    f"{path} is open to other users (mode {stat.S_IMODE(mode):04o}).", hint=f"Run: chmod 600 {path}"
                )
            return file.read(MOST_BYTES)
    except FileNotFoundError:
        hint = "Make one with `noren key new`, or correct the path."
        raise SecretError(f"There is no {what} at {path}.", hint=hint) from None
    except OSError as error:
        raise SecretError(f"Cannot read the {what} {path}: {error.strerror}.") from None


def _write(path: Path, content: bytes, mode: int) -> None:
    try:
        write_new(path, content, mode)
    except OSError as error:
        raise SecretError(
            f"Cannot write {path}: {error.strerror}.", hint="Use a file in an existing directory that you may write to."
        ) from None
