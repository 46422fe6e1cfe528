"""FactorDiff: combine frozen discrete-diffusion experts at inference time, factor by factor."""
