"""Sockets on paths: WASI has none, and `ops` speaks to Pebble through one.

An exchange carries one HTTP request to the sandbox, which knows containers by name, and its response back. `connect`
fails as it does on a machine where nobody listens: that is how `Container.can_connect` learns it.
"""

from __future__ import annotations

import errno
import os
import posixpath

from .. import host

#: Where Juju puts the socket of a container's Pebble: `CONTAINERS/NAME/pebble.socket`.
CONTAINERS = "/charm/containers"


class Exchange:
    """What is said through a stream socket to a container's Pebble: one request and its response at a time."""

    def __init__(self, container: str):
        self._container = container
        self._sent = bytearray()
        self._received = b""

    @classmethod
    def connect(cls, address) -> Exchange:
        """Learn whether a process listens at a path; the error says why not, as the kernel would."""
        path = os.fsdecode(address)
        directory, name = posixpath.split(path)
        parent, container = posixpath.split(directory)
        if parent != CONTAINERS or name != "pebble.socket":
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        host.current().pebble_connect(container)
        return cls(container)

    def send(self, data: bytes) -> None:
        """Gather the request."""
        self._sent += data

    def receive(self, most: int) -> bytes:
        """Make the request, if there is one, and return what is left of the response; nothing at its end."""
        if self._sent:
            request = parse_request(bytes(self._sent))
            self._sent.clear()
            self._received = write_response(host.current().pebble_request(self._container, request))
        data, self._received = self._received[:most], self._received[most:]
        return data


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
