"""One file per table and figure of the paper: the claim, the cost, the expected number, and how it is made."""
