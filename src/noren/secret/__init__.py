"""Keyed cryptographic randomness: without the secret nobody can distinguish decoys from true values.

`key.py` holds the 256-bit secret, its file, and how record keys are evened out; `streams.py` the random words drawn
from it. `register.py` keeps what was released under a secret file so far and refuses what must not follow;
`publication.py` is what one release adds to it. `signing.py` holds the keys that sign releases.
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
