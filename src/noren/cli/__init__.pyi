"""The names of `noren.cli`, for type checkers: at run time they are loaded when first used."""

from noren.cli.compare import read_grid as read_grid
from noren.cli.hospital import POLICY_TOML as POLICY_TOML
from noren.cli.hospital import disease_hierarchy_csv as disease_hierarchy_csv
from noren.cli.hospital import hospital_table as hospital_table
from noren.cli.render import echo_json as echo_json
from noren.cli.render import guarded_frame as guarded_frame
from noren.cli.render import say as say
from noren.cli.render import stages as stages
from noren.cli.render import table as table
