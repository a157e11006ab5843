"""Random tables, policies and methods: every case ends in a release that a plain judge accepts, or in a clear error."""
