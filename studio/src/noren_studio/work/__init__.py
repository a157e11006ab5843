"""The jobs of worker processes: each function calls the public API and returns plain data for a page.

A job is called as `work(stage, **given)`; `stage` reports progress. Results are sent as JSON. Large results (a release,
a report) are written into the session's folder, which is an argument.
"""
