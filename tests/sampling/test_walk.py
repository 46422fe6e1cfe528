"""What a reader walks through: one plain `sample`, profiled, and the length of its page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import factordiff

SOURCE = Path(factordiff.__file__).parent

# In a process of its own: here jaxtyping wraps every function, and others are at work.
WALK = """
import sys
from pathlib import Path
import torch
import factordiff
from factordiff import ByConfidence, Mixture, TabularExpert, sample

source = str(Path(factordiff.__file__).parent)
expert = TabularExpert(torch.full((3,) * 4, 3.0**-4))
asked = ([expert, expert], Mixture(), torch.full((2, 4), 3), None)
rule = ByConfidence(4)
sample(*asked, reveal=rule)  # imports are over
seen = set()


def walked(frame, event, argument):
    code = frame.f_code
    # Comprehensions and lambdas are lines of the function they stand in.
    if event == "call" and code.co_filename.startswith(source) and not code.co_name.startswith("<"):
        seen.add((code.co_filename[len(source) + 1 :], code.co_qualname))


sys.setprofile(walked)
sample(*asked, reveal=rule)
sys.setprofile(None)
for file, function in sorted(seen):
    print(file, function)
"""


def test_a_plain_sample_walks_through_few_files_and_functions() -> None:
    ended = subprocess.run([sys.executable, "-c", WALK], capture_output=True, text=True, check=True)
    walked = [line.split(" ") for line in ended.stdout.splitlines()]
    files = {file for file, _ in walked}
    assert "sampling/step.py" in files, "the walk was not seen"
    # The reveal rule comes on top, as do the composition, the expert, vocabulary and streams.
    loop = {file for file in files if file.startswith("sampling/")} - {"sampling/reveal.py"}
    assert len(loop) <= 4, sorted(loop)
    assert not [file for file in files if file.startswith("engine/")]
    assert len(walked) <= 50, ended.stdout


def test_state_step_and_loop_are_one_page() -> None:
    page = ("state.py", "sampling/step.py", "sampling/sampler.py")
    lines = {file: len((SOURCE / file).read_text().splitlines()) for file in page}
    assert sum(lines.values()) < 250, lines
