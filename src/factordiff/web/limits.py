"""How much one request may ask for, and how many may ask at once."""

from __future__ import annotations

from dataclasses import dataclass

API_VERSION = 1


@dataclass(frozen=True)
class Limits:
    """Bounds that keep a solve small and the server's memory flat."""

    body: int = 200_000  # bytes; twenty pairs of full grids, one number on each line, have half of that
    objects: int = 100  # JSON objects in a body: a pair is one, and it is counted before it is read
    lists: int = 2_000  # JSON lists in a body: a row is one
    demonstrations: int = 10
    tests: int = 10
    experts: int = 6
    particles: int = 16
    steps: int = 1_000
    queue: int = 8  # requests that wait for the one that is computed
    per_client: int = 4  # open requests of one address
    deadline: float = 60.0  # seconds from arrival to answer
    upload: float = 10.0  # seconds in which a body must arrive
    silence: float = 10.0  # seconds that a connection may be open without a whole request
    connections: int = 512  # open at once; of more the longest silent is closed
    download: float = 30.0  # seconds after the deadline in which an answer must be taken
