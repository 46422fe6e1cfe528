"""Trained denoisers: Trans-IR, Conv-IR, a sequence transformer, their parts, and their folders."""
