"""EM on four tables at once: the records are walked once for all folds of a cross-validation.

Cells of the four tables stand side by side, so that what is done for one is done for all by the processor's vectors.
How records share common beginnings is told in `em`; here it is one flat function.
"""

from __future__ import annotations

import numpy as np

from noren.kernel import kernel

FOLDS = 4
LANES = np.uint64(4)
ONE, TWO, THREE = np.uint64(1), np.uint64(2), np.uint64(3)
"""Places without a sign need no look at it, and four that follow each other are one vector."""
LEAST = 1e-300


@kernel(error_model="numpy")
def fold_pass(ids, start, stop, products, counts, held, only, floor, scale, asked, x, acc):
    """One EM pass of every fold over records start..stop-1.

    acc_cf += (counts_t - held_tf) L_t(c) / (L_t . x_f). Returns the log likelihood of the held records, sum over t and
    f of held_tf log(scale_f L_t . x_f + floor_t), if that is asked for. `only` is the fold of a tuple that occurs once,
    -1 for the others.
    """
    codes, code_start, widths, coefs, coef_rows, sizes, depth = products
    axes, last = widths.size, widths.size - 1
    is_single = depth == last
    leaf_start, leaf_width = code_start[last], widths[last]
    leaf_coef, leaf_step = coef_rows[last, 0], coef_rows[last, 1]
    share = coefs[leaf_coef]
    is_even = is_single and leaf_step == 0  # members of a set weigh alike, which can be said of their sum
    for k in range(leaf_width):
        is_even = is_even and coefs[leaf_coef + k] == share
    starts = np.zeros(depth + 2, np.int64)
    for level in range(1, depth + 1):
        starts[level + 1] = starts[level] + sizes[level] * FOLDS
    tables = np.zeros(starts[depth + 1])
    accs = np.zeros(starts[depth + 1])
    leaf_cells = 1
    for axis in range(depth, axes):
        leaf_cells *= widths[axis]
    offsets = np.empty(leaf_cells, np.int64)
    weights = np.empty(leaf_cells)
    total = np.empty(FOLDS)
    keep, lone = np.ones((FOLDS, FOLDS)), np.zeros((FOLDS, FOLDS))
    for f in range(FOLDS):
        keep[f, f] = 0.0
        lone[f, f] = scale[f]
    score = 0.0
    gathered = 1.0  # a logarithm is taken of products of many chances, not of each
    table, store = x, acc
    if depth > 0:
        table = tables[starts[depth] : starts[depth + 1]]
        store = accs[starts[depth] : starts[depth + 1]]
    for t in range(start, stop + 1):
        change = 0
        if start < t < stop:
            while change < depth and ids[t, change] == ids[t - 1, change]:
                change += 1
        if t > start:  # the beginnings that end here pass on what they gathered
            for level in range(depth - 1, change - 1, -1):
                target = acc if level == 0 else accs[starts[level] : starts[level + 1]]
                source = accs[starts[level + 1] : starts[level + 2]]
                size = sizes[level + 1] * FOLDS
                first = code_start[level] + np.int64(ids[t - 1, level]) * widths[level]
                at = coef_rows[level, 0] + np.int64(ids[t - 1, level]) * coef_rows[level, 1]
                for k in range(widths[level]):
                    row = target[codes[first + k] * size : codes[first + k] * size + size]
                    c = coefs[at + k]
                    for j in range(size):
                        row[j] += c * source[j]
                for j in range(size):
                    source[j] = 0.0
        if t == stop:
            break
        for level in range(change, depth):
            source = x if level == 0 else tables[starts[level] : starts[level + 1]]
            target = tables[starts[level + 1] : starts[level + 2]]
            size = sizes[level + 1] * FOLDS
            first = code_start[level] + np.int64(ids[t, level]) * widths[level]
            at = coef_rows[level, 0] + np.int64(ids[t, level]) * coef_rows[level, 1]
            for j in range(size):
                target[j] = 0.0
            for k in range(widths[level]):
                row = source[codes[first + k] * size : codes[first + k] * size + size]
                c = coefs[at + k]
                for j in range(size):
                    target[j] += c * row[j]
        a = b = c = d = 0.0  # one of each for a fold: what is written out is done in one vector
        leaf = np.int64(ids[t, last])
        first, at = leaf_start + leaf * leaf_width, leaf_coef + leaf * leaf_step
        cells = 1
        if is_even:
            for k in range(leaf_width):
                cell = np.uint64(codes[first + k]) * LANES
                a += table[cell]
                b += table[cell + ONE]
                c += table[cell + TWO]
                d += table[cell + THREE]
            a, b, c, d = a * share, b * share, c * share, d * share
        elif is_single:
            for k in range(leaf_width):
                cell = np.uint64(codes[first + k]) * LANES
                weight = coefs[at + k]
                a += weight * table[cell]
                b += weight * table[cell + ONE]
                c += weight * table[cell + TWO]
                d += weight * table[cell + THREE]
        else:
            offsets[0] = 0
            weights[0] = 1.0
            for axis in range(depth, axes):
                start_of = code_start[axis] + np.int64(ids[t, axis]) * widths[axis]
                coef_at = coef_rows[axis, 0] + np.int64(ids[t, axis]) * coef_rows[axis, 1]
                size = sizes[axis + 1] * FOLDS
                for k in range(widths[axis] - 1, -1, -1):
                    for m in range(cells):
                        offsets[k * cells + m] = offsets[m] + codes[start_of + k] * size
                        weights[k * cells + m] = weights[m] * coefs[coef_at + k]
                cells *= widths[axis]
            for m in range(cells):
                a += weights[m] * table[offsets[m]]
                b += weights[m] * table[offsets[m] + 1]
                c += weights[m] * table[offsets[m] + 2]
                d += weights[m] * table[offsets[m] + 3]
        u, v, w, z = 1 / max(a, LEAST), 1 / max(b, LEAST), 1 / max(c, LEAST), 1 / max(d, LEAST)
        fold = np.int64(only[t])
        if fold >= 0:  # multiplied by 0 and 1: which fold it is cannot be foreseen, and a branch would wait for it
            gathered *= a * lone[fold, 0] + b * lone[fold, 1] + c * lone[fold, 2] + d * lone[fold, 3] + floor[t]
            u, v, w, z = u * keep[fold, 0], v * keep[fold, 1], w * keep[fold, 2], z * keep[fold, 3]
        else:
            total[0], total[1], total[2], total[3] = a, b, c, d
            for f in range(FOLDS):
                if asked and held[t, f] > 0:
                    score += held[t, f] * np.log(max(scale[f] * total[f] + floor[t], LEAST))
            n = counts[t]
            u *= n - held[t, 0]
            v *= n - held[t, 1]
            w *= n - held[t, 2]
            z *= n - held[t, 3]
        if is_even:
            u, v, w, z = u * share, v * share, w * share, z * share
            for k in range(leaf_width):
                cell = np.uint64(codes[first + k]) * LANES
                store[cell] += u
                store[cell + ONE] += v
                store[cell + TWO] += w
                store[cell + THREE] += z
        elif is_single:
            for k in range(leaf_width):
                cell = np.uint64(codes[first + k]) * LANES
                weight = coefs[at + k]
                store[cell] += weight * u
                store[cell + ONE] += weight * v
                store[cell + TWO] += weight * w
                store[cell + THREE] += weight * z
        else:
            for m in range(cells):
                store[offsets[m]] += weights[m] * u
                store[offsets[m] + 1] += weights[m] * v
                store[offsets[m] + 2] += weights[m] * w
                store[offsets[m] + 3] += weights[m] * z
        if not 1e-150 < gathered < 1e150:
            score += np.log(max(gathered, LEAST))
            gathered = 1.0
    return score + np.log(max(gathered, LEAST))
