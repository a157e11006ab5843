"""What a task may say when it fails. Spark writes it into logs, its pages and its event log, so it quotes no cell."""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from noren import errors
from noren.engines.spark.courier import parted
from noren.errors import NorenError, OutOfReach

MARK = "noren-task-said:"
_SAID = re.compile(re.escape(MARK) + r"(\{.*?\})#")


class TaskFailed(Exception):
    """A task's failure in words that hold no cell."""


def guarded(task: Callable[[Iterator[Any]], Iterator[Any]]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The task as it may travel, with failures that hold no cell: errors of this package, and of others kind and place
    alone."""
    carried = parted(task)

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        try:
            yield from carried(batches)
        except NorenError as error:
            said = {"kind": type(error).__name__, "message": error.message, "hint": error.hint}
            raise TaskFailed(f"{MARK}{json.dumps(said)}#") from None
        except Exception as error:
            places = " < ".join(
                f"{f.filename.split('/')[-1]}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)[::-1]
            )
            raise TaskFailed(f"{type(error).__name__} at {places}") from None

    return work


@contextmanager
def told() -> Iterator[None]:
    """Errors that tasks raised, as the errors that they were; anything else of Spark by its kind alone."""
    try:
        yield
    except NorenError:
        raise
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise
        found = _SAID.search(str(error))
        if found is None:
            place = re.search(r"TaskFailed: (.*)", str(error))
            why = place[1] if place else type(error).__name__
            raise OutOfReach(f"Spark could not do it: {why}.", hint="See the log of the executors.") from None
        said = json.loads(found[1])
        kind = getattr(errors, said["kind"], NorenError)
        raise (kind if kind is not errors.PolicyError else NorenError)(said["message"], hint=said["hint"]) from None
