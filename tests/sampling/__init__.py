"""Mirrors `factordiff/sampling`."""
