"""Leads the suite's client through the sockets and threads that stand in for WASI's, as in a hook: a plugin of pytest.

In a hook the sandbox opens the streams. Here real sockets stand in their place: to the pod's socket, whatever the path that
the client names, and to ports of the loopback.
"""

import importlib
import os
import select
import socket as real
import ssl  # noqa: F401 (before its sockets are replaced)
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../host-api/sdk/python"))

from periapt_ops import host  # noqa: E402
from periapt_ops.stand_ins import network, sockets, threads  # noqa: E402

_REAL_SOCKET = real.socket
_POD = os.path.join(os.environ["PEBBLE"], ".pebble.socket")


class Stream:
    """A stream of the sandbox's, over a real socket."""

    def __init__(self, family, address):
        self._socket = _REAL_SOCKET(family)
        self._socket.connect(address)
        self._socket.setblocking(False)

    def read(self, most, milliseconds):
        ready, _, _ = select.select([self._socket], [], [], _seconds(milliseconds))
        return self._socket.recv(most) if ready else None

    def write(self, data, milliseconds):
        _, ready, _ = select.select([], [self._socket], [], _seconds(milliseconds))
        try:
            return self._socket.send(data) if ready else 0
        except BlockingIOError:
            return 0

    def shutdown(self):
        self._socket.shutdown(real.SHUT_WR)

    def close(self):
        self._socket.close()


class Host:
    """The sandbox, as far as the client needs it."""

    def run_tool(self, name, arguments, stdin):
        raise RuntimeError(f"{name}: there are no hook tools here")

    def connect_container(self, container):
        return Stream(real.AF_UNIX, _POD)

    def connect_port(self, port):
        return Stream(real.AF_INET, ("127.0.0.1", port))


def _seconds(milliseconds):
    return None if milliseconds is None else milliseconds / 1000


def _replace():
    sys.modules["_socket"] = network.socket_module()
    del sys.modules["socket"]
    importlib.import_module("socket")
    threads.install()
    host.use(Host())
    sockets.Stream.to_path = classmethod(lambda cls, path: cls(host.current().connect_container(path)))


_replace()
