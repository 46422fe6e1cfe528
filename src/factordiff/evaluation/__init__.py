"""Runs become records, records become figures. Reports only read files."""
