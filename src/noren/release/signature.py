"""The signature of a release: a small file beside the descriptor, over its bytes.

The descriptor holds the checksums of all other files, so a signature over it covers the release. It names its signer;
whether that is the holder is only known to who compares it with a key that came through another channel.
"""

from __future__ import annotations

import os
from pathlib import Path

from noren.errors import ReleaseError
from noren.secret.signing import PublicKey, Signature, SigningKey
from noren.sources.place import Spot

SIGNATURE = "datapackage.sig"
MOST_BYTES = 1024


def write_signature(descriptor: Path, key: SigningKey) -> None:
    """Sign a descriptor."""
    text = key.sign(descriptor.read_bytes()).text()
    descriptor.with_name(SIGNATURE).write_text(text, encoding="ascii", newline="")


def read_signature(descriptor: Spot) -> PublicKey | None:
    """Return the signer of the release, or None; an invalid signature is refused."""
    path = descriptor.with_name(SIGNATURE)
    if not path.exists() and not path.is_symlink():
        return None
    if path.is_symlink() or not path.is_file():
        raise _refusal(path, "it is not a file")
    with path.open("rb") as file:
        found = Signature.parse(file.read(MOST_BYTES))
    if found is None:
        raise _refusal(path, "it is not a complete signature")
    if not found.covers(descriptor.read_bytes()):
        raise _refusal(path, f"{descriptor.name} differs from what was signed")
    return found.signer


def demand_signer(descriptor: Spot, signer: PublicKey | str | os.PathLike[str]) -> PublicKey:
    """Refuse a release that the required signer did not sign."""
    wanted = signer if isinstance(signer, PublicKey) else PublicKey.load(signer)
    found = read_signature(descriptor)
    if found is None:
        raise ReleaseError(
            f"{descriptor.parent}: it is not signed ({SIGNATURE} is missing), but a signer was required.",
            hint="Do not use it; ask the holder for the signed release.",
        )
    if found != wanted:
        raise ReleaseError(
            f"{descriptor.parent}: it is signed by {found.fingerprint}, not by the required signer "
            f"{wanted.fingerprint}.",
            hint="Do not use it; ask the holder for their public key.",
        )
    return found


def _refusal(path: Spot, why: str) -> ReleaseError:
    return ReleaseError.distrust(f"{path}: the signature is not valid: {why}.")
