"""Which secret a release is drawn with: a policy that asks for the same sets again never falls back on fresh ones."""

from __future__ import annotations

from pathlib import Path

import pytest

import noren as nr
from noren.errors import PolicyError, SecretError
from noren.pipeline.keys import secret_file


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
