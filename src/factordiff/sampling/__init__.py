"""Drawing from a composition: one loop, its reveal rules, its particles, its trace."""
