"""A policy for another folder: paths in it are relative to where it stands."""

from __future__ import annotations

import os
from pathlib import Path

from noren.policy.policy import Policy
from noren.schema.column import Column, HierarchySpec, KnowledgeSpec


def text_for(policy: Policy, folder: Path) -> str:
    """The policy as TOML for a file in a folder, from which all paths are found as before."""

    def moved(path: str) -> str:
        return path if Path(path).is_absolute() else Path(os.path.relpath(policy.base / path, folder)).as_posix()

    def column(given: Column) -> Column:
        changed: dict[str, object] = {}
        tree, known = given.hierarchy, given.knowledge
        if isinstance(tree, HierarchySpec) and tree.csv is not None:
            changed["hierarchy"] = tree.model_copy(update={"csv": moved(tree.csv)})
        if isinstance(known, KnowledgeSpec):
            priors = None if known.priors is None else moved(known.priors)
            changed["knowledge"] = known.model_copy(update={"csv": moved(known.csv), "priors": priors})
        return given.model_copy(update=changed) if changed else given

    secret = policy.randomness.secret
    randomness = policy.randomness.model_copy(update={"secret": None if secret is None else moved(secret)})
    attributes = {name: column(given) for name, given in policy.attributes.items()}
    return policy.model_copy(update={"attributes": attributes, "randomness": randomness}).to_toml()
