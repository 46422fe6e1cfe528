"""Files: the one way in which they are written, and the one in which those of strangers are read."""

from __future__ import annotations

import contextlib
import os
import stat
import uuid
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO, FileIO
from pathlib import Path

from factordiff.errors import DataError, FactorDiffError, FileError, InvalidInput

TEMPORARY = ".writing-"  # how the name of a file begins until it is whole
MOST_BYTES = 64 * 2**20  # of a file that people write: a hundred times the largest task set
MOST_UNPACKED = 2**30  # of what is packed; weights are not
BYTES_AT_ONCE = 2**16
KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it is there completely or not at all, even if the machine stops half-way."""
    write_together({path: data})


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Write files of which all are whole before the first of them takes its place; folders are made on the way.

    A link is followed: what it points to is replaced. A device or a pipe is written to as such. Whatever else is there
    and is no regular file is refused, and so is one that is protected from writing.
    """
    waiting: list[tuple[Path, Path]] = []
    path = Path()
    try:
        for path, data in contents.items():
            if _is_stream(path):
                _pour(path, data)
            else:
                target = Path(os.path.realpath(path))
                _refuse(_obstacle(target), path)
                target.parent.mkdir(parents=True, exist_ok=True)
                temporary = target.parent / f"{TEMPORARY}{target.name[:40]}-{uuid.uuid4().hex}"
                waiting.append((temporary, target))
                _fill(temporary, target, data)
        while waiting:
            temporary, target = waiting[0]
            os.replace(temporary, target)
            waiting.pop(0)
            _sync_folder(target.parent)
    except OSError as error:
        raise FileError(
            f"{path}: cannot be written ({error.strerror or error}); what was there before is untouched. "
            "Free some space or choose another place"
        ) from error
    finally:
        for temporary, _ in waiting:  # an interruption leaves nothing half written behind
            with contextlib.suppress(OSError):
                temporary.unlink()


def append_whole(path: Path, data: bytes) -> None:
    """Add to the end of a file; if that fails, the file is as long as it was."""
    try:
        with open(path, "ab", buffering=0) as file:
            length = os.fstat(file.fileno()).st_size
            try:
                _write_all(file, data)
                os.fsync(file.fileno())
            except BaseException:
                with contextlib.suppress(OSError):
                    os.ftruncate(file.fileno(), length)
                raise
    except OSError as error:
        raise FileError(
            f"{path}: cannot be written ({error.strerror or error}); what was in it before is untouched. "
            "Free some space and call it again: it goes on"
        ) from error


def check_outputs(files: Mapping[str, Path], inputs: Iterable[Path] = ()) -> None:
    """Refuse, before any work is done, files that could not be written after it; `files` are by their options.

    Nor may one be an input, or another option's file too, whatever links and dots their names are made of.
    """
    taken = {key: f"what is read ({file})" for file in inputs for key in _identities(file)}
    for option, file in files.items():
        obstacle = _obstacle(file)
        if obstacle:
            raise InvalidInput(f"{option}: {file} {obstacle}; choose another file name")
        if not _is_stream(file):
            for key in _identities(file):
                other = taken.setdefault(key, f"the file of {option}")
                if other != f"the file of {option}":
                    raise InvalidInput(f"{option}: {file} is also {other}; choose another file name")


def check_folder(option: str, folder: Path, names: Iterable[str] = (), inputs: Iterable[Path] = ()) -> None:
    """Refuse a folder that is a file, or that could not be made or written into.

    Nor may what is written there under these names be an input.
    """
    try:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.stat(folder)
        place = _nearest(folder.absolute())
        if place.is_dir() and os.access(place, os.W_OK):
            check_outputs({f"{option}, its {name}": folder / name for name in names}, inputs)
            return
        what = "is a file" if folder.is_file() else f"cannot be made or written into at {place}"
    except OSError as error:
        what = f"cannot be made ({error.strerror})"
    raise InvalidInput(f"{option}: {folder} {what}; choose another folder")


def read_regular(path: Path, most: int = MOST_BYTES, error: type[FactorDiffError] = DataError) -> bytes:
    """What is in a file that anybody may have put there: a regular one, of no more than so many bytes.

    A pipe that nobody writes to would be waited for, and a device be read, for ever.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            raise error(f"{path}: is {_kind(status.st_mode)}, expected a regular file")
        with open(descriptor, "rb") as file:
            data = file.read(most + 1)
    except OSError as problem:
        raise error(f"{path}: cannot be read ({problem.strerror})") from problem
    if len(data) > most:
        size = max(status.st_size, len(data))
        raise error(f"{path}: has {size:,} bytes or more, expected at most {most:,}")
    return data


def unpacked(data: bytes, where: object, most: int = MOST_UNPACKED) -> bytes:
    """What gzip packed, of no more than so many bytes: a small file can be made to unpack to any size."""
    parts: list[bytes] = []
    whole = 0
    try:
        for member, end in gzip_members(data, where, most):
            parts.append(member)
            whole = end
    except zlib.error as error:
        raise DataError(f"{where}: damaged, or not packed by gzip ({error})") from None
    if whole < len(data):
        raise DataError(f"{where}: cut short; it was packed by gzip")
    return b"".join(parts)


def gzip_members(
    data: bytes, where: object, most: int = MOST_UNPACKED, most_each: int = MOST_UNPACKED
) -> Iterator[tuple[bytes, int]]:
    """The members of a gzip file that are complete, each with the place where it ends.

    They unpack to at most so many bytes, all together and each.
    """
    place, length, view = 0, 0, memoryview(data)
    while place < len(data):
        stream, parts, before = zlib.decompressobj(wbits=31), [], length
        while not stream.eof:
            piece = stream.unconsumed_tail or view[place : place + BYTES_AT_ONCE]
            if not stream.unconsumed_tail:
                if not piece:
                    return  # cut short
                place += len(piece)
            parts.append(stream.decompress(piece, BYTES_AT_ONCE * 16))
            length += len(parts[-1])
            if length > most:
                raise DataError(f"{where}: unpacks to more than {most:,} bytes, which no file of ours does")
            if length - before > most_each:
                raise DataError(f"{where}: a part unpacks to more than {most_each:,} bytes")
        place -= len(stream.unused_data)
        yield b"".join(parts), place


def read_zip(path: Path, most: int = MOST_UNPACKED) -> BytesIO:
    """A zip file, such as numpy writes, whose members unpack to no more than so many bytes."""
    data = BytesIO(read_regular(path, most))
    try:
        with zipfile.ZipFile(data) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise DataError(f"{path}: not a readable npz file ({error})") from None
    if size > most:
        raise DataError(f"{path}: unpacks to {size:,} bytes, expected at most {most:,}")
    data.seek(0)
    return data


def _is_stream(path: Path) -> bool:
    """Whether it is written to as it is: a device, a pipe, or what this process was given as its own output."""
    if os.path.abspath(path).startswith(("/dev/fd/", "/dev/std", "/proc/self/fd/")):
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def _pour(path: Path, data: bytes) -> None:
    """Into a device or pipe; one that nobody reads from is an error, not something to wait for."""
    with open(os.open(path, os.O_WRONLY | os.O_NONBLOCK), "wb", buffering=0) as stream:
        os.set_blocking(stream.fileno(), True)
        _write_all(stream, data)


def _write_all(file: FileIO, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def _obstacle(path: Path) -> str:
    """Why a file cannot be written there, if that can be told before; empty if nothing stands in the way."""
    if _is_stream(path):
        return ""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        place = _nearest(Path(os.path.realpath(path)).parent)
        if place.is_dir() and os.access(place, os.W_OK):
            return ""
        return f"cannot be written into {place}"
    except OSError as error:
        if isinstance(error, NotADirectoryError):
            return f"cannot be written into {_nearest(path.absolute().parent)}"
        return f"cannot be written ({error.strerror})"
    if not stat.S_ISREG(mode):
        return f"is {_kind(mode)}"
    place = Path(os.path.realpath(path)).parent
    if not os.access(place, os.W_OK):
        return f"cannot be written into {place}"
    return "" if os.access(path, os.W_OK) else "is protected from writing"


def _refuse(obstacle: str, path: Path) -> None:
    if obstacle:
        raise FileError(f"{path}: {obstacle}; nothing was written. Choose another file name")


def _fill(temporary: Path, target: Path, data: bytes) -> None:
    with open(temporary, "xb") as file:
        file.write(data)
        with contextlib.suppress(FileNotFoundError):  # a new file gets what the system gives new files
            os.fchmod(file.fileno(), stat.S_IMODE(os.stat(target).st_mode))
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _identities(path: Path) -> list[object]:
    """What tells a file from others: where it is, and, of one that is there, its number, which hard links share."""
    place = os.path.realpath(path)
    try:
        status = os.stat(place)
    except (OSError, ValueError):
        return [place]
    return [place, (status.st_dev, status.st_ino)]


def _nearest(place: Path) -> Path:
    """The place itself, or the nearest above it that exists."""
    return next(one for one in (place, *place.parents) if os.path.lexists(one))


def _kind(mode: int) -> str:
    return next((name for matches, name in KINDS if matches(mode)), "no file")
