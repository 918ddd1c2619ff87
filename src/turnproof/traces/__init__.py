"""Recorded logs: reading, writing and replaying them against a machine or system."""
