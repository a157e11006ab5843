"""Runs inside the peer's own environment: pyCANON's figures for tables named on standard input, as JSON.

    python pycanon_run.py < jobs.json

A job is {"csv": path, "quasi": [...], "sensitive": [...], "numeric": [...], "gen": true, "index": "positions"}. Columns
are read as text except those under "numeric"; an empty cell is missing. "index": "reversed" leaves an index that does
not count the rows, as filtering or sorting a frame does. The answer lists one object per job, with the CPU seconds of
the whole report under "seconds" and the figures, or the kind of the error, by name. Standard library, pandas and
pyCANON only: this file shares no environment with the package that it is compared with.
"""

import contextlib
import io
import json
import math
import sys
import time
import warnings

import pandas as pd
import pycanon
from pycanon import anonymity

MODELS = (
    "k_anonymity",
    "alpha_k_anonymity",
    "l_diversity",
    "entropy_l_diversity",
    "recursive_c_l_diversity",
    "basic_beta_likeness",
    "enhanced_beta_likeness",
    "delta_disclosure",
    "t_closeness",
)


def plain(figure):
    """A figure as JSON has it; an undefined one as null."""
    if isinstance(figure, tuple):
        return [plain(part) for part in figure]
    number = float(figure)
    return number if math.isfinite(number) else str(number)


def run(job):
    columns = [*job["quasi"], *job["sensitive"]]
    kinds = {name: str for name in columns if name not in job.get("numeric", ())}
    begin = time.process_time()
    frame = pd.read_csv(job["csv"], usecols=columns, dtype=kinds, keep_default_na=False, na_values=[""])
    if job.get("index") == "reversed":
        frame.index = frame.index[::-1]
    found = {}
    for name in MODELS:
        words = {} if name == "k_anonymity" else {"sens_att": job["sensitive"], "gen": job.get("gen", True)}
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                found[name] = plain(getattr(anonymity, name)(frame, job["quasi"], **words))
        except Exception as error:
            found[name] = type(error).__name__
    return {"version": pycanon.__version__, "seconds": time.process_time() - begin, "figures": found}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    json.dump([run(job) for job in json.load(sys.stdin)], sys.stdout)
