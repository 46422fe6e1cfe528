"""Files are written whole or not at all, where they were asked for and nowhere else; what strangers put there ends."""

from __future__ import annotations

import errno
import gzip
import os
import stat
import threading
import time
from pathlib import Path

import pytest

from factordiff import files
from factordiff.errors import CheckpointError, DataError, FileError, InvalidInput
from factordiff.files import (
    append_whole,
    check_folder,
    check_outputs,
    gzip_members,
    read_regular,
    unpacked,
    write_together,
    write_whole,
)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_folders_are_made_and_nothing_else_is_left(tmp_path: Path) -> None:
    write_whole(tmp_path / "a" / "b" / "file", b"content")
    assert (tmp_path / "a" / "b" / "file").read_bytes() == b"content"
    assert names(tmp_path / "a" / "b") == ["file"]


def test_permissions_are_those_of_the_file_that_is_replaced(tmp_path: Path) -> None:
    write_whole(tmp_path / "new", b"")
    (tmp_path / "plain").write_bytes(b"")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode
    (tmp_path / "new").chmod(0o640)
    write_whole(tmp_path / "new", b"again")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "file")
    for content in (b"first", b"second"):  # the first time it points to nothing
        write_whole(tmp_path / "link", content)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "there" / "file").read_bytes() == content
    assert names(tmp_path / "there") == ["file"]


def test_devices_are_written_to_and_stay_devices(tmp_path: Path) -> None:
    null = os.stat("/dev/null")
    write_whole(Path("/dev/null"), b"gone")
    (tmp_path / "link").symlink_to("/dev/null")
    write_whole(tmp_path / "link", b"gone")
    assert os.stat("/dev/null").st_rdev == null.st_rdev
    assert (tmp_path / "link").is_symlink()
    with pytest.raises(FileError, match="/dev/full: cannot be written"):
        write_whole(Path("/dev/full"), b"x")
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_a_pipe_is_written_to_and_one_without_a_reader_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    begun = time.monotonic()
    with pytest.raises(FileError, match="pipe: cannot be written"):
        write_whole(pipe, b"nobody hears")
    assert time.monotonic() - begun < 5
    data = bytes(range(256)) * 4096  # more than a pipe holds
    heard: list[bytes] = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_bytes()))
    reader.start()
    while not heard:
        try:
            write_whole(pipe, data)
            break
        except FileError:  # the reader has not opened it yet
            time.sleep(0.01)
    reader.join(10)
    assert heard == [data]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_folders_and_protected_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileError, match="is a folder; nothing was written"):
        write_whole(tmp_path, b"")
    (tmp_path / "mine").write_bytes(b"old")
    (tmp_path / "mine").chmod(0o444)
    allowed = os.access
    monkeypatch.setattr(  # root may write anywhere
        files.os, "access", lambda path, mode: Path(path).name != "mine" and allowed(path, mode)
    )
    with pytest.raises(FileError, match="is protected from writing"):
        write_whole(tmp_path / "mine", b"new")
    assert (tmp_path / "mine").read_bytes() == b"old"


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_a_full_disk_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "file").write_bytes(b"old")
    monkeypatch.setattr(files.os, name, full)
    with pytest.raises(FileError, match=r"No space left on device.*untouched\. Free some space"):
        write_whole(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_an_interruption_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "file").write_bytes(b"old")
    monkeypatch.setattr(files.os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "file", b"new")
    assert names(tmp_path) == ["file"]


def test_of_files_that_belong_together_none_is_replaced_before_all_are_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    write_together({one: b"1", two: b"2"})
    calls: list[int] = []
    monkeypatch.setattr(files.os, "fsync", lambda descriptor: calls.append(1) if not calls else full())
    with pytest.raises(FileError, match="two: cannot be written"):
        write_together({one: b"3", two: b"4"})
    assert (one.read_bytes(), two.read_bytes()) == (b"1", b"2")
    assert names(tmp_path) == ["one", "two"]


def test_two_writers_of_one_file_never_tear_it(tmp_path: Path) -> None:
    """With one temporary name for both, one reader in two hundred saw half of a file."""
    file, ends = tmp_path / "file", threading.Event()
    contents = [bytes([65 + who]) * 50_000 for who in range(2)]
    write_whole(file, contents[0])

    def write(content: bytes) -> None:
        while not ends.is_set():
            write_whole(file, content)

    writers = [threading.Thread(target=write, args=(content,)) for content in contents]
    for writer in writers:
        writer.start()
    torn = sum(file.read_bytes() not in contents for _ in range(3_000))
    ends.set()
    for writer in writers:
        writer.join()
    assert torn == 0
    assert names(tmp_path) == ["file"]


def test_what_cannot_be_appended_leaves_the_file_as_long_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")
    append_whole(file, b"+new")
    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(FileError, match="No space left on device"):
        append_whole(file, b"+more")
    assert file.read_bytes() == b"old+new"


def test_what_stands_in_the_way_is_said_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for place, what in (
        (tmp_path, "is a folder"),
        (tmp_path / "file" / "x", "cannot be written into"),
        (tmp_path / ("n" * 300), "File name too long"),
        (tmp_path / "loop", "Too many levels of symbolic links"),
    ):
        with pytest.raises(InvalidInput, match=f"--out: .*{what}"):
            check_outputs({"--out": place})
    check_outputs(
        {"--out": tmp_path / "new" / "deep", "--trace": Path("/dev/null"), "--x": Path("/dev/null")}
    )
    for place, what in (
        (tmp_path / "file", "is a file"),
        (tmp_path / "file" / "x", "cannot be made or written into"),
        (tmp_path / ("n" * 300), "File name too long"),
    ):
        with pytest.raises(InvalidInput, match=f"--out: .*{what}"):
            check_folder("--out", place)
    check_folder("--out", tmp_path / "new" / "deep")


def test_collisions_are_found_whatever_the_names_are_made_of(tmp_path: Path) -> None:
    (tmp_path / "input").write_bytes(b"precious")
    (tmp_path / "here").symlink_to(tmp_path)
    (tmp_path / "alias").symlink_to(tmp_path / "input")
    os.link(tmp_path / "input", tmp_path / "hard")
    for spelled in ("input", "here/input", "here/../" + tmp_path.name + "/input", "alias", "hard"):
        with pytest.raises(InvalidInput, match=r"--out: .* is also what is read"):
            check_outputs({"--out": tmp_path / spelled}, [tmp_path / "input"])
    with pytest.raises(InvalidInput, match=r"--trace: .* is also the file of --out"):
        check_outputs({"--out": tmp_path / "new", "--trace": tmp_path / "here" / "new"})


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def test_only_regular_files_are_read(tmp_path: Path, pipe: Path) -> None:
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "zeros").symlink_to(tmp_path / "zero")
    begun = time.monotonic()
    for path, what in ((pipe, "a pipe"), (tmp_path / "zeros", "a device"), (tmp_path, "a folder")):
        with pytest.raises(DataError, match=f"is {what}, expected a regular file"):
            read_regular(path)
    assert time.monotonic() - begun < 5
    with pytest.raises(CheckpointError, match="cannot be read"):
        read_regular(tmp_path / "none", error=CheckpointError)


def test_no_more_is_read_than_was_expected(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 101)
    with pytest.raises(DataError, match="has 101 bytes or more, expected at most 100"):
        read_regular(tmp_path / "large", 100)
    assert read_regular(tmp_path / "large", 101) == b"x" * 101


def test_packed_files_unpack_to_no_more_than_was_expected() -> None:
    bomb = gzip.compress(bytes(50_000_000))
    assert len(bomb) < 60_000
    with pytest.raises(DataError, match="bomb: unpacks to more than 1,000,000 bytes"):
        unpacked(bomb, "bomb", 1_000_000)
    with pytest.raises(DataError, match="unpacks to more than"):
        unpacked(gzip.compress(b"x" * 600) * 2, "two", 1_000)
    assert unpacked(gzip.compress(b"x" * 600) * 2, "two", 1_200) == b"x" * 1_200
    with pytest.raises(DataError, match="cut short"):
        unpacked(gzip.compress(b"x" * 600)[:-1], "half")
    with pytest.raises(DataError, match="not packed by gzip"):
        unpacked(b"plain", "plain")


def test_members_are_found_in_time_that_grows_with_the_file_alone() -> None:
    one = gzip.compress(os.urandom(100))
    data = one * 20_000
    begun = time.monotonic()
    found = list(gzip_members(data, "many"))
    assert time.monotonic() - begun < 10  # with a copy of the rest for each it took minutes
    assert [end for _, end in found] == [len(one) * number for number in range(1, 20_001)]
    assert [end for _, end in gzip_members(data[:-1], "cut")] == [end for _, end in found[:-1]]
