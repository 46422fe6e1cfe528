"""One masked diffusion: schedule, process, objectives."""
