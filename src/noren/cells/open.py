"""Published cells of a column with an open domain: free text, exact amounts, anything with very many values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class OpenCells:
    """n cells published as they are and never coded. `data` is a pyarrow Array."""

    data: Any

    def __len__(self) -> int:
        return len(self.data)

    @classmethod
    def concat(cls, parts: Sequence[OpenCells]) -> OpenCells:
        import pyarrow as pa

        return cls(pa.concat_arrays([part.data for part in parts]))

    def take(self, rows: NDArray | slice) -> OpenCells:
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(len(self.data))
            return OpenCells(self.data.slice(start, stop - start))
        return OpenCells(self.data.take(np.ascontiguousarray(rows)))
