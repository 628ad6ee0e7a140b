"""The way to the sandbox: what a hook may ask of it. A test puts a host of its own in its place."""

from __future__ import annotations

import dataclasses
from typing import Protocol


@dataclasses.dataclass(frozen=True)
class ToolResult:
    """What a hook tool leaves behind, as a process would."""

    exit_code: int
    stdout: bytes
    stderr: bytes


@dataclasses.dataclass(frozen=True)
class Request:
    """One HTTP request to the Pebble of a container."""

    method: str
    #: Path and query.
    target: str
    headers: list[tuple[str, str]]
    body: bytes


@dataclasses.dataclass(frozen=True)
class Response:
    """Pebble's answer."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


class Host(Protocol):
    """What the sandbox offers."""

    def run_tool(self, name: str, arguments: list[str], stdin: bytes | None) -> ToolResult:
        """Run one hook tool to its end."""

    def pebble_connect(self, container: str) -> None:
        """Return if the Pebble of a container listens; raise FileNotFoundError or ConnectionRefusedError if not."""

    def pebble_request(self, container: str, request: Request) -> Response:
        """Make one request to the Pebble of a container."""


class _NoHost:
    """While the component is built nobody is there to answer, and nothing may depend on an answer."""

    def run_tool(self, name: str, arguments: list[str], stdin: bytes | None) -> ToolResult:
        raise RuntimeError(f"{name}: there are no hook tools while the charm is imported")

    def pebble_connect(self, container: str) -> None:
        raise ConnectionRefusedError("there is no Pebble while the charm is imported")

    def pebble_request(self, container: str, request: Request) -> Response:
        raise ConnectionRefusedError("there is no Pebble while the charm is imported")


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
