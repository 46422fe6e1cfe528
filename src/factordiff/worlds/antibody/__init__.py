"""Antibodies: two published masked language models that nobody here trained, on human heavy chains."""
