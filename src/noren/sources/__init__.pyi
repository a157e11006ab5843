"""The public names of `noren.sources` and where each lives: for type checkers, and at run time."""

from noren.sources.arrow import FrameSource as FrameSource
from noren.sources.postgres import Address as Address
from noren.sources.sample import sampled as sampled
from noren.sources.source import SOURCES as SOURCES
from noren.sources.source import Source as Source
from noren.sources.source import open_source as open_source
