#!/usr/bin/env python3
"""Uses in a hook what it got while it was imported. What is not as on a machine without a network fails the hook."""

import _socket
import asyncio
import concurrent.futures
import errno
import glob
import importlib.resources
import inspect
import os
import pathlib
import queue
import select
import selectors
import socket
import ssl
import threading
import urllib.error
import urllib.request
from os import scandir

import anyio
import anyio.to_interpreter
import certifi
import ops
import requests
import urllib3.util.connection


def number_of(call, *arguments, **options):
    """The error that a call ends with: its type and its number."""
    try:
        call(*arguments, **options)
    except OSError as error:
        return type(error).__name__, error.errno
    raise AssertionError(f"{call} {arguments} worked")


def looks_up():
    """What is asked of the network, in many ways."""
    unknown = ("gaierror", socket.EAI_AGAIN)
    unreachable = ("OSError", errno.ENETUNREACH)
    assert number_of(socket.getaddrinfo, "example.com", 443) == unknown
    assert number_of(_socket.getaddrinfo, "example.com", 443) == unknown
    assert number_of(socket.gethostbyname, "example.com") == unknown
    assert number_of(socket.create_connection, ("example.com", 443), 1) == unknown
    assert number_of(socket.create_connection, ("10.0.0.1", 443), 1) == unreachable
    assert number_of(urllib3.util.connection.create_connection, ("10.0.0.1", 443), 1) == unreachable
    assert socket.getaddrinfo("10.0.0.1", 443, type=socket.SOCK_STREAM)[0][4] == ("10.0.0.1", 443)
    assert socket.gethostbyname("localhost") == "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        assert number_of(datagrams.connect, ("8.8.8.8", 80)) == unreachable
        assert datagrams.getsockname() == ("0.0.0.0", 0)
    with socket.socket() as server:
        assert number_of(server.bind, ("0.0.0.0", 8080)) == ("OSError", errno.EADDRNOTAVAIL)
    try:
        urllib.request.urlopen("http://example.com/")
    except urllib.error.URLError as error:
        assert isinstance(error.reason, socket.gaierror), error
    try:
        requests.get("https://example.com/", timeout=1)
    except requests.ConnectionError:
        return
    raise AssertionError("there is a network")


looks_up()
SOCKET = socket.socket()
NATIVE_SOCKET = _socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
SELECTOR = selectors.DefaultSelector()
POLL = select.poll()
POLL.register(0, select.POLLIN)
POLL.poll(0)
# Asked, and left open.
ENTRIES = os.scandir("/charm")
FIRST = next(ENTRIES)
OTHER_ENTRIES = scandir(os.path.dirname(ssl.__file__))
next(OTHER_ENTRIES)
WALK = os.walk("/charm/venv/certifi")
TOP = next(WALK)
HERE = pathlib.Path(__file__).parent
FILE = open(HERE.parent / "files/note.txt")
FILE.read(4)
# As in a hook.
assert number_of(open, "/charm/src/charm.py", "a") == ("OSError", errno.EROFS)
assert number_of(os.mkdir, "/etc/app") == ("OSError", errno.EROFS)
DESCRIPTOR = os.open("/charm/metadata.yaml", os.O_RDONLY)
# Where things are.
PLACES = {
    "working directory": os.getcwd(),
    "absolute": os.path.abspath("files/note.txt"),
    "resolved": str((HERE / "../files/note.txt").resolve()),
    "found": glob.glob("/charm/files/*.txt")[0],
    "file of code": inspect.getfile(looks_up),
    "certificates": certifi.where(),
    "resource": str(importlib.resources.files("certifi") / "cacert.pem"),
    "clients' certificates": requests.certs.where(),
}
SOURCE = inspect.getsource(number_of)
# Made while it is imported, as libraries do, and used in a hook.
POOL = concurrent.futures.ThreadPoolExecutor(max_workers=2)


class SnapshotCharm(ops.CharmBase):
    def __init__(self, framework: ops.Framework):
        super().__init__(framework)
        framework.observe(self.on.config_changed, self._on_config_changed)

    def _on_config_changed(self, _: ops.EventBase) -> None:
        uses = [looks_up, use_sockets, use_directories, use_files, use_places, use_interpreters, make_directories, run_asyncio]
        uses += [use_pools, use_threads]
        for use in uses:
            use()
        self.unit.status = ops.ActiveStatus(f"{len(uses)} uses")


def use_sockets() -> None:
    assert number_of(SOCKET.connect, ("10.0.0.1", 80)) == ("OSError", errno.ENETUNREACH)
    assert number_of(NATIVE_SOCKET.sendto, b"x", ("10.0.0.1", 53)) == ("OSError", errno.ENETUNREACH)
    SOCKET.close()
    NATIVE_SOCKET.close()
    assert number_of(SOCKET.connect, ("10.0.0.1", 80)) == ("OSError", errno.EBADF)
    POLL.poll(0)
    SELECTOR.select(0)
    select.select([], [], [], 0)


def use_directories() -> None:
    names = {FIRST.name, *(entry.name for entry in ENTRIES)}
    assert {"src", "venv", "metadata.yaml"} <= names, names
    assert FIRST.path == f"/charm/{FIRST.name}" and FIRST.stat()
    assert len(list(OTHER_ENTRIES)) > 1
    OTHER_ENTRIES.close()
    assert TOP[0] == "/charm/venv/certifi" and "cacert.pem" in TOP[2]
    list(WALK)
    assert scandir is not os.scandir or next(scandir("/charm"))


def use_files() -> None:
    try:
        FILE.read()
    except ValueError as error:
        assert "closed file" in str(error)
    else:
        raise AssertionError("a file is open that an interpreter of before had opened")
    assert number_of(os.read, DESCRIPTOR, 1) == ("OSError", errno.EBADF)
    assert (HERE.parent / "files/note.txt").read_text() == "kept in the archive\n"


def use_places() -> None:
    expected = {
        "working directory": "/charm",
        **dict.fromkeys(("absolute", "resolved", "found"), "/charm/files/note.txt"),
        "file of code": "/charm/src/charm.py",
        **dict.fromkeys(("certificates", "resource", "clients' certificates"), "/charm/venv/certifi/cacert.pem"),
    }
    assert PLACES == expected, PLACES
    assert os.getcwd() == "/charm"
    assert certifi.contents().startswith("\n# Issuer") or "BEGIN CERTIFICATE" in certifi.contents()
    context = ssl.create_default_context(cafile=certifi.where())
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert SOURCE == inspect.getsource(number_of) and SOURCE.startswith("def number_of")


def use_interpreters() -> None:
    try:
        anyio.to_interpreter._Worker()
    except Exception as error:
        assert "one interpreter in the sandbox" in str(error), error
    else:
        raise AssertionError("there is another interpreter")


def make_directories() -> None:
    for path in ("/etc/app", "/etc/app/conf.d", "/var/lib/app", "/usr"):
        for make in (
            os.mkdir,
            os.makedirs,
            lambda path: pathlib.Path(path).mkdir(parents=True, exist_ok=True),
            lambda path: pathlib.Path(path).write_text("x"),
            lambda path: os.open(path, os.O_CREAT | os.O_WRONLY),
        ):
            try:
                make(path)
            except OSError as error:
                assert error.errno == errno.EROFS and str(error.filename) == path and path in str(error), error
            else:
                raise AssertionError(f"{path} was made")
        assert number_of(open, path) == ("FileNotFoundError", errno.ENOENT)
    for make in (os.mkdir, os.makedirs, lambda path: open(path, "w")):
        assert number_of(make, "/charm/new") == ("OSError", errno.EROFS)
    # What is above storage exists, as on a machine; beside the storage nothing can be made in it.
    for path in ("/srv", "/srv/scratch"):
        os.makedirs(path, exist_ok=True)
        pathlib.Path(path).mkdir(parents=True, exist_ok=True)
        assert number_of(os.mkdir, path) == number_of(os.makedirs, path) == ("FileExistsError", errno.EEXIST)
        assert os.path.isdir(path) and pathlib.Path(path).is_dir()
    assert number_of(os.makedirs, "/srv/beside") == ("OSError", errno.EROFS)
    for place in ("/tmp", "/srv/scratch"):
        os.makedirs(f"{place}/a/b", exist_ok=True)
        os.makedirs(f"{place}/a/b", exist_ok=True)
        assert number_of(os.mkdir, f"{place}/none/b") == ("FileNotFoundError", errno.ENOENT)


def run_asyncio() -> None:
    async def nothing():
        return None

    coroutine = nothing()
    assert number_of(asyncio.run, coroutine) == ("OSError", errno.EADDRNOTAVAIL)
    coroutine.close()


def use_pools() -> None:
    future = POOL.submit(sum, [1, 2])
    assert future.result(timeout=1) == 3
    with concurrent.futures.ThreadPoolExecutor() as pool:
        assert list(pool.map(abs, [-1, 2])) == [1, 2]
        assert concurrent.futures.wait([future], timeout=1).done == {future}
        assert isinstance(pool.submit(int, "x").exception(), ValueError)


def use_threads() -> None:
    seen, work, done = [], queue.Queue(), threading.Event()

    def consume():
        while True:
            seen.append((work.get(), threading.current_thread() is threading.main_thread()))
            work.task_done()

    threading.Thread(target=consume, daemon=True).start()
    work.put("first")
    work.join()
    thread = threading.Thread(target=lambda: seen.append("second") or done.set())
    thread.start()
    assert thread.is_alive() and done.wait(timeout=1)
    thread.join()
    assert seen == [("first", False), "second"] and not thread.is_alive(), seen
    assert not threading.Event().wait(timeout=0)
    try:
        threading.Event().wait()
    except RuntimeError as error:
        assert "a hook is one thread" in str(error), error
    else:
        raise AssertionError("another hook set it")


if __name__ == "__main__":
    ops.main(SnapshotCharm)
