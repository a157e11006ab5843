"""The linking attack: what records that could be a person's tell about labels, and which groups could hold a person.

What a record tells comes from the code of the verification. Only the labels that a group touches are
looked at, so that a million groups of one record and ten thousand labels stay cheap.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from noren.kernel import kernel
from noren.kernels.beliefs import record_beliefs

COLUMNS = 7
LINKED, LABELS, PEAK, TOP, TIES, RISE, PEAK_LINKED = range(COLUMNS)
TIE = 1e-12
"""Beliefs that differ by less are equal: sums of fractions are not exact."""
WORDS = 1 << 22
"""Groups are compared with a person 64 at once, as bits of a word; so many words are held for all values together."""


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


@kernel
def covering_pairs(nodes, bounds, starts, stops, values, people):
    """All pairs (person, group) where every published node of the group covers the person's value.

    nodes: (groups, columns), numbered through all columns like the runs of values under them and like `people`'s
    (people, columns) values, where -1 is a value that no node covers. Pairs come block by block of groups. What the
    first columns of a person leave possible is kept for the next one, so equal beginnings should stand together; of
    that only words with some group left are kept, so groups that begin alike should stand together too.
    """
    groups, width = nodes.shape
    n = people.shape[0]
    step = min((groups + 63) // 64, max(64, WORDS // max(1, values)))
    bits = np.zeros((values, step), np.uint64)
    left = np.zeros((width + 1, step), np.uint64)
    at = np.zeros((width + 1, step), np.int64)
    many = np.zeros(width + 1, np.int64)
    who = np.empty(n + 16, np.int64)
    whom = np.empty(n + 16, np.int64)
    found = 0
    for begin in range(0, groups, 64 * step):
        end = min(groups, begin + 64 * step)
        bits[:] = 0
        many[0] = (end - begin + 63) // 64
        for word in range(many[0]):
            at[0, word] = word
            left[0, word] = ~np.uint64(0)
        for g in range(begin, end):
            word, bit = (g - begin) // 64, np.uint64(1) << np.uint64((g - begin) % 64)
            for c in range(width):
                for run in range(bounds[nodes[g, c]], bounds[nodes[g, c] + 1]):
                    for value in range(starts[run], stops[run]):
                        bits[value, word] |= bit
        dead = width  # the first column after which nothing is left of the last person
        for person in range(n):
            c = 0
            if person:
                while c < width and people[person, c] == people[person - 1, c]:
                    c += 1
            if c > dead:
                continue
            dead = width
            while c < width:
                value = people[person, c]
                some = 0
                if value >= 0:
                    for i in range(many[c]):
                        word = at[c, i]
                        both = left[c, i] & bits[value, word]
                        at[c + 1, some] = word
                        left[c + 1, some] = both
                        some += both != 0
                many[c + 1] = some
                if some == 0:
                    dead = c
                    break
                c += 1
            if dead < width:
                continue
            for i in range(many[width]):
                common = left[width, i]
                place = begin + at[width, i] * 64
                while common:
                    if common & np.uint64(1):
                        if found == who.size:
                            who = np.concatenate((who, np.empty(who.size, np.int64)))
                            whom = np.concatenate((whom, np.empty(whom.size, np.int64)))
                        who[found] = person
                        whom[found] = place
                        found += 1
                    common >>= np.uint64(1)
                    place += 1
    return who[:found], whom[:found]
