"""Exports a release to R: the records, the likelihood of every published cell, and a script that estimates from them.

R needs no package for it. The files hold nothing that the release does not publish.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.files import publish_directory, sync_directory

if TYPE_CHECKING:
    from noren.release.release import Release

MOST_ENTRIES = 10_000_000
"""Lines of the table of likelihoods beyond which R is no help."""
RECORDS, LIKELIHOOD, SCRIPT = "records.csv", "likelihood.csv", "estimate.R"
ESTIMATE = """\
# Counts from a release, by maximum likelihood (EM), in base R:
#   source("estimate.R"); estimate("job"); estimate("job", "disease")
# records.csv has a number for every cell, likelihood.csv the probability of that cell under every true value
# (up to a factor). One column agrees with Noren's `estimate`. Of several columns Noren stops EM early, where records
# that were held out say so, and gives intervals; EM to the end, as here, overfits tables of many cells.
records <- read.csv("records.csv", check.names = FALSE)
likelihood <- read.csv("likelihood.csv", colClasses = c("character", "integer", "character", "numeric"),
                       na.strings = character(), encoding = "UTF-8")

likelihood_matrix <- function(name) {
  rows <- likelihood[likelihood$column == name, ]
  if (nrow(rows) == 0) stop("no such column; known: ", toString(unique(likelihood$column)))
  values <- unique(rows$value)
  out <- matrix(0, max(rows$cell), length(values), dimnames = list(NULL, values))
  out[cbind(rows$cell, match(rows$value, values))] <- rows$likelihood
  out
}

estimate <- function(..., steps = 5000, tolerance = 0.01) {
  names <- c(...)
  counted <- aggregate(list(n = rep(1, nrow(records))), records[names], sum)   # how often cells occur together
  each <- lapply(names, function(name) likelihood_matrix(name)[counted[[name]], , drop = FALSE])
  joint <- Reduce(function(a, b) a[, rep(seq_len(ncol(a)), ncol(b)), drop = FALSE] *
                    b[, rep(seq_len(ncol(b)), each = ncol(a)), drop = FALSE], each)
  x <- rep(nrow(records) / ncol(joint), ncol(joint))
  for (step in seq_len(steps)) {
    old <- x
    x <- x * as.vector(crossprod(joint, counted$n / as.vector(joint %*% x)))
    if (max(abs(x - old)) < tolerance) break
  }
  cbind(expand.grid(lapply(each, colnames), stringsAsFactors = FALSE) |> setNames(names), count = x)
}
"""


def export_for_r(release: Release, target: Path) -> None:
    """Write a directory for R: records, likelihoods and a script.

    Columns whose cells are not about single values (sets of terms, means, columns of very many values) are not written.
    """
    import polars as pl

    if release.rows_per_record > 1:
        raise QueryError("the rows of this release are shuffled members of sets.", hint="Use `noren estimate`.")
    records: dict[str, NDArray] = {}
    parts: list[pl.DataFrame] = []
    entries = 0
    for statement in release.statements:
        cells, of = release.cells([statement.name])[statement.name].distinct()
        found = statement.likelihood(cells)
        if found is None:
            continue
        d = statement.d
        entries += len(found) * d if found.floor > 0 else len(found.value)
        if entries > MOST_ENTRIES:
            raise QueryError(f"there would be more than {MOST_ENTRIES:,} likelihoods.", hint="Export wide-csv instead.")
        rows = found.listed(d)
        records[statement.name] = of.astype(np.int64) + 1
        labels = pl.Series(statement.domain.values, dtype=pl.String)
        part = {"cell": rows.owner + 1, "value": labels.gather(rows.value), "likelihood": rows.weight}
        parts.append(pl.DataFrame({"column": [statement.name] * len(rows.value)} | part))
    if not parts:
        raise QueryError("no column of this release is about single values.", hint="Export wide-csv instead.")
    aside = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        pl.DataFrame(records).write_csv(aside / RECORDS)
        pl.concat(parts).write_csv(aside / LIKELIHOOD)
        (aside / SCRIPT).write_text(ESTIMATE, encoding="utf-8")
        sync_directory(aside)
        os.chmod(aside, 0o755)
        publish_directory(aside, target, lambda: not aside.exists())
    finally:
        shutil.rmtree(aside, ignore_errors=True)
