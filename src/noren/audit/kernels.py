"""Python's `random.shuffle` over words that its generator would have given.

The linking attack: what records that could be a person's tell about labels, and which groups could hold a person.

What a record tells comes from the code of the verification. Only the labels that a group touches are
looked at, so that a million groups of one record and ten thousand labels stay cheap.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from noren.kernel import kernel
from noren.models.kernels import record_beliefs


@kernel
def shuffle(words, rows):
    """Shuffle rows in place; the number of words that took, or -1 where there were too few of them.

    From the last row down each changes places with one of those up to it, numbered by as many bits as their count has;
    a number that is too large is drawn again.
    """
    at, shift = 0, 32
    last = rows.size - 1
    while shift > 0 and (rows.size >> (32 - shift)) > 0:
        shift -= 1
    while last > 0:
        while (last + 1) >> (31 - shift) == 0:
            shift += 1
        if at == words.size:
            return -1
        other = words[at] >> shift
        at += 1
        if other <= last:
            rows[last], rows[other] = rows[other], rows[last]
            last -= 1
    return at


COLUMNS = 7
LINKED, LABELS, PEAK, TOP, TIES, RISE, PEAK_LINKED = range(COLUMNS)
TIE = 1e-12
"""Beliefs that differ by less are equal: sums of fractions are not exact."""


@kernel
def attack_groups(order, bounds, offsets, codes, bits, weights, pairs, alpha, prior, asked_bounds, asked):
    """One line per set of records order[bounds[g]:bounds[g + 1]], columns as named above.

    Beside it one line per entry of `asked`, labels asked of set g from asked_bounds[g] on: the belief in that label,
    and the chance that a guess among the most believed ones names it. A label below 0 is not known.
    """
    labels = weights.size
    groups = bounds.size - 1
    out = np.zeros((groups, COLUMNS))
    answers = np.zeros((asked.size, 2))
    belief = np.zeros(labels)
    touched = np.zeros(labels, np.int64)
    seen = np.zeros(labels, np.bool_)
    room, own_belief = np.empty(labels, np.int64), np.empty(labels)
    whole = weights.sum()
    least = alpha.min()
    for g in range(groups):
        many = 0
        linked = 0
        everywhere = 0
        size = bounds[g + 1] - bounds[g]
        for k in range(bounds[g], bounds[g + 1]):
            own = codes[offsets[order[k]] : offsets[order[k] + 1]]
            if own.size == 0:
                everywhere += 1
                linked += 1
                continue
            found = record_beliefs(own, bits, weights, pairs, room, own_belief)
            for i in range(found):
                label = room[i]
                belief[label] += own_belief[i]
                if not seen[label]:
                    seen[label] = True
                    touched[many] = label
                    many += 1
            linked += found > 0
        missing = prior and linked < size
        if everywhere or missing:
            for label in range(labels):
                if not seen[label]:
                    seen[label] = True
                    touched[many] = label
                    many += 1
        alone = 0.0
        for i in range(many):
            label = touched[i]
            belief[label] += everywhere * weights[label] / whole
            alone = max(alone, belief[label])
            if missing:
                belief[label] += (size - linked) * alpha[label]
            belief[label] /= max(1, size)
        _judge(out[g], belief, touched[:many], alpha, least)
        out[g, LINKED] = linked
        out[g, PEAK_LINKED] = alone / max(1, linked)
        for a in range(asked_bounds[g], asked_bounds[g + 1]):
            if asked[a] < 0:
                answers[a] = np.nan
                continue
            answers[a, 0] = belief[asked[a]]
            if out[g, PEAK] > 0 and belief[asked[a]] >= out[g, PEAK] - TIE:
                answers[a, 1] = 1.0 / out[g, TIES]
        for i in range(many):
            belief[touched[i]] = 0.0
            seen[touched[i]] = False
    return out, answers


@kernel
def _judge(line, belief, touched, alpha, least):
    """The largest belief, the first label that has it, how many share it, and the largest rise over the prior."""
    peak = 0.0
    count = 0
    rise = -np.inf
    for label in touched:
        peak = max(peak, belief[label])
        count += belief[label] > 0
        rise = max(rise, belief[label] - alpha[label])
    top = -1
    ties = 0
    for label in touched:
        if peak > 0 and belief[label] >= peak - TIE:
            ties += 1
            top = label if top < 0 else min(top, label)
    if touched.size == 0:
        rise = -least
    elif rise < 0:
        # labels that no record is linked to fall to 0; only here can the smallest of these falls matter
        rise = (belief - alpha).max()
    line[LABELS] = count
    line[PEAK] = peak
    line[TOP] = top
    line[TIES] = ties
    line[RISE] = rise
