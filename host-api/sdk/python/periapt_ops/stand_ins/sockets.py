"""Connected sockets: streams of bytes to the unit's own workloads, which the sandbox opens.

A path of a container's Pebble (`CONTAINERS/NAME/pebble.socket`) and a port of the loopback lead to workloads; nothing else
leads anywhere. Where nobody listens, `connect` fails as on a machine where the process has not started: that is how
`Container.can_connect` learns it.

A hook is one thread. A receiver that would wait runs the threads that were started first (`threads`): they may send what
the other end waits for. A receiver or sender that waits reads what has come for all other streams, too, so that an end
that sends on one and waits on another goes on.
"""

from __future__ import annotations

import errno
import os
import posixpath
import time
import weakref

from .. import host
from . import threads

#: Where Juju puts the socket of a container's Pebble: `CONTAINERS/NAME/pebble.socket`.
CONTAINERS = "/charm/containers"

#: The bytes of one call to the sandbox.
PIECE = 64 << 10

#: The bytes of a stream that are read ahead while another one waits: a command may write that much to its output before
#: its errors end. The rest stays with the workload.
AHEAD = 32 << 20

#: The milliseconds after which a stream that waits looks first at what has come for others, and at most.
PAUSES = (20, 400)

#: The streams that are open.
_open: weakref.WeakSet[Stream] = weakref.WeakSet()


class Stream:
    """A stream of bytes to a workload."""

    def __init__(self, stream: host.Stream):
        self._stream = stream
        self._received = bytearray()
        self._is_at_end = False
        _open.add(self)

    @classmethod
    def to_path(cls, address) -> Stream:
        """Connect to a path; the error says why not, as the kernel would."""
        path = os.fsdecode(address)
        directory, name = posixpath.split(path)
        parent, container = posixpath.split(directory)
        if parent != CONTAINERS or name != "pebble.socket":
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return cls(host.current().connect_container(container))

    @classmethod
    def to_port(cls, port: int) -> Stream:
        """Connect to a port of the unit's own workloads."""
        return cls(host.current().connect_port(port))

    def send(self, data, timeout: float | None) -> None:
        """Send all of it."""
        rest, due, pause = memoryview(data).cast("B"), _due(timeout), PAUSES[0]
        while rest:
            written = self._stream.write(bytes(rest[:PIECE]), min(pause, _milliseconds(due)))
            rest = rest[written:]
            if not written:
                came = [stream._read_ahead() for stream in list(_open)]
                pause = PAUSES[0] if any(came) else min(2 * pause, PAUSES[1])
                _check(due, timeout)

    def receive(self, most: int, timeout: float | None, *, keeps: bool = False) -> bytes:
        """Return what has come, at least one byte; nothing at the end. `keeps` leaves it for the next call."""
        due, pause = _due(timeout), PAUSES[0]
        while not self._received and not self._is_at_end and most:
            if self._read(0) or (timeout != 0.0 and threads.run_next()):
                continue
            _check(due, timeout)
            others = [stream for stream in _open if stream is not self and not stream._is_at_end]
            if not others:
                self._read(None if due is None else _milliseconds(due))
            elif not self._read(min(pause, _milliseconds(due))):
                came = [stream._read_ahead() for stream in others]
                pause = PAUSES[0] if any(came) else min(2 * pause, PAUSES[1])
        data = bytes(self._received[:most])
        if not keeps:
            del self._received[:most]
        return data

    def shutdown(self) -> None:
        """End the sending."""
        self._stream.shutdown()

    def close(self) -> None:
        """End it."""
        _open.discard(self)
        self._stream.close()

    def _read(self, milliseconds: int | None) -> bool:
        """Read what comes within a time, and tell whether anything did, the end included."""
        data = self._stream.read(PIECE, milliseconds)
        if data is None:
            return False
        self._is_at_end = not data
        self._received += data
        return True

    def _read_ahead(self) -> bool:
        """Read what has come, up to a bound, and tell whether anything did. An error is for the next receiver."""
        came = False
        try:
            while not self._is_at_end and len(self._received) < AHEAD and self._read(0):
                came = True
        except OSError:
            pass
        return came


def _due(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout


def _milliseconds(due: float | None) -> int:
    """The time that is left, one millisecond at least and an hour at most."""
    return 3_600_000 if due is None else max(1, min(3_600_000, int((due - time.monotonic()) * 1000)))


def _check(due: float | None, timeout: float | None) -> None:
    """Raise what a socket raises whose time is over."""
    if timeout == 0.0:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    if due is not None and time.monotonic() >= due:
        raise TimeoutError("timed out")
