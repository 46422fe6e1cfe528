"""Seconds from a fresh clone to the first screen that plays itself, and, if asked, to the end of the demo.

    python3 benchmarks/first_minute.py [--demo]

Clones the committed state of this repository into a temporary folder and does there what a reader would: `make play`.
Needs no package. Downloads count, so what pip keeps in its cache does too; other work on the machine shows in the load.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[1]
# Neither the environment from which this runs nor its packages may help.
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))
}


@contextmanager
def timed(what: str) -> Iterator[None]:
    begun = time.monotonic()
    yield
    load = os.getloadavg()[0]
    print(f"{what:12} {time.monotonic() - begun:6.1f} s   load {load:.1f}", flush=True)


def make(clone: Path, *words: str) -> None:
    subprocess.run(
        ["make", "--silent", *words], cwd=clone, env=ENVIRONMENT, stdout=subprocess.DEVNULL, check=True
    )


def get(address: str, body: Any = None) -> bytes:
    """The whole answer; with a body, what a page sends."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"content-type": "application/json"} if data else {})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return answer.read()


@contextmanager
def playground(clone: Path) -> Iterator[str]:
    """The address of what `make play` starts, once it answers."""
    words = ["make", "--silent", "play", "PORT=0"]
    server = subprocess.Popen(
        words, cwd=clone, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert server.stdout is not None
        said = server.stdout.readline()
        address = re.search(r"http://\S+/", said)
        if address is None:
            raise SystemExit(f"make play: expected an address, got {said!r}")
        yield address[0]
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def first_story(address: str) -> None:
    """What the page asks for before the story begins to play: the stories, and the first one solved."""
    stories = json.loads(get(f"{address}api/v1/stories"))["stories"]
    told = stories[0]["candidates"][0]
    for request in told["requests"]:
        events = [
            json.loads(line)
            for line in get(f"{address}api/v1/solve", {"task": told["task"], **request}).splitlines()
        ]
        if events[-1]["event"] != "answer":
            raise SystemExit(f"solve: expected an answer, got {events[-1]}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--demo", action="store_true", help="also time `make demo`, in another clone")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "play"
        with timed("in all"):
            with timed("clone"):
                subprocess.run(["git", "clone", "--quiet", REPOSITORY, clone], check=True)
            with timed("environment"):
                make(clone, ".venv/.ready-to-play")
            begun = time.monotonic()
            with playground(clone) as address:
                print(f"{'server':12} {time.monotonic() - begun:6.1f} s", flush=True)
                with timed("page"):
                    get(address)
                with timed("first story"):
                    first_story(address)
        if given.demo:
            clone = Path(folder) / "demo"
            subprocess.run(["git", "clone", "--quiet", REPOSITORY, clone], check=True)
            with timed("make demo"):
                make(clone, "demo")


if __name__ == "__main__":
    main()
