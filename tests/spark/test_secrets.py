"""Keys travel only where nobody can read them on the way, and Spark's own records hold no cell and no key."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import noren as nr
from noren.engines.spark import cluster
from noren.engines.spark.cluster import TaskFailed, demand_room, demand_sealed, guarded
from noren.errors import OutOfReach, SecretError
from noren.secret import RecordStream
from noren.secret.streams import ORDER, CarriedKeys, carry_stream, numbered_digests, order_keys

ON = {
    "spark.io.encryption.enabled": "true",
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
}


def session_of(master: str, **conf: str) -> Any:
    found = SimpleNamespace(get=lambda name, default=None: conf.get(name, default))
    return SimpleNamespace(conf=found, sparkContext=SimpleNamespace(master=master, getConf=lambda: found))


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2,4]"])
def test_on_one_machine_keys_may_be_used(master: str) -> None:
    demand_sealed(session_of(master))


@pytest.mark.parametrize("master", ["spark://10.0.0.1:7077", "yarn", "k8s://host", "local-cluster[2,1,1024]"])
def test_elsewhere_both_the_wire_and_the_disks_must_be_encrypted(master: str) -> None:
    demand_sealed(session_of(master, **ON))
    demand_sealed(session_of(master, **{"spark.io.encryption.enabled": "true", "spark.ssl.rpc.enabled": "true"}))
    for lacking in ON:
        some = {name: value for name, value in ON.items() if name != lacking}
        with pytest.raises(SecretError, match=f"--conf {lacking}=true"):
            demand_sealed(session_of(master, **some))
    with pytest.raises(SecretError, match=r"spark\.io\.encryption.*spark\.authenticate.*spark\.network\.crypto"):
        demand_sealed(session_of(master))


def test_what_does_not_fit_the_driver_is_refused_with_the_number() -> None:
    demand_room(session_of("local", **{"spark.noren.driver.memory": "1k"}), 1024, "it")
    with pytest.raises(OutOfReach, match="needs 1,025 bytes on the driver, which may use 1,024"):
        demand_room(session_of("local", **{"spark.noren.driver.memory": "1k"}), 1025, "it")
    with pytest.raises(nr.errors.QueryError, match="is no size"):
        demand_room(session_of("local", **{"spark.noren.driver.memory": "much"}), 1, "it")


def test_the_secret_stays_and_single_keys_travel() -> None:
    secret = nr.Secret(bytes(range(32)))
    stream = RecordStream(secret, names={"new": "old"})
    with pytest.raises(SecretError):
        pickle.dumps(stream)
    there = pickle.loads(pickle.dumps(carry_stream(stream, ["new"])))
    keys, codes = pa.array(["a", "b"]), np.array([0, 1])
    digests = stream.digests(keys)
    assert there.digests(keys).tolist() == digests.tolist()
    words = stream.lane("new").cell_words(digests, codes, 3, 0).tolist()
    assert there.lane("new").cell_words(digests, codes, 3, 0).tolist() == words
    with pytest.raises(SecretError, match="was not sent here"):
        there.lane("another")
    assert bytes(range(32)) not in pickle.dumps(there)
    assert "masked" in repr(there)


def test_a_task_is_packed_without_its_keys() -> None:
    """Whatever stands between: a stream within what makes cells, keys of the order beside it."""
    pytest.importorskip("pyspark", reason="Spark needs the extra spark")
    keys = CarriedKeys.of(nr.Secret(bytes(range(32))), [(ORDER, "")])
    stream = carry_stream(RecordStream(nr.Secret(bytes(range(1, 33)))), ["job"])
    task = {"make": [stream, "a long list of values"], "order": keys, "again": keys}
    body, kept = cluster.without_keys(task)
    secrets = [*keys._keys.values(), *stream._secret._keys.values()]
    assert len(secrets) == 3
    assert all(secret not in body for secret in secrets)
    assert b"a long list of values" in body
    there = cluster.rejoined(body, kept)
    assert there["order"] is there["again"] is keys
    digests = stream.digests(pa.array(["a", "b"]))
    assert there["make"][0].digests(pa.array(["a", "b"])).tolist() == digests.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["decoys", "mondrian"])
def test_a_heavy_task_draws_the_same_and_no_key_is_in_a_broadcast(
    method: str, session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark would make a broadcast of a task above a megabyte, with all that is in it."""
    sealed: list[bytes] = []
    shared: list[bytes] = []
    real, broadcast = CarriedKeys.__init__, session.sparkContext.broadcast

    def noted(self: CarriedKeys, keys: Any) -> None:
        sealed.extend(keys.values())
        real(self, keys)

    def seen(value: Any) -> Any:
        shared.append(pickle.dumps(value))
        return broadcast(value)

    monkeypatch.setattr(CarriedKeys, "__init__", noted)
    monkeypatch.setattr(session.sparkContext, "broadcast", seen)
    monkeypatch.setattr(cluster, "HEAVY", 0)
    numbers = np.random.default_rng(7).integers(0, 4, (900, 3))
    who, beasts = [f"person-{i:05}" for i in range(900)], np.array(["moa", "auk", "dodo", "rail"])
    data = pa.table({"who": who, "beast": beasts[numbers[:, 0]], "age": numbers[:, 1], "town": numbers[:, 2]})
    nr.Secret.create(tmp_path / "key")
    roles = {"who": "identifier", "beast": "sensitive", "age": "quasi-identifier", "town": "quasi-identifier"}
    asked: list[Any] = [{"model": "frequency-l-diversity", "on": "beast", "l": 2}]
    options: dict[str, Any] = {"secret": tmp_path / "key"}
    rules = nr.Policy(attributes=roles, require=asked, randomness={"record_key": "who"}, dependence={"most": 1.0})
    if method == "mondrian":
        asked += [{"model": "k-anonymity", "k": 4}]
        options = {}
        rules = nr.Policy(attributes=roles, require=asked, method=method, mechanism="ignored", dependence={"most": 1.0})
    made = nr.anonymize(session.createDataFrame(data), rules, to=tmp_path / "release", **options)
    assert all(verdict.holds for verdict in made.verdicts)
    assert len(shared) > 3
    assert len(sealed) >= 2
    assert not any(secret in content for secret in sealed for content in shared)
    if method == "decoys":
        here = nr.anonymize(data, rules, **options)
        assert sorted(map(str, here.frame().rows())) == sorted(map(str, made.frame().rows()))


def test_orders_and_draws_of_different_rows_differ() -> None:
    keys = CarriedKeys.of(nr.Secret(bytes(32)), [(ORDER, "")])
    numbers = np.arange(1000)
    found = np.concatenate([order_keys(keys, numbers, np.full(1000, part)) for part in range(3)])
    assert len({tuple(row) for row in found.tolist()}) == 3000
    assert order_keys(keys, numbers[7:8], np.full(1, 2)).tolist() == found[2007:2008].tolist()
    assert len({tuple(row) for row in numbered_digests(numbers).tolist()}) == 1000


def test_a_failure_says_kind_and_place_and_no_cell() -> None:
    def task(batches: Any) -> Any:
        yield 1
        raise ValueError("the cell was Zanzibar")

    with pytest.raises(TaskFailed, match=r"^ValueError at test_secrets.py:\d+") as found:
        list(guarded(task)(iter(())))
    assert "Zanzibar" not in str(found.value)
    assert found.value.__cause__ is None
    assert found.value.__suppress_context__


@pytest.mark.slow
def test_the_event_log_shows_no_cell_and_no_key(
    session: Any, events: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs that succeed and one that fails, with words that stand nowhere else."""
    sealed: list[bytes] = []
    real = CarriedKeys.__init__

    def noted(self: CarriedKeys, keys: Any) -> None:
        sealed.extend(keys.values())
        real(self, keys)

    monkeypatch.setattr(CarriedKeys, "__init__", noted)
    words = ["quagga", "thylacine", "moa", "dodo"]
    data = pa.table({"who": [f"person-{i:05}" for i in range(80)], "beast": words * 20, "age": ["41", "x17x"] * 40})
    nr.Secret.create(tmp_path / "key")
    columns = {"who": "identifier", "beast": nr.sensitive(), "age": nr.quasi_identifier()}
    rules = nr.Policy(
        attributes=columns,
        require=[nr.models.FrequencyLDiversity(on="beast", l=2)],
        randomness={"record_key": "who"},
        dependence={"most": 1.0},
    )
    frame = session.createDataFrame(data)
    nr.anonymize(frame, rules, secret=tmp_path / "key", to=tmp_path / "release")
    nr.verify(tmp_path / "release", rules, original=data, engine="spark")
    numbers = rules.model_copy(
        update={"attributes": {**rules.attributes, "age": nr.quasi_identifier(bins=[0, 50, 100])}}
    )
    with pytest.raises(nr.errors.NorenError):
        nr.anonymize(frame, numbers, secret=tmp_path / "key", to=tmp_path / "another")
    session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(600_000)  # the log is written beside the jobs
    written = b"".join(path.read_bytes() for path in events.rglob("*") if path.is_file())
    assert b"MapInArrow" in written, "the log was written"
    for text in [*words, "person-0", "x17x"]:
        assert text.encode() not in written
    key = (tmp_path / "key").read_bytes().split()[1]
    assert len(sealed) >= 3, "keys travelled with the jobs"
    for secret in [bytes.fromhex(key.decode()), *sealed]:
        assert secret not in written
        assert secret.hex().encode() not in written
