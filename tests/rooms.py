"""Rules about the whole package: functions from all its files to the sentences that they break.

`sources` maps a file's place below src/factordiff, such as "sampling/reveal.py", to its text.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set

Sources = Mapping[str, str]

# What a name of ours means is said in one file. Others may use what it makes, and nothing else may read the names.
LOADER = "networks/named.py"
LOADS_A_NETWORK_ALONE = {LOADER, "networks/store.py", "__init__.py", "cli/bench.py", "cli/experts.py"}
FACTOR_TABLE = "composition/factor_names.py"
FACTOR_WORDS = {"pixel", "row", "column", "component", "whole", "block", "near"}
RULES_BY_NAME = "sampling/rules.py"
REVEAL_RULES = {"Ancestral", "ByConfidence", "ByMargin", "ByEntropy", "ByProduct", "ByBlock", "Repaired"}
WRITER = "files.py"
PUTS_IN_PLACE = {"replace", "rename", "renames", "link", "mkstemp", "NamedTemporaryFile"}
UNPACKS_A_FOLDER = {"report/tarball.py"}  # of files that are whole by then
A_TABLE = 6  # of the seven names of factors
A_PARSER = 3  # of the seven kinds of rules


def one_class_of_a_name(sources: Sources) -> Iterator[str]:
    """A public class has a name of its own."""
    homes = defaultdict(list)
    for place, source in sources.items():
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(place)
    for name, places in homes.items():
        if len(places) > 1:
            yield f"{name} is a class in {' and in '.join(places)}: name what tells them apart"


def no_cycles(sources: Sources) -> Iterator[str]:
    """No file needs itself, however long the way round. Imports inside functions count."""
    files = {_module(place): place for place in sources}
    needs = {
        module: sorted((files.keys() & set(_needed(ast.parse(sources[place]), files.keys()))) - {module})
        for module, place in files.items()
    }
    done: set[str] = set()
    for start in files:
        way: list[str] = []

        def look(module: str, way: list[str] = way) -> Iterator[str]:
            if module in way:
                yield " -> ".join(files[one] for one in [*way[way.index(module) :], module])
            elif module not in done:
                way.append(module)
                for other in needs[module]:
                    yield from look(other)
                done.add(way.pop())

        yield from look(start)


def one_loader(sources: Sources) -> Iterator[str]:
    """Experts with their names, objectives and hashes come from one function."""
    for place, source in sources.items():
        called = {node.func.id for node in ast.walk(ast.parse(source)) if _calls_a_name(node)}  # type: ignore[attr-defined]
        if place not in LOADS_A_NETWORK_ALONE and "load_expert" in called:
            yield f"{place} loads experts: {LOADER} does it, with all that is known about them (`load_named`)"


def one_table_of_factors(sources: Sources) -> Iterator[str]:
    """The names of factors are listed once."""
    for place, source in sources.items():
        if place == FACTOR_TABLE:
            continue
        for node in ast.walk(ast.parse(source)):
            if len(_words(node) & FACTOR_WORDS) >= A_TABLE:
                yield f"{place}:{node.lineno} lists factors: {FACTOR_TABLE} does (NAMES, EXAMPLES, `pattern`)"  # type: ignore[attr-defined]


def one_parser_of_rules(sources: Sources) -> Iterator[str]:
    """Names become reveal rules in one function."""
    for place, source in sources.items():
        if place == RULES_BY_NAME:
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Dict):
                made = {call.func.id for call in ast.walk(node) if _calls_a_name(call)}  # type: ignore[attr-defined]
                if len(made & REVEAL_RULES) >= A_PARSER:
                    yield f"{place}:{node.lineno} makes rules of names: {RULES_BY_NAME} does (`reveal_rule`)"


def one_atomic_write(sources: Sources) -> Iterator[str]:
    """Files are whole or not there, by one function."""
    for place, source in sources.items():
        if place == WRITER or place in UNPACKS_A_FOLDER:
            continue
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            owner, name = ast.unparse(node.func.value), node.func.attr
            moves = name in PUTS_IN_PLACE and owner in {"os", "shutil", "tempfile"}
            # A path is replaced by one argument; a text replaces two.
            if moves or (name in {"replace", "rename"} and len(node.args) == 1 and not node.keywords):
                yield f"{place}:{node.lineno} puts a file in its place: {WRITER} does it (`write_whole`)"


def _module(place: str) -> str:
    return "factordiff." + place.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _needed(tree: ast.AST, modules: Set[str]) -> Iterator[str]:
    """The modules that a file imports at any time; what only annotations need is not imported."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in modules else node.module or "" for name in inside)
        else:
            yield from _needed(node, modules)


def _calls_a_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def _words(node: ast.AST) -> set[str]:
    """The words of a literal list of names, or of a pattern of alternatives."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        parts = node.elts
    elif isinstance(node, ast.Dict):
        parts = [key for key in node.keys if key is not None]
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search(r"\w[|,]", node.value):
        return {re.split(r"\W", one.strip("^( "), maxsplit=1)[0] for one in re.split("[|,]", node.value)}
    else:
        return set()
    texts = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    return {text.split(":")[0] for text in texts}


RULES = (
    one_class_of_a_name,
    no_cycles,
    one_loader,
    one_table_of_factors,
    one_parser_of_rules,
    one_atomic_write,
)
