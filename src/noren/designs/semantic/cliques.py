"""The largest clique of a graph, exactly: branch and bound with a greedy colouring as the bound."""

from __future__ import annotations

from collections.abc import Sequence


class Search:
    """Clique searches over one graph that share a budget of steps, so that a hard graph cannot hang a policy check."""

    def __init__(self, neighbours: Sequence[int], budget: int) -> None:
        self._neighbours = neighbours
        self.left = budget

    @property
    def exhausted(self) -> bool:
        """Whether an answer since the start may be too small because the budget ran out."""
        return self.left < 0

    def largest(self, inside: int, enough: int) -> int:
        """Size of the largest clique among the vertices of the bit set `inside`, or `enough` once one is so large.

        A clique takes at most one vertex of each colour, so vertices whose colour number does not reach beyond the
        best clique so far need not be tried (Tomita and Seki).
        """
        best = 0

        def expand(candidates: int, size: int) -> None:
            nonlocal best
            best = max(best, size)
            if not candidates or best >= enough or self.left < 0:
                return
            self.left -= 1
            for vertex, colours in reversed(self._coloured(candidates)):
                if size + colours <= best or best >= enough:
                    return
                expand(candidates & self._neighbours[vertex], size + 1)
                candidates &= ~(1 << vertex)

        expand(inside, 0)
        return min(best, enough)

    def _coloured(self, candidates: int) -> list[tuple[int, int]]:
        """Vertices in the order of their colours, each with the number of colours used up to it."""
        out: list[tuple[int, int]] = []
        colour = 0
        while candidates:
            colour += 1
            free = candidates
            while free:
                vertex = (free & -free).bit_length() - 1
                out.append((vertex, colour))
                candidates &= ~(1 << vertex)
                free &= ~((1 << vertex) | self._neighbours[vertex])
        return out
