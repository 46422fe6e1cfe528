"""Sudoku: 27 exact experts that nobody trained, one for each row, column and box."""
