"""Tasks in, answers out: a team of experts, its answers to a task, and why."""
