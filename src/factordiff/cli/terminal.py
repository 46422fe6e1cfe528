"""Standard output that may fail: a full disk behind it must not cost what goes to other files."""

from __future__ import annotations

import os
import sys
from typing import Any, TextIO


class LenientStream:
    """A stream that is written to as long as it takes something; what failed first is kept to be said at the end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.failure: OSError | None = None

    def write(self, text: str) -> int:
        """As the stream does, if it can."""
        self._try(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """As the stream does, if it can."""
        self._try(self._stream.flush)

    def _try(self, act: Any) -> None:
        if self.failure is None:
            try:
                act()
            except OSError as error:
                self.failure = error
                discard(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def discard(stream: TextIO) -> None:
    """Send what a stream still holds nowhere, so that nothing fails once more when the process ends."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, ValueError):  # a stream that is no file of the system's
        pass


def escape_what_cannot_be_encoded() -> None:
    """A name that the terminal's encoding lacks, or a lone surrogate, is escaped where it would be an error."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
