"""Mirrors `factordiff/composition`."""
