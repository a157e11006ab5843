"""The holder's policy: attributes, requirements, method; TOML in and out."""
