"""What is believed before a release about the labels that terms are linked to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from noren.engines.records import Records
from noren.models.base import Overall
from noren.models.term_check import linked_terms
from noren.statements import TermsStatement


def priors(records: Records) -> dict[str, Overall]:
    """The mean belief in every label over the original, where the knowledge gives no prior.

    By the code of the checks, so that a verdict does not rest on what the method computed.
    """
    from noren.models.kernels import mean_beliefs

    out: dict[str, Overall] = {}
    for names in records.together():
        knowledge = records.terms[names[0]].knowledge
        if knowledge.priors is not None:
            continue
        parts = [(TermsStatement(records.terms[name].column), records.terms[name].cells) for name in names]
        cells = linked_terms([*parts], knowledge)
        shares = mean_beliefs(cells.offsets, cells.data, *knowledge.links)
        out |= dict.fromkeys(names, Overall(np.asarray(shares), "the original"))
    return out


def pinned(records: Records) -> Records:
    """The same records; parts of them remember what was believed because of all of them."""
    before = priors(records)
    terms = {
        name: replace(found, prior=before[name].shares) if name in before else found
        for name, found in records.terms.items()
    }
    return replace(records, terms=terms)
