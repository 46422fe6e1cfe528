"""The rules of the house as functions from a file's place and source to the sentences that it breaks.

`place` is the path below src/factordiff, such as "sampling/reveal.py". Every rule reads the syntax tree only.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

# Who may import whom: a layer sees the layers before it. Files of one layer see each other.
LAYERS = {
    "errors": 0,
    "schema": 0,
    "vocabulary": 0,
    "types": 0,
    "streams": 0,
    "files": 0,
    "locks": 0,
    "printable": 0,
    "tensors": 0,
    "kernels": 0,
    "state": 0,
    "devices": 0,
    "own_modules": 0,
    "diffusion": 1,
    "experts": 2,
    "networks": 3,
    "composition": 4,
    "sampling": 5,
    "engine": 6,
    "toy": 6,
    "pictures": 6,
    "fitting": 7,
    "training": 7,
    "team": 8,
    "arc": 9,
    "text": 10,
    "report": 10,
    "evaluation": 11,
    "solving": 11,
    "experiments": 12,
    "worlds": 12,
    "bench": 12,
    "web": 13,
    "cli": 14,
    "__main__": 15,
}
CORE = {name for name, rank in LAYERS.items() if rank <= LAYERS["sampling"]}
DOMAIN = {name for name, rank in LAYERS.items() if rank >= LAYERS["arc"]}
LONGEST_FILE = 300
NO_CONCEPT = {"utils", "util", "common", "helpers", "helper", "misc"}
SPEAKS_OF_THE_DOMAIN = {"diffusion/objectives.py", "composition/views.py"}
# The RE-ARC generators call the random module's functions; rearc.py gives them numbers of their own.
OWNS_A_GENERATOR = {"arc/build/rearc.py"}
# What is there where nothing can be installed; everything else is imported where it is used.
ALWAYS_THERE = {
    "torch", "numpy", "safetensors", "jaxtyping", "typer", "rich", "matplotlib", "scipy", "PIL",
    "huggingface_hub", "tensorboard",
}  # fmt: skip
CORE_NEEDS = {"torch", "numpy", "safetensors", "jaxtyping", "scipy"}
QUICK = {"typer", "rich", "click"}
# The playground is an extra as a whole; its requests and events are pydantic's models.
WEB_NEEDS = {*ALWAYS_THERE, "pydantic"}


def layer(place: str) -> str:
    """The first name of a file's place: its folder, or the file itself."""
    return place.split("/")[0].removesuffix(".py")


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every module imported anywhere in the tree, with its line; `from a import b` gives a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def at_import_time(tree: ast.Module) -> ast.Module:
    """The tree without function bodies and `if TYPE_CHECKING` blocks: what runs when it is imported."""

    class Outside(ast.NodeTransformer):
        def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
            return None

        def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
            return None

        def visit_If(self, node: ast.If) -> ast.AST | None:
            return None if "TYPE_CHECKING" in ast.unparse(node.test) else self.generic_visit(node)

    return Outside().visit(tree)


def import_directions(place: str, source: str) -> Iterator[str]:
    """Imports go one way; the core never sees the domain."""
    here = layer(place)
    if place == "__init__.py":  # the public list
        return
    if here not in LAYERS:
        yield f"{place}: {here} has no place among the layers {list(LAYERS)}"
        return
    for line, name in imports(ast.parse(source)):
        if name.startswith("."):
            yield f"{place}:{line} imports {name}: write the full name"
        elif name.startswith("factordiff"):
            there = f"{name}.".split(".")[1]
            if there not in LAYERS:
                yield f"{place}:{line} imports {name}: import it from the file it lives in"
            elif there != here and not _may_see(here, there):
                yield f"{place}:{line} imports {name}: {here} comes before {there}"


def _may_see(here: str, there: str) -> bool:
    return LAYERS[there] < LAYERS[here] or LAYERS[here] == LAYERS[there] == 0


def import_weight(place: str, source: str) -> Iterator[str]:
    """Importing a file needs only what is everywhere; importing a verb needs next to nothing."""
    tree = at_import_time(ast.parse(source))
    here = layer(place)
    # Every run of the command line imports the verbs, and only when it is one does it import the rest.
    verb = here in ("__main__", "__init__") or any(
        name == "factordiff.cli.app.app" for _, name in imports(tree)
    )
    above = WEB_NEEDS if here == "web" else ALWAYS_THERE
    allowed = QUICK if verb else CORE_NEEDS if here in CORE else above
    for line, name in imports(tree):
        package = name.split(".")[0]
        if package == "factordiff":
            if verb and name.split(".")[1] not in ("cli", "errors"):
                yield f"{place}:{line} imports {name} at once: a verb imports it in its function"
        elif package and package not in allowed and package not in sys.stdlib_module_names:
            yield f"{place}:{line} imports {package} at once: expected only {sorted(allowed)}"


TORCH_DRAWS = {
    "rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "normal", "bernoulli",
    "multinomial", "poisson",
}  # fmt: skip
TORCH_STATE = {"manual_seed", "seed", "initial_seed", "get_rng_state", "set_rng_state", "manual_seed_all"}
TENSOR_DRAWS = {
    "uniform_", "normal_", "random_", "bernoulli_", "exponential_", "cauchy_", "geometric_", "log_normal_",
    "multinomial", "bernoulli",
}  # fmt: skip
# Modules whose constructors fill their weights from torch's global generator.
DRAWN_MODULES = re.compile(
    r"torch\.nn\.(Linear|Bilinear|Embedding|EmbeddingBag|Conv\w+|MultiheadAttention|Transformer\w*|RNN|LSTM|GRU"
    r"|Dropout\w*)$"
)
CONSTANT_FILLS = {"zeros_", "ones_", "constant_", "eye_", "calculate_gain"}


def global_randomness(place: str, source: str) -> Iterator[str]:
    """No number comes from a generator that others share."""
    if place in OWNS_A_GENERATOR:
        return
    tree = ast.parse(source)
    aliases = _aliases(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = _full_name(node.func, aliases)
            method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            keywords = {keyword.arg for keyword in node.keywords}
            if _draws(name, method, bool(node.args), "generator" in keywords):
                yield f"{place}:{node.lineno} calls {name or '.' + method}: draw from factordiff.streams"


def _draws(name: str, method: str, has_arguments: bool, has_generator: bool) -> bool:
    package, _, last = name.rpartition(".")
    if name.startswith(("random.", "secrets.")):
        return not (name == "random.Random" and has_arguments)
    if name.startswith("numpy.random."):
        return not (last in ("default_rng", "Philox", "PCG64", "SeedSequence", "Generator") and has_arguments)
    if package in ("torch", "torch.random", "torch.cuda") and last in TORCH_STATE:
        return True
    if package == "torch" and last in TORCH_DRAWS:
        return not has_generator
    if package == "torch.nn.init":
        return last not in CONSTANT_FILLS and not has_generator
    if DRAWN_MODULES.match(name) or name == "torch.nn.functional.dropout":
        return True
    return method in TENSOR_DRAWS and not name.startswith("torch.") and not has_generator


def _aliases(tree: ast.AST) -> dict[str, str]:
    """What the file's imported names stand for."""
    known = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                known[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return known


def _full_name(node: ast.expr, aliases: dict[str, str]) -> str:
    """The dotted name with its imports resolved; empty for anything that is not one."""
    if isinstance(node, ast.Name):
        return aliases.get(node.id, "")
    if isinstance(node, ast.Attribute):
        parent = _full_name(node.value, aliases)
        return f"{parent}.{node.attr}" if parent else ""
    return ""


WRITERS = ("rich.console", "rich.print", "rich.live", "rich.progress", "rich.status", "typer", "tqdm")


def printing(place: str, source: str) -> Iterator[str]:
    """Only the command line writes to the terminal."""
    if layer(place) in ("cli", "__main__"):
        return
    tree = ast.parse(source)
    aliases = _aliases(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else _full_name(node.func, aliases)
            if called == "print" or called.startswith(("sys.stdout.", "sys.stderr.", "logging.")):
                yield f"{place}:{node.lineno} calls {called}: return it, or take a callback"
    for line, name in imports(tree):
        if name.startswith(WRITERS):
            yield f"{place}:{line} imports {name}: only the command line prints"


def size_and_name(place: str, source: str) -> Iterator[str]:
    """A file is one concept with a name."""
    lines = source.count("\n")
    if lines > LONGEST_FILE:
        yield f"{place}: {lines} lines, expected at most {LONGEST_FILE}"
    for part in place.removesuffix(".py").split("/"):
        if part in NO_CONCEPT:
            yield f"{place}: {part} names no concept"


def docstrings(place: str, source: str) -> Iterator[str]:
    """Every public thing says what it is."""
    tree = ast.parse(source)
    if not ast.get_docstring(tree):
        yield f"{place}: the file has no docstring"
    yield from _undocumented(place, tree)


def _undocumented(place: str, parent: ast.Module | ast.ClassDef) -> Iterator[str]:
    for node in parent.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            overload = any("overload" in ast.unparse(mark) for mark in node.decorator_list)
            if not node.name.startswith("_") and not overload and not ast.get_docstring(node):
                yield f"{place}:{node.lineno} {node.name} has no docstring"
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield from _undocumented(place, node)


def domain_words(place: str, source: str) -> Iterator[str]:
    """The core knows cells and values, not colors or tasks; and code spells "color"."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        name = getattr(node, "id", None) or getattr(node, "name", None) or getattr(node, "arg", None)
        if isinstance(name, str) and "colour" in name.lower():
            yield f"{place}:{getattr(node, 'lineno', 0)} {name}: spell it color"
    if layer(place) in DOMAIN | {"__main__"} or place in SPEAKS_OF_THE_DOMAIN:
        return
    for number, line in enumerate(source.splitlines(), start=1):
        if found := re.search(r"\bARC\b|(?i:colou?r)", line):
            yield f"{place}:{number} speaks of {found[0]}: that belongs to arc and above"


SHAPED = {"Float", "Float32", "Float64", "Int", "Int64", "UInt8", "Bool", "Shaped", "Num", "Integer"}


def shapes_are_quoted(place: str, source: str) -> Iterator[str]:
    """A shape is a string: a linter once took the quotes off, and left names that nobody defined."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in SHAPED:
            shape = node.slice.elts[1] if isinstance(node.slice, ast.Tuple) else None
            if not (isinstance(shape, ast.Constant) and (shape.value is ... or isinstance(shape.value, str))):
                yield f"{place}:{node.lineno} {ast.unparse(node)}: the shape is not a string"


RULES = (
    shapes_are_quoted,
    import_directions,
    import_weight,
    global_randomness,
    printing,
    size_and_name,
    docstrings,
    domain_words,
)
