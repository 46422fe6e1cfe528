"""What an xz file unpacks to, read once from front to end: never more bytes than was said, and few at a time."""

from __future__ import annotations

import lzma

from factordiff.errors import DataError
from factordiff.files import MOST_UNPACKED

MOST_AT_ONCE = 2**20  # bytes that one read may ask for
MOST_MEMORY = 2**27  # bytes that the decoder may take: twice what packing at the highest setting needs


class XzStream:
    """A file for `tarfile`: it reads, and goes forward. A small xz file can be made to unpack to any size."""

    def __init__(self, packed: bytes, where: object, most: int = MOST_UNPACKED) -> None:
        self._packed, self._where, self._most = packed, where, most
        self._decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, MOST_MEMORY)
        self._place = 0

    def __repr__(self) -> str:
        return f"XzStream({self._where}, {self._place:,} bytes read)"

    def tell(self) -> int:
        """How many bytes were read or passed over."""
        return self._place

    def seek(self, place: int) -> int:
        """Go forward; what lies between is unpacked and forgotten."""
        if place < self._place:
            raise EOFError(f"a part at byte {place:,} lies before the one that names it")
        self.check_room(place - self._place)
        while self._place < place and self.read(min(place - self._place, MOST_AT_ONCE)):
            pass
        return self._place

    def read(self, size: int) -> bytes:
        """So many bytes, or fewer at the end."""
        # Asked for at once are parts of records, which we read in pieces, and names, which tarfile does not.
        if size > MOST_AT_ONCE:
            raise DataError(
                f"{self._where}: a name in it has {size:,} bytes, expected at most {MOST_AT_ONCE:,}; nothing was "
                "unpacked"
            )
        parts: list[bytes] = []
        while size > 0 and not self._decoder.eof:
            if self._decoder.needs_input and not self._packed:
                raise EOFError("cut short")
            parts.append(self._decoder.decompress(self._packed, size))
            self._packed = b""  # the decoder keeps what it did not unpack yet
            size -= len(parts[-1])
            self._place += len(parts[-1])
            if self._place > self._most:
                raise self._too_large()
        return b"".join(parts)

    def check_room(self, size: int) -> None:
        """Refuse so many bytes more before the first of them is unpacked, where they are too many."""
        if self._place + size > self._most:
            raise self._too_large()

    def finish(self) -> None:
        """Read what is left, at whose end the sums are that tell damage."""
        while self.read(MOST_AT_ONCE):
            pass

    def _too_large(self) -> DataError:
        return DataError(f"{self._where}: unpacks to more than {self._most:,} bytes; nothing was unpacked")
