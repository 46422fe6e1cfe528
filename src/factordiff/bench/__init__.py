"""Everything that measures speed: both sides of every ratio in one run."""
