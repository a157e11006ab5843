"""The public names of `noren.cli` and where each lives: for type checkers, and at run time."""

from noren.cli.compare import read_grid as read_grid
from noren.cli.demo import POLICY_TOML as POLICY_TOML
from noren.cli.demo import disease_hierarchy_csv as disease_hierarchy_csv
from noren.cli.demo import hospital_table as hospital_table
from noren.cli.render import echo_json as echo_json
from noren.cli.render import guarded_frame as guarded_frame
from noren.cli.render import say as say
from noren.cli.render import stages as stages
from noren.cli.render import table as table
