"""EM on four tables at once: the records are walked once for all folds of a cross-validation.

Cells of the four tables stand side by side, so that what is done for one is done for all by the processor's vectors.
How records share common beginnings is told in `em`; here it is one flat function.
"""

from __future__ import annotations

import numpy as np

from noren.kernels.compiled import kernel

FOLDS = 4
LEAST = 1e-300


@kernel(error_model="numpy")
def fold_pass(ids, start, stop, products, counts, held, only, floor, scale, x, acc):
    """One EM pass of every fold over records start..stop-1.

    acc_cf += (counts_t - held_tf) L_t(c) / (L_t . x_f). Returns the log likelihood of the held records, sum over t and
    f of held_tf log(scale_f L_t . x_f + floor_t). `only` is the fold of a tuple that occurs once, -1 for the others.
    """
    codes, code_start, widths, coefs, coef_rows, sizes, depth = products
    axes, last = widths.size, widths.size - 1
    is_single = depth == last
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
        first = code_start[last] + np.int64(ids[t, last]) * widths[last]
        at = coef_rows[last, 0] + np.int64(ids[t, last]) * coef_rows[last, 1]
        cells = 1
        if is_single:
            for k in range(widths[last]):
                cell = codes[first + k] * FOLDS
                weight = coefs[at + k]
                a += weight * table[cell]
                b += weight * table[cell + 1]
                c += weight * table[cell + 2]
                d += weight * table[cell + 3]
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
        fold = only[t]
        total[0], total[1], total[2], total[3] = a, b, c, d
        if fold >= 0:
            gathered *= scale[fold] * total[fold] + floor[t]
            u, v = 0.0 if fold == 0 else u, 0.0 if fold == 1 else v
            w, z = 0.0 if fold == 2 else w, 0.0 if fold == 3 else z
        else:
            for f in range(FOLDS):
                if held[t, f] > 0:
                    score += held[t, f] * np.log(max(scale[f] * total[f] + floor[t], LEAST))
            n = counts[t]
            u *= n - held[t, 0]
            v *= n - held[t, 1]
            w *= n - held[t, 2]
            z *= n - held[t, 3]
        if is_single:
            for k in range(widths[last]):
                cell = codes[first + k] * FOLDS
                weight = coefs[at + k]
                store[cell] += weight * u
                store[cell + 1] += weight * v
                store[cell + 2] += weight * w
                store[cell + 3] += weight * z
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
