"""What the mechanism itself reveals: an adversary who knows the method and everybody's quasi-identifiers.

- `sight`: what this adversary sees of a release.
- `rule`: what a rule is; every method names its own in `Method.mechanism`.
- `moves`: records of too common secrets left their groups (sweep, three-phase, local suppression).
- `refusals`: a class was not cut, or a level not lowered (mondrian, microaggregation, incognito).
- `stays`: records that a narrower class could not take, where cuts leave records behind (mondrian under closeness).
- `skips`: records of a curve that were passed over (hilbert).
- `omissions`: terms that were left out, as few as suffice (suppress, with balance too).
- `means`: groups that were joined, as published means show them (microaggregation).
- `cutting`: what a refused cut gives away, by simulation.
- `judge`: the beliefs about a secret under the rule of the method that made the classes.

The audit and the requirement `mechanism` both stand on this.
"""
