"""Which secret a release is drawn with: a policy that asks for the same sets again never falls back on fresh ones."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import noren as nr
from noren.errors import PolicyError, SecretError
from noren.secret import KeyRule, RecordStream
from noren.workflow.republish import memoised_stream, secret_file


def policy(**randomness: str) -> nr.Policy:
    return nr.Policy(
        attributes={"pid": "identifier", "ill": "sensitive"},
        require=[nr.models.DistinctLDiversity(on="ill", l=2)],
        randomness=randomness,
    )


@pytest.mark.parametrize("asked", [{"record_key": "pid"}, {"record_key": "pid", "fingerprint": "0" * 16}])
def test_a_key_column_without_a_secret_is_refused(asked: dict[str, str]) -> None:
    with pytest.raises(SecretError, match="asks for memoised decoys, and no secret is given"):
        secret_file(policy(**asked), None)


def test_a_secret_without_a_key_column_is_refused() -> None:
    with pytest.raises(PolicyError, match="a secret needs a record key"):
        secret_file(policy(), "secret.key")


def test_the_caller_comes_before_the_policy_and_nothing_is_fresh_randomness() -> None:
    named = policy(record_key="pid", secret="own.key")
    assert secret_file(named, None) == named.base / "own.key"
    assert secret_file(named, "given.key") == Path("given.key")
    assert secret_file(policy(), None) is None


def test_the_secret_is_the_one_that_the_policy_demands(tmp_path: Path) -> None:
    secret = nr.Secret.create(tmp_path / "own.key")
    keys = pa.array(["p1", "p2"])
    expected = RecordStream(secret, KeyRule("pid")).digests(keys).tolist()
    for wanted in ({}, {"fingerprint": secret.fingerprint}):
        stream = memoised_stream(policy(record_key="pid", **wanted), tmp_path / "own.key")
        assert stream is not None
        assert stream.digests(keys).tolist() == expected
    with pytest.raises(SecretError, match=f"has the fingerprint {secret.fingerprint}, but the policy requires 0000"):
        memoised_stream(policy(record_key="pid", fingerprint="0" * 16), tmp_path / "own.key")
    assert memoised_stream(policy(), None) is None
