"""What the choices of a method disclose to an adversary who knows everybody's quasi-identifiers.

- `sight`: what this adversary sees of a release.
- `rule`: what a rule is; every method names its own in `Method.mechanism`.
- `moves`: records of too common secrets left their groups (sweep, three-phase, local suppression).
- `refusals`: a class was not cut, a level not lowered, groups were joined, a record stayed behind (mondrian,
  microaggregation, incognito).
- `skips`: records of a curve that were passed over (hilbert, the residue of three-phase).
- `omissions`: terms that were left out, as few as suffice (suppress, with balance too).
- `judge`: the beliefs about a secret under the rule of the method that made the classes.

The audit and the requirement `mechanism` both stand on this.
"""
