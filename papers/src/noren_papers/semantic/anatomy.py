"""The paper's rival: (l, e)-diversity by Anatomy, with the analysis that spreads every group over its records.

Read as the paper tells it: a group holds secrets of at least l different subtrees. The library's own method `anatomy`
is stricter (no subtree may make up more than 1/l of a group) and refuses most l on Adult's schooling, so that reading
alone would leave the paper's lines empty.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from noren.schema.hierarchy import Hierarchy
from noren_papers.semantic.material import Codes, Counts, Material


def subtrees(tree: Hierarchy, depth: int) -> Codes:
    """The number of the node at this depth above every leaf."""
    return np.asarray(tree.groups(tree.height - depth)[1], np.int64)


def groups_of(buckets: Codes, l: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Anatomy: one record from each of the l fullest buckets makes a group while l are left; the rest join any."""
    order = rng.permutation(len(buckets))
    order = order[np.argsort(buckets[order], kind="stable")]  # by bucket, by chance inside
    sizes = np.bincount(buckets)
    start = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    heap = [(-int(size), bucket) for bucket, size in enumerate(sizes) if size]
    heapq.heapify(heap)
    taken: list[int] = []
    while len(heap) >= l:
        fullest = [heapq.heappop(heap) for _ in range(l)]
        for left, bucket in fullest:
            taken.append(int(start[bucket] + sizes[bucket] + left))
            if left < -1:
                heapq.heappush(heap, (left + 1, bucket))
    count = len(taken) // l
    out = np.full(len(buckets), -1, np.int64)
    out[order[taken]] = np.arange(len(taken)) // l
    alone = out < 0
    out[alone] = rng.integers(0, count, int(alone.sum()))
    return out


def grouped_estimate(material: Material, classes: Codes, l: int, rng: np.random.Generator) -> Counts:
    """Every record of a group gets the group's mix of secrets: the simple analysis, for Anatomy."""
    group = groups_of(classes[material.codes], l, rng)
    count, slots = int(group.max()) + 1, len(material.slot_labels)
    secrets = np.bincount(group * material.size + material.codes, minlength=count * material.size).reshape(count, -1)
    people = np.bincount(group * slots + material.slots, minlength=count * slots).reshape(count, -1)
    return np.asarray((people / people.sum(axis=1, keepdims=True)).T @ secrets, np.float64)
