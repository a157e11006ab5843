"""The names of `noren.io`, for type checkers: at run time they are loaded when first used."""

from noren.io.arrow import FrameSource as FrameSource
from noren.io.postgres import Address as Address
from noren.io.sample import sampled as sampled
from noren.io.source import SOURCES as SOURCES
from noren.io.source import Source as Source
from noren.io.source import open_source as open_source
