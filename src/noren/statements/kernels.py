"""Set cells as bit masks or as rows of sorted codes. Arrays in, arrays out."""

from __future__ import annotations

import numpy as np

from noren.kernel import kernel


@kernel
def mask_sizes(masks, out):
    """Number of values in each mask."""
    for i in range(masks.size):
        m = np.uint64(masks[i])
        count = 0
        while m != 0:
            m &= m - np.uint64(1)
            count += 1
        out[i] = count


@kernel
def masks_to_codes(masks, out):
    """Write each mask's values in ascending order into a row of `out`; every mask holds out.shape[1] values."""
    for i in range(masks.size):
        m = np.uint64(masks[i])
        value = 0
        column = 0
        while m != 0:
            if m & np.uint64(1):
                out[i, column] = value
                column += 1
            m >>= np.uint64(1)
            value += 1


@kernel
def codes_to_masks(codes, out):
    """Set the bits named by each row. Returns the first row that repeats a value, or -1."""
    bad = -1
    for i in range(codes.shape[0]):
        m = np.uint64(0)
        for j in range(codes.shape[1]):
            bit = np.uint64(1) << np.uint64(codes[i, j])
            if m & bit and bad < 0:
                bad = i
            m |= bit
        out[i] = m
    return bad


@kernel
def rows_with_repeats(codes):
    """First row of ascending codes that is not strictly ascending, or -1."""
    for i in range(codes.shape[0]):
        for j in range(1, codes.shape[1]):
            if codes[i, j] <= codes[i, j - 1]:
                return i
    return -1


@kernel
def count_inclusions(codes, out):
    """Add to out[v] the number of rows that contain v."""
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            out[codes[i, j]] += 1


@kernel
def count_mask_inclusions(masks, out):
    """Add to out[v] the number of masks that contain v."""
    for i in range(masks.size):
        m = np.uint64(masks[i])
        value = 0
        while m != 0:
            if m & np.uint64(1):
                out[value] += 1
            m >>= np.uint64(1)
            value += 1
