"""The front door: experts put together by name, saved, fitted, diagnosed, sampled from."""
