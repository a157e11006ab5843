"""Loops over records: arrays, numbers and named tuples in, arrays out."""
