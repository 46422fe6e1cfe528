"""A stranger's text, made harmless before it reaches a terminal, a picture or a sentence."""

from __future__ import annotations

LONGEST = 80


def printable(text: str, most: int = LONGEST) -> str:
    r"""The text with everything escaped that would steer a terminal or cannot be encoded, and cut if it is long.

    >>> printable("\x1b[31mred\ud800")
    '\\x1b[31mred\\ud800'
    >>> printable("a" * 100, 10)
    'aaaaaaa...'
    """
    shown = "".join(one if one.isprintable() else repr(one)[1:-1] for one in text[: most + 1])
    return shown if len(text) <= most and len(shown) <= most else f"{shown[: max(0, most - 3)]}..."


def visible(text: str) -> str:
    r"""The text, as long as it is: a character that would steer a terminal is one that stands for it.

    >>> visible("a\x1b[0m\tb\n")
    'a␛[0m\tb\n'
    """
    return "".join(one if one.isprintable() or one in "\t\r\n" else _symbol(one) for one in text)


def _symbol(one: str) -> str:
    return chr(0x2400 + ord(one)) if ord(one) < 32 else "\ufffd"
