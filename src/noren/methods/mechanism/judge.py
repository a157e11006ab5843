"""The beliefs about a secret under the rule of the method that made the classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from noren.cells import Statement
from noren.methods.mechanism.rule import Beliefs, Rule
from noren.methods.mechanism.sight import Sight
from noren.models.base import Model
from noren.models.class_check import ClassModel
from noren.release.published import Published
from noren.table import Records

CHOSEN = "chosen"
CLASS_SIZE = "class_size"


def rule_of(name: str, settings: Mapping[str, Any]) -> Rule | None:
    """The rule of a method as a release names it; None for a method that this version does not know.

    A method that chose another says which; a blind one says the class size that it came to.
    """
    from noren.methods import METHODS

    name = str(settings.get(CHOSEN, name))
    if name not in METHODS:
        return None
    kind = METHODS[name]
    known = {key: value for key, value in settings.items() if key in kind.model_fields}
    return kind.model_validate({"name": name, **known}).mechanism()


def guarding(requirements: Sequence[Model], name: str) -> list[ClassModel]:
    """The requirements on what classes hold of a secret."""
    return [m for m in requirements if isinstance(m, ClassModel) and m.about == "columns" and name in m.on]


def beliefs_of(
    published: Published, table: Records, secret: Statement, requirements: Sequence[Model], rule: Rule, k: int | None
) -> Beliefs:
    """What is believed about everybody of a table, by whoever knows the rule."""
    least = k or max([2, *(model.least_class_size for model in requirements)])
    return rule.beliefs(Sight.of(published, table, secret, guarding(requirements, secret.name), least))
