"""The experiments, end to end on lookup experts that know the truth but for what each is blind to."""
