"""Worlds small enough to enumerate: what the demo shows, the docs quote and users' own tests can borrow."""
