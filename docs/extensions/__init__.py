"""What the docs need beyond Sphinx: formulas drawn at build time, entries of the API, links to names and sources."""
