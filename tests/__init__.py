"""Tests; a package, so that every test can import the oracle."""
