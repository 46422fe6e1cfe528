"""Run a notebook from top to bottom and keep what it shows: `make notebook`.

Every cell is run in this process, without a notebook server; what its last line is worth is kept as text and, where it
draws itself, as a picture. With --check nothing is written: the stored outputs are compared with fresh ones.

python notebooks/execute.py notebooks/factordiff.ipynb
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).with_name("factordiff.ipynb")
NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")
PICTURES = {"_repr_svg_": "image/svg+xml", "_repr_html_": "text/html"}

Output = dict[str, Any]
FILL = re.compile(r'fill="#[0-9a-f]{6}"')
MOST_TORN = 0.1  # of a picture's colors that another processor may see otherwise


def executed(notebook: dict[str, Any], report: bool = False) -> dict[str, Any]:
    """The notebook with the outputs of this run."""
    namespace: dict[str, Any] = {"__name__": "notebook"}
    cells, count = [], 0
    code_cells = sum(cell["cell_type"] == "code" for cell in notebook["cells"])
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            begun = time.perf_counter()
            outputs = _outputs("".join(cell["source"]), namespace, count)
            cell = {**cell, "execution_count": count, "outputs": outputs}
            if report:
                print(
                    f"cell {count} of {code_cells}: {time.perf_counter() - begun:.1f} s",
                    file=sys.stderr,
                    flush=True,
                )
        cells.append(cell)
    return {**notebook, "cells": cells}


def differences(stored: dict[str, Any], fresh: dict[str, Any]) -> list[str]:
    """The cells whose outputs are not those of the other notebook; pixels may differ with the drawing library."""
    found = []
    for number, (one, other) in enumerate(zip(stored["cells"], fresh["cells"], strict=True)):
        if one["cell_type"] == "code" and not _alike(one["outputs"], other["outputs"]):
            found.append(f"cell {number}: {''.join(one['source'])[:60]!r} shows something else now")
    return found


def _outputs(code: str, namespace: dict[str, Any], count: int) -> list[Output]:
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "notebook", "exec"), namespace)
        value = None
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "notebook", "eval"), namespace)
    outputs: list[Output] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None:
        bundle = {"data": shown(value), "execution_count": count, "metadata": {}}
        outputs.append({**bundle, "output_type": "execute_result"})
    return outputs


def shown(value: Any) -> dict[str, Any]:
    """How a value shows itself, by the kind of content."""
    data: dict[str, Any] = {"text/plain": repr(value).splitlines(keepends=True)}
    for method, kind in PICTURES.items():
        if hasattr(value, method):
            data[kind] = getattr(value, method)().splitlines(keepends=True)
    if hasattr(value, "_repr_png_"):
        data["image/png"] = base64.b64encode(value._repr_png_()).decode()
        data["text/plain"] = [f"<{type(value).__name__}>"]  # its size in bytes is the drawing library's
    return data


def _alike(stored: list[Output], fresh: list[Output]) -> bool:
    """Whether text and vector pictures are the same again; of others, whether they are there.

    Numbers in text keep one figure: what comes after it may differ from one processor to another. So may a color where
    an expert is torn between two: some of a picture's may be others.
    """
    one, other = _parts(stored), _parts(fresh)
    if [(kind, FILL.sub("", text)) for kind, text in one] != [
        (kind, FILL.sub("", text)) for kind, text in other
    ]:
        return False
    pairs = list(
        zip(*(FILL.findall("".join(text for _, text in parts)) for parts in (one, other)), strict=True)
    )
    return sum(mine != its for mine, its in pairs) <= MOST_TORN * len(pairs)


def _parts(outputs: list[Output]) -> list[tuple[str, str]]:
    kept = []
    for output in outputs:
        data = output.get("data", {"text/plain": output.get("text")})
        for kind, part in data.items():
            text = NUMBER.sub(_one_figure, "".join(part)) if kind == "text/plain" else "".join(part)
            kept.append((kind, text if kind != "image/png" else ""))
    return kept


def _one_figure(number: re.Match[str]) -> str:
    return f"{float(number[0]):.0e}"


def main() -> int:
    """Execute and save, or check."""
    names = [argument for argument in sys.argv[1:] if argument != "--check"]
    file = Path(names[0]) if names else NOTEBOOK
    stored = json.loads(file.read_text(encoding="utf-8"))
    fresh = executed(stored, report=True)
    if "--check" in sys.argv:
        found = differences(stored, fresh)
        print("\n".join(found) or "every output is as stored")
        return bool(found)
    half = file.with_name(f"{file.name}.half")
    half.write_text(json.dumps(fresh, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    half.replace(file)
    print(f"wrote {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
