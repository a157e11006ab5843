"""The public names of `noren.workflow` and where each lives: for type checkers, and at run time."""

from noren.audit.risk import Risk as Risk
from noren.workflow.advice import advise as advise
from noren.workflow.anonymize import HolderFacts as HolderFacts
from noren.workflow.anonymize import Outcome as Outcome
from noren.workflow.anonymize import run as run
from noren.workflow.collect import Collector as Collector
from noren.workflow.compare import find_levels as find_levels
from noren.workflow.compare import iterate_candidates as iterate_candidates
from noren.workflow.comparison import Candidate as Candidate
from noren.workflow.comparison import Comparison as Comparison
from noren.workflow.fix import Fix as Fix
from noren.workflow.foreign import open_published as open_published
from noren.workflow.foreign import verify_table as verify_table
from noren.workflow.measure import Measure as Measure
from noren.workflow.measure import Measures as Measures
from noren.workflow.prepare import read_policy as read_policy
