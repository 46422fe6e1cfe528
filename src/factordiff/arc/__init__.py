"""ARC grids and the RE-ARC data set: the only folder that knows ARC; the core never imports it."""
