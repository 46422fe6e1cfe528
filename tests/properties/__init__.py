"""The fourteen properties of the mathematics, each against enumeration on the toy world.

Four cells, three values, two experts that are the exact conditionals of two random joints. The numbers are those
of an independent enumeration; `tests/test_mutants.py` shows that these tests fail when the code is wrong.
"""
