"""The public names of `noren.policy` and where each lives: for type checkers, and at run time."""

from noren.policy.guessing import Seen as Seen
from noren.policy.json_schema import policy_schema as policy_schema
from noren.policy.policy import Policy as Policy
from noren.policy.proposal import Proposal as Proposal
from noren.policy.proposal import study as study
from noren.policy.proposal import written as written
from noren.policy.resolve import open_table as open_table
from noren.policy.toml import text_for as text_for
from noren.policy.toml import tree_of as tree_of
