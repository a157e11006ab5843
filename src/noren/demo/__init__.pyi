"""The names of `noren.demo`, for type checkers: at run time they are loaded when first used."""

from noren.demo.hospital import POLICY_TOML as POLICY_TOML
from noren.demo.hospital import disease_hierarchy_csv as disease_hierarchy_csv
from noren.demo.hospital import hospital_table as hospital_table
