"""SWEEP (paper 004): functional (tau,l)-diversity by generalising quasi-identifiers and, where needed, secrets.

- `method`: the options, and the run over a table.
- `bounds`: what must hold in every sensitive column.
- `levels`: in which order quasi-identifiers climb, and what a vector groups together.
"""

from noren.methods.sweep.method import Run, Sweep

__all__ = ["Run", "Sweep"]
