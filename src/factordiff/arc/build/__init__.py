"""How the data set is made: attempts, candidates, the choice of tasks and instances, checks."""
