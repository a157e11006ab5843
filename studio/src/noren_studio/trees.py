"""A hierarchy as a tree that can be edited: rename, merge, dissolve, move. Every edit returns a new tree.

A tree has the form of a policy: tables whose keys are nodes, and lists whose entries are values. The path of a node is
the labels from the top down to it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from noren.policy import tree_of
from noren.results import visible
from noren.schema import Hierarchy, HierarchyError
from noren_studio import texts

Path = tuple[str, ...]
Tree = dict[str, Any]


def tree_from(hierarchy: Hierarchy) -> Tree:
    """Return the nested tables of a hierarchy."""
    return tree_of(hierarchy)


def nodes(tree: Mapping[str, Any], counts: Mapping[str, int], at: Path = ()) -> list[dict[str, Any]]:
    """Return the tree in the form of `ui.tree`: every node with the number of records under it."""
    out = []
    for label, below in tree.items():
        path = (*at, label)
        children = nodes(below, counts, path) if isinstance(below, Mapping) else _leaves(below, counts, path)
        total = sum(child["records"] for child in children)
        out.append(
            {"id": key_of(path), "label": texts.node(visible(label), total), "children": children, "records": total}
        )
    return out


def _leaves(values: Sequence[Any], counts: Mapping[str, int], at: Path) -> list[dict[str, Any]]:
    found = [(str(value), counts.get(str(value), 0)) for value in values]
    return [{"id": key_of((*at, v)), "label": texts.node(visible(v), count), "records": count} for v, count in found]


def key_of(path: Path) -> str:
    """Return a path as one unambiguous text: every label follows its length."""
    return "".join(f"{len(label)}:{label}" for label in path)


def path_of(key: str) -> Path:
    out, at = [], 0
    while at < len(key):
        end = key.index(":", at)
        size = int(key[at:end])
        out.append(key[end + 1 : end + 1 + size])
        at = end + 1 + size
    return tuple(out)


def leaves(tree: Any) -> Iterator[str]:
    """Yield every value, in order."""
    if isinstance(tree, Mapping):
        for below in tree.values():
            yield from leaves(below)
    elif isinstance(tree, list | tuple):
        for below in tree:
            yield from leaves(below)
    else:
        yield str(tree)


def digest(tree: Mapping[str, Any]) -> str:
    """Return a short hash of a tree."""
    import hashlib
    import json

    return hashlib.sha256(json.dumps(tree, default=str).encode()).hexdigest()[:16]


def gaps(tree: Mapping[str, Any], values: Sequence[str]) -> list[str]:
    """Return the values of the table that the tree lacks."""
    known = set(leaves(tree))
    return [value for value in values if value not in known]


def orphans(tree: Mapping[str, Any], values: Sequence[str]) -> list[str]:
    """Return the values of the tree that the table lacks."""
    known = set(values)
    return [value for value in leaves(tree) if value not in known]


# ---------------------------------------------------------------------- edits


def renamed(tree: Tree, path: Path, label: str) -> Tree:
    """Rename a node; raise for a value, because values are those of the table."""
    made = copy.deepcopy(tree)
    around = inside(made, path[:-1])
    if not isinstance(around, dict) or path[-1] not in around:
        raise HierarchyError(texts.VALUES_KEEP_NAMES, hint=texts.PICK_NODE)
    _demand_new(around, label, path[-1])
    entries = [(label if key == path[-1] else key, below) for key, below in around.items()]
    around.clear()
    around.update(entries)
    return made


def merged(tree: Tree, paths: Sequence[Path], label: str) -> Tree:
    """Put nodes or values of one parent under a new node."""
    if len({path[:-1] for path in paths}) != 1 or len(paths) < 2:
        raise HierarchyError(texts.MERGE_SIBLINGS, hint=texts.TICK_TWO)
    made = copy.deepcopy(tree)
    names, above = [path[-1] for path in paths], paths[0][:-1]
    around = inside(made, above)
    if isinstance(around, dict):
        _demand_new(around, label, *names)
        together = {name: around.pop(name) for name in names}
        around[label] = _flat(together)
        return made
    rest = [value for value in around if str(value) not in names]
    kept = [value for value in around if str(value) in names]
    _put(made, above, {**{str(value): [value] for value in rest}, label: kept} if rest else {label: kept})
    return made


def _flat(together: Mapping[str, Any]) -> Any:
    """Merge nodes that contain only values into one list; otherwise every edit would add a level to the tree."""
    if all(isinstance(below, list) for below in together.values()):
        return [value for below in together.values() for value in below]
    return dict(together)


def dissolved(tree: Tree, path: Path) -> Tree:
    """Remove a node, and put what it contains under its parent."""
    made = copy.deepcopy(tree)
    around = inside(made, path[:-1])
    if not isinstance(around, dict) or path[-1] not in around:
        raise HierarchyError(texts.VALUES_KEEP_NAMES, hint=texts.PICK_NODE)
    below = around.pop(path[-1])
    if isinstance(below, Mapping):
        for label, inner in below.items():
            _demand_new(around, label)
            around[label] = inner
    else:
        for value in below:
            _demand_new(around, str(value))
            around[str(value)] = [value]
    return made


def moved(tree: Tree, path: Path, under: Path) -> Tree:
    """Move a node or a value under another node."""
    if under[: len(path)] == path:
        raise HierarchyError(texts.MOVE_INSIDE, hint=texts.PICK_NODE)
    if path[:-1] == under:
        return tree
    made = copy.deepcopy(tree)
    around, target = inside(made, path[:-1]), inside(made, under)
    if not isinstance(target, dict | list):
        raise HierarchyError(texts.MOVE_WHERE, hint=texts.PICK_NODE)
    if isinstance(around, dict):
        what: Any = around[path[-1]]
        if isinstance(target, list):
            if isinstance(what, Mapping):
                raise HierarchyError(texts.MOVE_DEEP, hint=texts.PICK_NODE)
            target.extend(what)
        else:
            _demand_new(target, path[-1])
            target[path[-1]] = what
        del around[path[-1]]
    else:
        value = next(value for value in around if str(value) == path[-1])
        around.remove(value)
        if isinstance(target, list):
            target.append(value)
        else:
            _demand_new(target, path[-1])
            target[path[-1]] = [value]
    return _pruned(made)


def _pruned(tree: Tree) -> Tree:
    """Return the tree without empty nodes."""
    out: Tree = {}
    for label, below in tree.items():
        left = _pruned(below) if isinstance(below, dict) else below
        if left:
            out[label] = left
    return out


def inside(tree: Tree, path: Path) -> Any:
    """Return the content at a path: a table, a list, or the value itself."""
    found: Any = tree
    for label in path:
        found = label if isinstance(found, list) else found[label]
    return found


def _put(tree: Tree, path: Path, below: Any) -> None:
    inside(tree, path[:-1])[path[-1]] = below


def _demand_new(around: Mapping[str, Any], label: str, *going: str) -> None:
    if not label.strip():
        raise HierarchyError(texts.NAME_NEEDED, hint=texts.NAME_HINT)
    if label in around and label not in going:
        raise HierarchyError(texts.name_taken(label), hint=texts.NAME_HINT)
