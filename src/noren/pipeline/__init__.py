"""The few verbs that tie the rooms together."""
