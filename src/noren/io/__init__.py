"""From files and frames to batches of Arrow columns, without holding the whole table."""
