"""The names of `noren.release`, for type checkers: at run time they are loaded when first used."""

from noren.release.database.publish import publish as publish
from noren.release.release import Release as Release
from noren.release.release import open_release as open_release
