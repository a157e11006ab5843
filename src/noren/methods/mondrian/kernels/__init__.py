"""Mondrian in compiled code: cut a table into classes, move records between neighbours, drop classes that fail.

- `costs`: what a class loses in a column, from a summary of the codes it covers.
- `cuts`: recursive cuts; the cheapest one whose sides meet every requirement is made.
- `exchange`: cuts that leave records of too common secrets behind.
- `moves`: afterwards records move to neighbouring classes, or are dropped, where that lowers the loss.
- `term_rules`: what quasi-sensitive terms reveal of a class.
"""

from noren.methods.mondrian.kernels.costs import Cover
from noren.methods.mondrian.kernels.cuts import Points, Required, cut
from noren.methods.mondrian.kernels.moves import Losses, drop, move_records

__all__ = ["Cover", "Losses", "Points", "Required", "cut", "drop", "move_records"]
