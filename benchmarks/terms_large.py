"""Suppression of terms on long tables: from Parquet to a verified release, CPU seconds, seconds, memory, proofs.

    python benchmarks/terms_large.py                                  # 20,000 records
    python benchmarks/terms_large.py --records 100000 1000000
    python benchmarks/terms_large.py --records 1000000 --require t    # t = 0.4 instead of (1, 30)

Three generated quasi-identifiers (k = 5, groups of 5 to 9 records) and nine terms a record, all of one label of a
knowledge table of 10,000 labels with about 20 terms each. Every run has a process of its own; compiling is done before.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from term_search import records, synthetic

LABELS = 10_000
REQUIRED = {
    "cl": 'model = "qs-diversity"\non = "signs"\nc = 1.0\nl = 30\n',
    "t": 'model = "qs-closeness"\non = "signs"\nt = 0.4\n',
}
POLICY = """[attributes]
age = {{ role = "quasi-identifier" }}
sex = {{ role = "quasi-identifier" }}
region = {{ role = "quasi-identifier" }}
signs = {{ role = "quasi-sensitive", separator = ";", knowledge = "knowledge.csv" }}

[people]
rows = "independent"

[[require]]
model = "k-anonymity"
k = 5

[[require]]
{required}
[method]
name = "suppress"
seconds = {seconds}
"""


def written(folder: Path, n: int, required: str, seconds: float) -> None:
    """A table, its knowledge and its policy."""
    rng = np.random.default_rng(3)
    knowledge = synthetic(rng, LABELS)
    codes = records(rng, knowledge, n)[1]
    terms = np.array(knowledge.terms)[codes].reshape(n, -1)
    signs = pl.DataFrame(terms, schema=[f"{i}" for i in range(terms.shape[1])]).select(
        pl.concat_str(pl.all(), separator=";")
    )
    frame = pl.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "sex": rng.choice(["f", "m"], n),
            "region": rng.integers(0, 10_000, n),
            "signs": signs.to_series(),
        }
    )
    frame.write_parquet(folder / "people.parquet")
    label = np.repeat(np.arange(len(knowledge.labels)), np.diff(knowledge.bounds))
    pairs = {"label": np.array(knowledge.labels)[label].astype(str), "term": np.array(knowledge.terms)[knowledge.codes]}
    pl.DataFrame(pairs).write_csv(folder / "knowledge.csv")
    (folder / "policy.toml").write_text(POLICY.format(required=REQUIRED[required], seconds=seconds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, nargs="+", default=[20_000])
    parser.add_argument("--require", choices=sorted(REQUIRED), default="cl")
    parser.add_argument("--seconds", type=float, default=0.5, help="that the search may take for one group")
    given = parser.parse_args()
    print(f"{'records':>10} {'CPU s':>8} {'seconds':>8} {'peak MB':>8}")
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        for n in (2_000, *given.records):  # the first one compiles
            folder = root / str(n)
            folder.mkdir()
            written(folder, n, given.require, given.seconds)
            command = ["anonymize", "people.parquet", "policy.toml", "--to", "release"]
            before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-c", "from noren.cli.main import main; main()", *command],
                cwd=folder, check=False, capture_output=True, text=True,
            )  # fmt: skip
            took, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
            if done.returncode:
                sys.exit(done.stderr)
            if n != 2_000:
                used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                print(f"{n:>10,} {used:>8.1f} {took:>8.1f} {after.ru_maxrss // 1024:>8,}")
                said = [one.strip() for one in (done.stdout + done.stderr).splitlines() if "group" in one]
                print("\n".join(said), flush=True)


if __name__ == "__main__":
    main()
