"""A host in place of the sandbox's."""

import _thread
import errno
import importlib
import select
import socket as real_socket
import subprocess
import sys

import pytest

from periapt_ops import host
from periapt_ops.stand_ins import network, processes


class FakeHost:
    """Answers tools from a table, and keeps what was asked."""

    def __init__(self):
        self.calls = []
        self.answers = {}
        #: What serves a connection to a workload: it is given the name or port, and the other end of a socket.
        self.workload = None

    def run_tool(self, name, arguments, stdin):
        self.calls.append((name, arguments, stdin))
        answer = self.answers.get(name, b"")
        if callable(answer):
            answer = answer(arguments, stdin)
        if isinstance(answer, host.ToolResult):
            return answer
        return host.ToolResult(0, answer, b"")

    def connect_container(self, container):
        return self._connect(container)

    def connect_port(self, port):
        return self._connect(port)

    def _connect(self, target):
        if self.workload is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, str(target))
        ours, theirs = real_socket.socketpair()
        real_thread(self.workload, target, theirs)
        return FakeStream(ours)


class FakeStream:
    """The sandbox's stream, over a real socket."""

    def __init__(self, ours):
        self._ours = ours

    def read(self, most, milliseconds):
        ready, _, _ = select.select([self._ours], [], [], None if milliseconds is None else milliseconds / 1000)
        return self._ours.recv(most) if ready else None

    def write(self, data, milliseconds):
        _, ready, _ = select.select([], [self._ours], [], None if milliseconds is None else milliseconds / 1000)
        self._ours.setblocking(False)
        return self._ours.send(data) if ready else 0

    def shutdown(self):
        self._ours.shutdown(real_socket.SHUT_WR)

    def close(self):
        self._ours.close()


def real_thread(workload, target, theirs):
    """Serves a connection beside the test, whatever stands in for threads."""

    def serve():
        with theirs:
            workload(target, theirs)

    _thread.start_new_thread(serve, ())


@pytest.fixture
def fake():
    """The host of the hook that runs, until the test is over."""
    fake = FakeHost()
    host.use(fake)
    yield fake
    host.use_none()


@pytest.fixture
def tools(fake, monkeypatch):
    """The same, with hook tools in the place of processes."""
    monkeypatch.setattr(subprocess, "Popen", processes.HookToolProcess)
    return fake


@pytest.fixture
def socket(monkeypatch):
    """The standard library's `socket`, over the stand-in for its native part."""
    monkeypatch.setitem(sys.modules, "_socket", network.socket_module())
    monkeypatch.delitem(sys.modules, "socket")
    return importlib.import_module("socket")
