"""Where the work runs. An engine profiles a source, encodes it and shuffles what is published."""
