"""Seconds from a fresh clone to the first screen that plays itself, and, if asked, to the end of the demo.

    python3 benchmarks/first_minute.py [--demo]

Clones the committed state of this repository into a temporary folder and does there what a reader would: `make play`.
Needs no package. Downloads count. Beside the seconds stand those of the processor, which other work on the machine
does not change much, and the load of the last minute, which shows that work.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[1]
# Neither the environment from which this runs nor its packages may help.
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))
}


@contextmanager
def timed(what: str) -> Iterator[None]:
    begun, before = time.monotonic(), computed()
    yield
    seconds, spent = time.monotonic() - begun, computed() - before
    known = f"{spent:6.1f} s" if spent else ""  # a server's are known when it has ended: in the sum
    print(f"{what:12} {seconds:6.1f} s {known:>10} {os.getloadavg()[0]:6.1f}", flush=True)


def computed() -> float:
    """Seconds of the processor that commands which have ended took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
        words,
        cwd=clone,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        assert server.stdout is not None
        said = ""
        while (address := re.search(r"http://\S+/", said)) is None:
            line = server.stdout.readline()
            if not line:
                raise SystemExit(f"make play: expected an address, got {said!r}")
            said += line
        yield address[0]
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def first_story(address: str) -> None:
    """What the page asks for before the story begins to play: the stories, and the first one solved."""
    stories = json.loads(get(f"{address}api/v1/stories"))["stories"]
    for run in range(len(stories[0]["labels"])):
        asked = {"story": stories[0]["name"], "run": run}
        events = [json.loads(line) for line in get(f"{address}api/v1/tell", asked).splitlines()]
        if events[-1]["event"] != "answer":
            raise SystemExit(f"tell: expected an answer, got {events[-1]}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--demo", action="store_true", help="also time `make demo`, in another clone")
    given = options.parse_args()
    print(f"{'':12} {'seconds':>8} {'processor':>10} {'load':>6}")
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "play"
        with timed("in all"):
            with timed("clone"):
                subprocess.run(["git", "clone", "--quiet", REPOSITORY, clone], check=True)
            with timed("environment"):
                make(clone, ".venv/.ready-to-play")
            with ExitStack() as stack:
                with timed("server"):
                    address = stack.enter_context(playground(clone))
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
