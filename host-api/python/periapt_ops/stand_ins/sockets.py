"""Sockets on paths: WASI has none, and `ops` speaks to Pebble through one.

A stand-in for `socket.socket(socket.AF_UNIX)` carries one HTTP exchange to the sandbox, which knows containers by
name. `connect` fails as it does on a machine where nobody listens: that is how `Container.can_connect` learns it. All
other sockets are WASI's own, which the sandbox refuses.
"""

import errno
import io
import os
import posixpath
import socket

from .. import host

#: Where Juju puts the socket of a container's Pebble: `CONTAINERS/NAME/pebble.socket`.
CONTAINERS = "/charm/containers"


def install() -> None:
    """Put it in place, beside the real sockets."""
    if hasattr(socket, "AF_UNIX"):
        return
    # A number that WASI gives to no family of its own.
    socket.AF_UNIX = 0x7FFF
    real = socket.socket

    class Socket(real):
        """`socket.socket`, for families that WASI knows and for paths."""

        def __new__(cls, family=-1, type=-1, proto=-1, fileno=None):
            if family == socket.AF_UNIX:
                return PebbleSocket()
            return real.__new__(cls, family, type, proto, fileno)

    socket.socket = Socket


class PebbleSocket:
    """A stream socket to a container's Pebble, good for one request and its response."""

    family = property(lambda self: socket.AF_UNIX)
    type = property(lambda self: socket.SOCK_STREAM)

    def __init__(self):
        self._container = None
        self._sent = bytearray()

    def connect(self, address):
        """Learn whether somebody listens; the error says why not, as the kernel would."""
        path = os.fsdecode(address)
        directory, name = posixpath.split(path)
        parent, container = posixpath.split(directory)
        if parent != CONTAINERS or name != "pebble.socket":
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        host.current().pebble_connect(container)
        self._container = container

    def sendall(self, data, flags=0):
        """Gather the request."""
        if self._container is None:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        self._sent += data

    def send(self, data, flags=0):
        """Gather the request, all of it at once."""
        self.sendall(data)
        return len(data)

    def makefile(self, mode="rb", buffering=None, **options):
        """Make the request, and return the response as a file to read."""
        response = host.current().pebble_request(self._container, parse_request(bytes(self._sent)))
        self._sent.clear()
        return io.BytesIO(write_response(response))

    def settimeout(self, timeout):
        """Do nothing: the sandbox has its own time limits."""

    def setsockopt(self, *option):
        """Do nothing: there is no socket to set it on."""

    def shutdown(self, how):
        """Do nothing: an exchange is over when it is answered."""

    def close(self):
        """Forget where it led."""
        self._container = None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


def parse_request(content: bytes) -> host.Request:
    """One HTTP/1.1 request, as `http.client` writes it."""
    head, _, body = content.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    if any(name.lower() == "transfer-encoding" for name, _ in headers):
        body = _joined(body)
    return host.Request(method, target, headers, body)


def write_response(response: host.Response) -> bytes:
    """A response, as `http.client` reads it."""
    framing = ("content-length", "transfer-encoding", "connection")
    headers = [(name, value) for name, value in response.headers if name.lower() not in framing]
    headers += [("Content-Length", str(len(response.body))), ("Connection", "close")]
    head = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return f"HTTP/1.1 {response.status} \r\n{head}\r\n".encode("latin-1") + response.body


def _joined(chunked: bytes) -> bytes:
    """The body that was sent in chunks."""
    body = bytearray()
    while True:
        size, _, chunked = chunked.partition(b"\r\n")
        length = int(size.split(b";")[0], 16)
        if length == 0:
            return bytes(body)
        body += chunked[:length]
        chunked = chunked[length + 2 :]
