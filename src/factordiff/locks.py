"""An advisory lock: who works in a folder or on a file says so there, and a second one leaves.

The system lets go of a lock when its process ends, however it ends: what a kill leaves behind is a file that locks
nothing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import sys
import time
from io import FileIO
from pathlib import Path
from types import ModuleType

from factordiff.errors import FileError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows has none, and goes without
    fcntl = None

NAME = ".lock"
UNSUPPORTED = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
LONGEST = 500  # of what is written about who holds it


class Lock:
    """A lock to be held `with` it, or taken and left; taken twice by one object it is taken once."""

    def __init__(self, path: Path, what: str) -> None:
        self.path, self.what = path, what
        self._file: FileIO | None = None

    @classmethod
    def of_folder(cls, folder: Path) -> Lock:
        """The lock of a folder, in it."""
        return cls(Path(os.path.realpath(folder)) / NAME, str(folder))

    @classmethod
    def of_file(cls, file: Path) -> Lock:
        """The lock of a file, beside it."""
        target = Path(os.path.realpath(file))
        return cls(target.parent / f".{target.name[:200]}{NAME}", str(file))

    def __repr__(self) -> str:
        return f"Lock({self.what}, {'free' if self._file is None else 'held'})"

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, *_: object) -> None:
        self.leave()

    def take(self) -> None:
        """Hold it from now on; held by another, it is an error that names who."""
        if self._file is not None or fcntl is None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            while self._file is None:
                self._file = self._taken()
        except OSError as error:
            raise FileError(
                f"{self.what}: cannot be written into ({error.strerror or error}); free some space or choose another "
                "place"
            ) from error

    def _taken(self) -> FileIO | None:
        """The lock file, held; None if its holder removed it meanwhile, so that it locks nothing."""
        assert fcntl is not None
        file = FileIO(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666), "r+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            there = os.stat(self.path)
        except BlockingIOError:
            file.seek(0)
            who = (file.read(LONGEST) or b"").decode(errors="replace").strip() or "another process"
            file.close()
            raise FileError(
                f"{self.what}: in use by {who}; wait until it has ended, or choose another place"
            ) from None
        except FileNotFoundError:
            file.close()
            return None
        except OSError as error:
            file.close()
            if error.errno in UNSUPPORTED:  # a file system without locks: go without, as on Windows
                return FileIO(os.devnull, "rb")
            raise
        if (there.st_ino, there.st_dev) != (os.fstat(file.fileno()).st_ino, os.fstat(file.fileno()).st_dev):
            file.close()
            return None
        with contextlib.suppress(OSError):  # for people to read: on a full disk it is held all the same
            file.truncate(0)
            file.seek(0)
            file.write(_holder().encode(errors="replace")[:LONGEST])
        return file

    def leave(self) -> None:
        """Let go of it, and leave nothing behind."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self.path.unlink()  # while it is still held: nobody else can have taken it
            self._file.close()
            self._file = None


def _holder() -> str:
    command = " ".join([Path(sys.argv[0] or "python").name, *sys.argv[1:]])
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    return f"process {os.getpid()} on {socket.gethostname()} since {since} ({command})"
