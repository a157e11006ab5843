"""The page a data protection officer reads."""
