"""The names of `noren.workflow`, for type checkers: at run time they are loaded when first used."""

from noren.audit.risk.result import Risk as Risk
from noren.workflow.advice import advise as advise
from noren.workflow.anonymize import HolderFacts as HolderFacts
from noren.workflow.anonymize import Outcome as Outcome
from noren.workflow.anonymize import run as run
from noren.workflow.collect import Collector as Collector
from noren.workflow.compare import Candidate as Candidate
from noren.workflow.compare import find_levels as find_levels
from noren.workflow.comparison import Comparison as Comparison
from noren.workflow.foreign import verify_table as verify_table
from noren.workflow.measure import Measure as Measure
from noren.workflow.measure import Measures as Measures
from noren.workflow.prepare import read_policy as read_policy
