"""Words of the page that belong to no model and to no method: those speak for themselves."""

GROUNDS = {
    "the release alone": "Anybody can recompute it from the published files and need trust nobody.",
    "the published design": "It follows from the design that the release states; trust that it was drawn that way.",
    "an estimate from the release": "It rests on the stated design and on an estimate of how common the values are.",
    "the original": "It was computed with the original table; only the holder can repeat it.",
}
"""What a verdict rests on, and whom a reader must trust."""
