"""Plausible tables: complete records drawn from what a release leaves possible, and Rubin's rules to pool them."""
