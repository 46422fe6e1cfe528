"""Whoever comes second is told who is there; a kill leaves nothing locked and a way out nothing behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from factordiff.errors import FileError
from factordiff.locks import Lock

HOLDER = """
import sys
from pathlib import Path
from factordiff.locks import Lock
lock = Lock.of_folder(Path(sys.argv[1]))
lock.take()
print("held", flush=True)
sys.stdin.read()
"""


def test_the_second_is_told_who_holds_it(tmp_path: Path) -> None:
    with Lock.of_folder(tmp_path / "run"):
        assert (tmp_path / "run" / ".lock").exists()
        with pytest.raises(
            FileError, match=r"run: in use by process \d+ on .+ since .+; wait until it has ended"
        ):
            Lock.of_folder(tmp_path / "run").take()
    assert list((tmp_path / "run").iterdir()) == []
    with Lock.of_folder(tmp_path / "run"):
        pass


def test_a_file_is_locked_under_each_of_its_names(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with Lock.of_file(tmp_path / "file"), pytest.raises(FileError, match="link: in use"):
        Lock.of_file(tmp_path / "link").take()
    with Lock.of_file(tmp_path / "file"), Lock.of_file(tmp_path / "other"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["link"]


def test_an_error_leaves_it_free(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), Lock.of_folder(tmp_path):
        raise KeyboardInterrupt
    with Lock.of_folder(tmp_path):
        pass


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(FileError, match=f"in use by process {holder.pid} on "):
        Lock.of_folder(tmp_path).take()
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    assert (tmp_path / ".lock").exists()
    with Lock.of_folder(tmp_path):
        pass


def test_of_many_who_come_at_once_one_is_in(tmp_path: Path) -> None:
    """A lock file that is removed while another waits for it must not let two in."""
    inside, most, refused = 0, 0, 0
    counting = threading.Lock()

    def work() -> None:
        nonlocal inside, most, refused
        for _ in range(300):
            try:
                with Lock.of_folder(tmp_path):
                    with counting:
                        inside += 1
                        most = max(most, inside)
                    with counting:
                        inside -= 1
            except FileError:
                refused += 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert list(tmp_path.iterdir()) == []
