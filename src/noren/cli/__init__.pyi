"""The names of `noren.cli`, for type checkers: at run time they are loaded when first used."""

from noren.cli.hospital import POLICY_TOML as POLICY_TOML
from noren.cli.hospital import disease_hierarchy_csv as disease_hierarchy_csv
from noren.cli.hospital import hospital_table as hospital_table
