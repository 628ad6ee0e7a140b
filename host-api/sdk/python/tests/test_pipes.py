"""Pipes within the interpreter, over the stand-ins, as `ops` uses them."""

import os
import select
import threading

import pytest

from periapt_ops.stand_ins import pipes, threads

REAL_READ = os.read


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch):
    """The stand-ins, until the test is over."""
    monkeypatch.delattr(os, "pipe")
    for module, name in ((os, "read"), (os, "write"), (os, "close"), (select, "select")):
        # Put back afterwards, whatever `install` puts there.
        monkeypatch.setattr(module, name, getattr(module, name))
    for name in ("start", "join", "is_alive"):
        monkeypatch.setattr(threading.Thread, name, getattr(threads, name))
    monkeypatch.setattr(threads, "_waiting", [])
    monkeypatch.setattr(pipes, "_ends", {})
    pipes.install()


def test_what_is_written_is_read_in_order_up_to_the_end():
    reader, writer = os.pipe()
    assert os.write(writer, b"one") == 3 and os.write(writer, memoryview(b"two")) == 3
    assert os.read(reader, 4) == b"onet"
    os.close(writer)
    assert os.read(reader, 100) == b"wo" and os.read(reader, 100) == b""
    os.close(reader)


def test_ends_that_are_closed_or_the_wrong_ones_are_errors_of_the_system():
    reader, writer = os.pipe()
    for call in (lambda: os.read(writer, 1), lambda: os.write(reader, b"x")):
        with pytest.raises(OSError, match="Bad file descriptor"):
            call()
    os.close(reader)
    with pytest.raises(BrokenPipeError):
        os.write(writer, b"x")
    os.close(writer)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.close(writer)
    assert pipes._ends == {}


def test_real_descriptors_are_read_written_closed_and_waited_for_as_before(tmp_path):
    path = tmp_path / "file"
    number = os.open(path, os.O_CREAT | os.O_RDWR)
    assert os.write(number, b"data") == 4
    assert select.select([number], [number], [], 0) == ([number], [number], [])
    os.lseek(number, 0, os.SEEK_SET)
    assert os.read(number, 10) == b"data"
    os.close(number)
    with pytest.raises(OSError):
        REAL_READ(number, 1)


def test_a_reader_that_waits_runs_the_thread_that_writes():
    reader, writer = os.pipe()
    threading.Thread(target=os.write, args=(writer, b"late")).start()
    assert os.read(reader, 10) == b"late"
    with pytest.raises(RuntimeError, match="nothing can end this wait"):
        os.read(reader, 10)


def test_a_file_and_a_pipe_are_waited_for_at_once(tmp_path):
    path = tmp_path / "input"
    path.write_text("text")
    reader, writer = os.pipe()
    with open(path) as file:
        assert select.select([reader, file], [], []) == ([file], [], [])
        os.write(writer, b"x")
        assert select.select([reader, file], [writer], [reader]) == ([reader, file], [writer], [])
    with pytest.raises(ValueError, match="closed file"):
        select.select([reader, file], [], [])


def test_waiting_for_an_empty_pipe_runs_threads_and_ends_with_its_time():
    reader, writer = os.pipe()
    assert select.select([reader], [], [], 0) == ([], [], [])
    assert select.select([reader], [], [], 0.01) == ([], [], [])
    with pytest.raises(ValueError, match="non-negative"):
        select.select([reader], [], [], -1)
    threading.Thread(target=os.close, args=(writer,)).start()
    # The end can be read, too.
    assert select.select([reader], [], []) == ([reader], [], [])
    other, _ = os.pipe()
    with pytest.raises(RuntimeError, match="nothing can end this wait"):
        select.select([other], [], [])
