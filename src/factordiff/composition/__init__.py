"""How experts combine: per sample (one scalar per expert) or factor by factor."""
