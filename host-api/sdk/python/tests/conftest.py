"""A host in place of the sandbox's."""

import importlib
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
        self.pebble = None

    def run_tool(self, name, arguments, stdin):
        self.calls.append((name, arguments, stdin))
        answer = self.answers.get(name, b"")
        if callable(answer):
            answer = answer(arguments, stdin)
        if isinstance(answer, host.ToolResult):
            return answer
        return host.ToolResult(0, answer, b"")

    def pebble_connect(self, container):
        if self.pebble is None:
            raise ConnectionRefusedError(container)

    def pebble_request(self, container, request):
        return self.pebble(container, request)


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
