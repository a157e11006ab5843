"""Keyed cryptographic randomness: whoever cannot read the secret cannot tell a decoy from the truth.

`key.py` holds the 256-bit secret and its file, `streams.py` the two sources of random words drawn from it, `people.py`
how record keys are evened out. `register.py` keeps what was released under a secret file so far, `publication.py` is
what one release adds to it, `signatures.py` the values that classes left possible, `checks.py` what is refused, and
`signing.py` the keys that sign releases.
"""

from noren.secret.key import KeyRule, Secret
from noren.secret.publication import ClassSets, DrawnColumn, Publication, PublishedClasses
from noren.secret.register import Register
from noren.secret.signing import PublicKey, SigningKey
from noren.secret.streams import Keystream, KeystreamLane, RecordLane, RecordStream

__all__ = [
    "ClassSets",
    "DrawnColumn",
    "KeyRule",
    "Keystream",
    "KeystreamLane",
    "PublicKey",
    "Publication",
    "PublishedClasses",
    "RecordLane",
    "RecordStream",
    "Register",
    "Secret",
    "SigningKey",
]
