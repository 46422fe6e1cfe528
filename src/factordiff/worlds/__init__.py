"""Worlds: frozen experts, data and a metric each, on which every composition and every bound is compared."""
