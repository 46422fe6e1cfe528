"""Draw accuracy against passes anew from what `factordiff bench --curve ... --out FILE.json` measured.

python benchmarks/draw_passes.py docs/results/passes-test.json docs/results/passes-test.png
"""

import json
import sys
from pathlib import Path

from factordiff.bench.curve import Point, drawn
from factordiff.cli.bench import DEFAULT_RULE

found = json.loads(Path(sys.argv[1]).read_text())
about, points = found["about"], [Point(**point) for point in found["points"]]
title = f"{'+'.join(about['experts'])}, {about['split']}, {about['queries']} queries"
Path(sys.argv[2]).write_bytes(drawn(points, DEFAULT_RULE, title))
