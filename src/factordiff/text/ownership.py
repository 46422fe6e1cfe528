"""Which characters of a Python file are prose (comments and docstrings), and each kind's text alone."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings

import numpy as np
from jaxtyping import Bool, UInt8

from factordiff.errors import DataError
from factordiff.text.alphabet import NEWLINE, SPACE, UNKNOWN, Values

Prose = Bool[np.ndarray, " cell"]

SYNTAX = (3, 11)  # the newest grammar that files are read by
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
LEGAL = re.compile(r"copyright|licen[cs]e", re.IGNORECASE)


def cleaned(source: str) -> str:
    """A file's text in the alphabet: tabs are four spaces, line ends newlines, legal notices at the top gone.

    A notice is the comment lines that a file begins with, if they speak of copyright or a licence: they are the same
    in thousands of files.
    """
    text = source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    text = text.replace("\t", "    ").replace("\f", "")
    text = "".join(letter if letter == "\n" or " " <= letter <= "~" else UNKNOWN for letter in text)
    lines = text.rstrip().split("\n")
    top = 0
    while top < len(lines) and (not lines[top].strip() or lines[top].startswith("#")):
        top += 1
    if LEGAL.search("\n".join(lines[:top])):
        lines = lines[top:]
    return "\n".join(lines).strip("\n") + "\n"


def prose_of(text: str) -> Prose:
    """For every character whether it is part of a comment or a docstring, quotes and all.

    The newline that ends a comment is code; those inside a docstring are prose.
    """
    starts = np.cumsum([0] + [len(line) for line in text.splitlines(keepends=True)])
    prose = np.zeros(len(text), dtype=bool)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # old files have odd escapes
            tree = ast.parse(text, feature_version=SYNTAX)
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (SyntaxError, ValueError, tokenize.TokenError, RecursionError, MemoryError) as error:
        raise DataError(
            f"text: not a Python file of version {'.'.join(map(str, SYNTAX))} ({error})"
        ) from error
    for token in tokens:
        if token.type == tokenize.COMMENT:
            first = starts[token.start[0] - 1] + token.start[1]
            prose[first : first + len(token.string)] = True
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            said = node.body[0]
            assert said.end_lineno is not None
            assert said.end_col_offset is not None
            first = starts[said.lineno - 1] + said.col_offset
            prose[first : starts[said.end_lineno - 1] + said.end_col_offset] = True
    return prose


def alone(text: Values, prose: Prose, kind: str) -> UInt8[np.ndarray, " kept"]:
    """The text of one kind, `prose` or `code`: every line without what is the other's.

    A line keeps its indentation. One that has nothing of the kind is left out; blank lines are code, unless they are
    inside a docstring. Spaces that a removed comment leaves at the end of a line go with it.
    """
    if not len(text):
        return text
    ends, blank = text == NEWLINE, (text == NEWLINE) | (text == SPACE)
    last_of_line = np.append(np.flatnonzero(ends[:-1]), len(text) - 1)
    first_of_line = np.append(0, last_of_line[:-1] + 1)
    lengths = last_of_line - first_of_line + 1
    place = np.arange(len(text), dtype=np.int32)

    def in_some(marked: np.ndarray) -> np.ndarray:
        """For every line whether something of it is marked."""
        return np.logical_or.reduceat(marked, first_of_line)

    def everywhere(of_lines: np.ndarray) -> np.ndarray:
        """Each line's number at all of its characters."""
        return np.repeat(of_lines, lengths)

    if kind == "prose":
        first = np.minimum.reduceat(np.where(blank, np.int32(len(text)), place), first_of_line)
        indentation = (text == SPACE) & (place < everywhere(first))
        return text[everywhere(in_some(prose)) & (prose | indentation | ends)]
    told = ~prose & ~blank
    last = np.maximum.reduceat(np.where(told, place, np.int32(-1)), first_of_line)
    kept = in_some(told) | ~in_some(prose | ~blank)
    return text[everywhere(kept) & ((~prose & (place <= everywhere(last))) | ends)]
