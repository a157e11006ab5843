"""The engine on a Spark cluster: the same kernels on Arrow batches, partition by partition.

`cluster.py` finds a cluster, says whether keys may travel there, and carries tasks and their answers; `source.py` is a
table in it, and a partition read as the whole table is; `wire.py` is how published cells are shuffled; `tasks.py` is
what is counted, drawn and written there; `judge.py` judges what was written; `engine.py` holds the verbs.
"""

from noren.engines.spark.engine import SparkEngine
from noren.engines.spark.source import SparkSource

__all__ = ["SparkEngine", "SparkSource"]
