"""Generated tables with the shape of data sets that may be missing. No row describes a person."""
