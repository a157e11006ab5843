"""The public names of `noren.release` and where each lives: for type checkers, and at run time."""

from noren.release.database.publish import publish as publish
from noren.release.release import Release as Release
from noren.release.release import open_release as open_release
