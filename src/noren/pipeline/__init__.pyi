"""The names of `noren.pipeline`, for type checkers: at run time they are loaded when first used."""

from noren.pipeline.advice import advise as advise
from noren.pipeline.anonymize import HolderFacts as HolderFacts
from noren.pipeline.anonymize import Outcome as Outcome
from noren.pipeline.anonymize import run as run
from noren.pipeline.collect import Collector as Collector
from noren.pipeline.compare import Candidate as Candidate
from noren.pipeline.comparison import Comparison as Comparison
from noren.pipeline.foreign import verify_table as verify_table
from noren.pipeline.levels import find_levels as find_levels
from noren.pipeline.measure import Measure as Measure
from noren.pipeline.measure import Measures as Measures
from noren.pipeline.prepare import read_policy as read_policy
from noren.pipeline.risk.result import Risk as Risk
