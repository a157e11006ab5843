"""A release in a PostgreSQL schema: written in one transaction, read and counted there."""
