"""What a column means: roles, domains, hierarchies, distances."""
