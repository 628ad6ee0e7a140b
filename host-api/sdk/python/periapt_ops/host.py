"""The way to the sandbox: what a hook may ask of it. A test puts a host of its own in its place."""

from __future__ import annotations

import dataclasses
import errno
from typing import Protocol


@dataclasses.dataclass(frozen=True)
class ToolResult:
    """What a hook tool leaves behind, as a process would."""

    exit_code: int
    stdout: bytes
    stderr: bytes


class Stream(Protocol):
    """An open stream to a workload. A broken one raises OSError."""

    def read(self, most: int, milliseconds: int | None) -> bytes | None:
        """Return at most so many bytes, once there is one; nothing at the end, and None once the time is over."""

    def write(self, data: bytes, milliseconds: int | None) -> int:
        """Send as many bytes as the other end takes, and return their number; 0 once the time is over."""

    def shutdown(self) -> None:
        """End the writing."""

    def close(self) -> None:
        """End the stream."""


class Host(Protocol):
    """What the sandbox offers."""

    def run_tool(self, name: str, arguments: list[str], stdin: bytes | None) -> ToolResult:
        """Run one hook tool to its end."""

    def connect_container(self, container: str) -> Stream:
        """Open a stream to the Pebble of a container; raise FileNotFoundError or ConnectionRefusedError if nobody listens."""

    def connect_port(self, port: int) -> Stream:
        """Open a stream to a port of the unit's workloads; raise ConnectionRefusedError if nobody listens."""


class _NoHost:
    """While the component is built nobody is there to answer, and nothing may depend on an answer."""

    def run_tool(self, name: str, arguments: list[str], stdin: bytes | None) -> ToolResult:
        raise RuntimeError(f"{name}: there are no hook tools while the charm is imported")

    def connect_container(self, container: str) -> Stream:
        raise ConnectionRefusedError(errno.ECONNREFUSED, "there is no Pebble while the charm is imported")

    def connect_port(self, port: int) -> Stream:
        raise ConnectionRefusedError(errno.ECONNREFUSED, "there are no workloads while the charm is imported")


_current: Host = _NoHost()


def current() -> Host:
    """The host of the hook that runs."""
    return _current


def use(host: Host) -> None:
    """Put a host in place."""
    global _current
    _current = host


def use_none() -> None:
    """Take the host away, as it is while a component is built."""
    use(_NoHost())
