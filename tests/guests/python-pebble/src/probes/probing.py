"""What probes are made of."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import ops

#: A probe: calls of a container's, and a directory in it that is the probe's own and empty.
Probe = Callable[[ops.Container, str], None]

#: The seconds that a workload may take.
PATIENCE = 60


class Probes(dict[str, Probe]):
    """The probes of a module; as a decorator, adds one."""

    def __call__(self, probe: Probe) -> Probe:
        self[probe.__name__.replace("_", "-")] = probe
        return probe


def equal(found: Any, expected: Any) -> None:
    """Compare, and tell both."""
    if found != expected:
        raise AssertionError(f"{found!r}, and not {expected!r}")


def contains(found: str, expected: str) -> None:
    """Look for a text, and tell both."""
    if expected not in found:
        raise AssertionError(f"{found!r}, without {expected!r}")


def until(what: str, holds: Callable[[], Any]) -> Any:
    """Wait for what is true, and return it."""
    due = time.monotonic() + PATIENCE
    while not (found := holds()):
        if time.monotonic() > due:
            raise AssertionError(f"still not so: {what}")
        time.sleep(0.05)
    return found


class Raised:
    """The error that a block raised, once it has."""

    error: Any = None


@contextlib.contextmanager
def raises(kind: type[BaseException], /, **attributes: Any) -> Iterator[Raised]:
    """Expect a block to raise an error with these attributes."""
    raised = Raised()
    try:
        yield raised
    except kind as error:
        raised.error = error
        for name, expected in attributes.items():
            if (found := getattr(error, name)) != expected:
                raise AssertionError(f"{name} is {found!r}, and not {expected!r}: {error!r}") from error
        return
    raise AssertionError(f"no {kind.__name__}")


def text_of(container: ops.Container, path: str) -> str:
    """Return a file's text; none of a file that is not there."""
    try:
        with container.pull(path) as file:
            return file.read()
    except ops.pebble.PathError as error:
        if error.kind != "not-found":
            raise
        return ""
