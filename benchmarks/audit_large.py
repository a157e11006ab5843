"""`noren audit`, `report`, `verify` and `measure` on millions of rows: CPU seconds, seconds and peak memory of each.

    python benchmarks/audit_large.py [--records 2000000] [--method decoys mondrian hilbert semantic] [--sample 100000]

Eight generated columns (age, sex, postcode, education, a date, job, income, disease). Every command runs in a process
of its own, on the release of each method, with the original. `--sample 0` measures everybody.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

QUASI = dict.fromkeys(("age", "sex", "postcode", "education"), "quasi-identifier")
DEPENDENCE = "[dependence]\nmost = 0.5\n"
POLICIES = {
    "decoys": (
        QUASI | {"date": "plain", "job": "sensitive-quasi-identifier", "income": "sensitive", "disease": "sensitive"},
        'model = "distinct-l-diversity"\non = ["job", "income", "disease"]\nl = 4\n',
    ),
    "mondrian": (
        QUASI | {"date": "quasi-identifier", "job": "quasi-identifier", "income": "sensitive", "disease": "sensitive"},
        'model = "k-anonymity"\nk = 10\n\n[[require]]\nmodel = "frequency-l-diversity"\n'
        'on = ["income", "disease"]\nl = 2\n',
    ),
    "hilbert": (
        QUASI | {"date": "quasi-identifier", "job": "quasi-identifier", "income": "plain", "disease": "sensitive"},
        'model = "k-anonymity"\nk = 10\n\n[[require]]\nmodel = "frequency-l-diversity"\non = "disease"\nl = 2\n',
    ),
    "semantic": (
        QUASI | {"date": "plain", "job": "quasi-identifier", "income": "sensitive", "disease": "sensitive"},
        'model = "semantic-diversity"\non = "income"\nl = 3\nd = 20\n\n[[require]]\nmodel = "distinct-l-diversity"\n'
        'on = "disease"\nl = 4\n',
    ),
}


def survey(n: int) -> pl.DataFrame:
    """Ages that bend diseases, schooling that bends jobs and incomes, a few large postcodes among many small ones."""
    rng = np.random.default_rng(7)
    age = np.clip(rng.gamma(9, 5.2, n).astype(int) + 3, 18, 95)
    school = np.clip((rng.normal(8, 3, n) - 2 * (age < 25)).astype(int), 0, 15)
    ill = np.minimum((rng.gamma(1.3, 4, n) + (age - 18) / 6 * rng.random(n)).astype(int), 39)
    income = np.clip((np.exp(rng.normal(0.6 + school / 16, 0.5, n)) * 2).astype(int), 0, 13)
    return pl.DataFrame(
        {
            "age": age,
            "sex": np.array(["female", "male"])[rng.integers(0, 2, n)],
            "postcode": (10_000 + rng.zipf(1.25, n) % 900 * 97).astype(str),
            "education": np.array([f"edu {i:02}" for i in range(16)])[school],
            "date": np.datetime64("2021-01-01") + rng.integers(0, 1000, n).astype("timedelta64[D]"),
            "job": np.array([f"job {i:02}" for i in range(24)])[(school // 2 * 3 + rng.integers(0, 9, n)) % 24],
            "income": income * 10,
            "disease": np.array([f"disease {i:02}" for i in range(40)])[ill],
        }
    )


def policy(method: str) -> str:
    roles, asked = POLICIES[method]
    lines = [f'{name} = {{ role = "{role}" }}' for name, role in roles.items()]
    text = "[attributes]\n" + "\n".join(lines) + f"\n\n[[require]]\n{asked}\n"
    if method == "semantic":
        text = text.replace('income = { role = "sensitive" }', 'income = { role = "sensitive", distance = "numeric" }')
    drawn = method in ("decoys", "semantic")
    return text + f'[method]\nname = "{"decoys" if drawn else method}"\n' + (DEPENDENCE if drawn else "")


def noren(*words: object) -> str:
    """Run a command; CPU seconds, seconds, and the largest memory in GB."""
    code = "import sys; from noren.cli.main import main; main(sys.argv[1:])"
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    ended = os.waitstatus_to_exitcode(status)
    told = "" if ended in (0, 3) else f", exit code {ended}"
    return f"{used.ru_utime + used.ru_stime:7.1f} s CPU {seconds:7.1f} s {used.ru_maxrss / 2**20:6.2f} GB{told}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--method", nargs="+", choices=list(POLICIES), default=list(POLICIES))
    parser.add_argument("--sample", type=int, default=100_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        table = place / "people.csv"
        survey(args.records).write_csv(table)
        for method in args.method:
            rules, release = place / f"{method}.toml", place / method
            rules.write_text(policy(method))
            known = ("--original", table, "--policy", rules)
            print(f"{method:9} anonymize {noren('anonymize', table, rules, '--to', release)}", flush=True)
            print(f"{method:9} verify    {noren('verify', release, *known)}", flush=True)
            print(f"{method:9} measure   {noren('measure', release)}", flush=True)
            print(f"{method:9} audit     {noren('audit', release, *known, '--sample', args.sample)}", flush=True)
            if args.sample == 100_000:
                page = place / f"{method}.html"
                print(f"{method:9} report    {noren('report', release, *known, '--to', page)}", flush=True)


if __name__ == "__main__":
    main()
