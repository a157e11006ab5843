"""Secret files and record keys of releases that are registered.

Keys must be unique: two people under one key would share their decoys.

Only keyed digests are kept, eight bytes a record, in a temporary file that is checked range by range, so that memory
does not grow with the table.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from noren.errors import DataError, PolicyError, Problem, SecretError
from noren.policy.policy import Policy
from noren.secret import RecordStream, Secret

RANGE_RECORDS = 1 << 24


class UniqueKeys:
    """Collects record keys and refuses a repeated one."""

    def __init__(self, stream: RecordStream) -> None:
        self._stream = stream
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._records = 0
        self._known = 0

    @property
    def stream(self) -> RecordStream:
        """What makes digests of keys, for an engine that counts repeated ones where they are."""
        return self._stream

    def found(self, repeated: int) -> None:
        """So many records repeat another one's key, says an engine that looked itself."""
        self._known += repeated

    def __call__(self, keys: Any) -> None:
        digests = np.ascontiguousarray(self._stream.digests(keys)[:, 0])
        self._file.write(digests.tobytes())
        self._records += len(digests)

    def demand_unique(self, column: str) -> None:
        repeated = self._known + self._repeated()
        if repeated:
            raise DataError(
                f"the record key {column!r} is not unique: {repeated} records repeat another one's key.",
                hint="Choose a column that names every person once, or remove repeated records. Keys that differ in "
                "spaces or case alone are the same, unless key_spaces or key_case say keep under [randomness].",
            )

    def close(self) -> None:
        self._file.close()

    def _repeated(self) -> int:
        if self._records == 0:
            return 0
        self._file.flush()
        digests = np.memmap(self._file, np.uint64, "r", shape=(self._records,))
        ranges = -(-self._records // RANGE_RECORDS)
        repeated = 0
        for number in range(ranges):
            if ranges == 1:
                part = np.array(digests)
            else:
                low = (number << 64) // ranges
                high = ((number + 1) << 64) // ranges - 1
                chunks = []
                for start in range(0, self._records, RANGE_RECORDS):
                    chunk = digests[start : start + RANGE_RECORDS]
                    chunks.append(chunk[(chunk >= np.uint64(low)) & (chunk <= np.uint64(high))])
                part = np.concatenate(chunks)
            repeated += len(part) - len(np.unique(part))
        return repeated


def secret_file(policy: Policy, given: str | Path | None) -> Path | None:
    """The secret file that a policy or a caller names; None for fresh randomness."""
    options = policy.randomness
    if given is not None:
        if options.record_key is None:
            where, hint = "randomness.record_key", "Name the column that identifies a person, unique in the table."
            raise PolicyError([Problem(where, "a secret needs a record key.", hint)], source=policy.source)
        return Path(given)
    if options.secret is None and (options.record_key is not None or options.fingerprint is not None):
        raise SecretError(
            "the policy asks for memoised decoys, and no secret is given.",
            hint="Make one with `noren secret FILE` and give it with --secret FILE or randomness.secret.",
        )
    return None if options.secret is None else policy.base / options.secret


def memoised_stream(policy: Policy, path: Path | None) -> RecordStream | None:
    """The randomness of a secret file, if it is the secret that the policy demands.

    Keys are evened out as the policy says, and renamed columns are drawn as they were.
    """
    if path is None:
        return None
    secret = Secret.load(path)
    wanted = policy.randomness.fingerprint
    if wanted is not None and wanted != secret.fingerprint:
        raise SecretError(
            f"{path} has the fingerprint {secret.fingerprint}, the policy demands {wanted}.",
            hint="Use the secret of the earlier releases: under another one, releases can be intersected.",
        )
    return RecordStream(secret, policy.randomness.rule, policy.randomness.columns)
