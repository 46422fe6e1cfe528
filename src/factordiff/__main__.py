"""`python -m factordiff`, for machines where nothing can be installed."""

from factordiff.cli import main

main()
