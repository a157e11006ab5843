"""The forms a published cell takes."""

from noren.cells.sets import SetCells, ValueCells

Cells = SetCells | ValueCells

__all__ = ["Cells", "SetCells", "ValueCells"]
