"""The values of a text: newline and printable ASCII, one per cell."""

from __future__ import annotations

import numpy as np
from jaxtyping import UInt8

from factordiff.errors import InvalidInput
from factordiff.vocabulary import Vocabulary

LETTERS = "\n" + "".join(chr(code) for code in range(32, 127))
BYTES = Vocabulary(len(LETTERS))
NEWLINE, SPACE = LETTERS.index("\n"), LETTERS.index(" ")
UNKNOWN = "?"  # what a character outside the alphabet is read as

Values = UInt8[np.ndarray, " cell"]

_VALUE_OF = np.full(256, 255, np.uint8)
_VALUE_OF[np.frombuffer(LETTERS.encode("ascii"), np.uint8)] = np.arange(len(LETTERS), dtype=np.uint8)
_LETTER_OF = np.frombuffer(LETTERS.encode("ascii"), np.uint8)


def one_for_one(text: str) -> str:
    r"""Every character as one of the alphabet: tabs are spaces, what it does not have is a question mark.

    >>> one_for_one("naïve\tcode")
    'na?ve code'
    """
    return "".join(letter if letter in LETTERS else " " if letter.isspace() else UNKNOWN for letter in text)


def values(text: str) -> Values:
    r"""The values of a text in the alphabet.

    >>> values("a b\n").tolist()
    [66, 1, 67, 0]
    """
    try:
        found = _VALUE_OF[np.frombuffer(text.encode("ascii"), np.uint8)]
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"text: character {error.start} is {text[error.start]!r}; expected newline and printable ASCII"
        ) from error
    if len(found) and int(found.max()) == 255:
        bad = int((found == 255).argmax())
        raise InvalidInput(f"text: character {bad} is {text[bad]!r}; expected newline and printable ASCII")
    return found


def letters(cells: Values | list[int], hidden: str = "_") -> str:
    """The text of values; the mask, one past the last value, is shown as `hidden`."""
    array = np.asarray(cells, dtype=np.int64)
    table = np.append(_LETTER_OF, ord(hidden)).astype(np.uint8)
    return table[array].tobytes().decode("ascii")
