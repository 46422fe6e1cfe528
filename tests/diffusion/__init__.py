"""Mirrors `factordiff/diffusion`."""
