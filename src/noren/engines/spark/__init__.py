"""The engine on a Spark cluster: the same kernels on Arrow batches, partition by partition.

`session.py` finds a cluster and says whether keys may travel there, `source.py` is a table in it, `chain.py` how a
partition is read as the whole table is, `guard.py` what a task may say when it fails, `wire.py` how published cells are
shuffled, `courier.py` how tasks travel and answer, `gather.py` how many answers become one, `draw.py` what is drawn and
written there, `tasks.py` the smaller tasks, `apart.py` parts of a table that are decided there, `judge.py` how what was
written is judged, `files.py` Parquet without Java, `engine.py` the verbs.
"""

from noren.engines.spark.engine import SparkEngine
from noren.engines.spark.source import SparkSource

__all__ = ["SparkEngine", "SparkSource"]
