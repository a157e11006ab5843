"""Keyed cryptographic randomness: whoever cannot read the secret cannot tell a decoy from the truth.

`key.py` holds the 256-bit secret and its file, `streams.py` the two sources of random words drawn from it,
`ledger.py` what has been released under a secret file so far, `signing.py` the keys that sign releases.
"""

from noren.secret.key import Secret
from noren.secret.ledger import Ledger, LedgerEntry
from noren.secret.signing import PublicKey, SigningKey
from noren.secret.streams import Keystream, KeystreamLane, RecordLane, RecordStream

__all__ = [
    "Keystream",
    "KeystreamLane",
    "Ledger",
    "LedgerEntry",
    "PublicKey",
    "RecordLane",
    "RecordStream",
    "Secret",
    "SigningKey",
]
