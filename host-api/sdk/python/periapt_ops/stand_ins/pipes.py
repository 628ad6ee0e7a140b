"""Pipes within the interpreter: WASI has none, and no `os.pipe`.

`ops` makes one for each command whose input is an open file: the thread that reads the file waits for it and for the pipe
at once (`select.select`), so that the end of the command ends the thread.

The ends are numbers that no descriptor reaches. What is written is kept until it is read, without a bound of its own. A
reader that would wait runs the threads that were started first (`threads`). `select.select` knows the ends of pipes, beside
which it takes regular files, which are always ready, and whatever else the real one takes.
"""

from __future__ import annotations

import dataclasses
import errno
import itertools
import os
import select
import stat
from collections.abc import Callable
from typing import Any

from . import threads

#: The numbers of ends: above those of sockets (`network`).
_NUMBERS = itertools.count(1 << 28)


@dataclasses.dataclass
class Pipe:
    """A pipe, by its two numbers."""

    reader: int
    writer: int
    content: bytearray = dataclasses.field(default_factory=bytearray)

    def is_readable(self) -> bool:
        """Whether a reader would not wait: the end counts as well."""
        return bool(self.content) or self.writer not in _ends

    def is_writable(self) -> bool:
        """Whether a writer would not wait: never would one."""
        return True


#: The pipes of the ends that are open.
_ends: dict[int, Pipe] = {}


def install() -> None:
    """Put them in place where there are no pipes."""
    if hasattr(os, "pipe"):
        return
    os.pipe = pipe
    os.read, os.write, os.close = reading(os.read), writing(os.write), closing(os.close)
    select.select = selecting(select.select)


def pipe() -> tuple[int, int]:
    """Make a pipe (`os.pipe`)."""
    made = Pipe(next(_NUMBERS), next(_NUMBERS))
    _ends[made.reader] = _ends[made.writer] = made
    return made.reader, made.writer


def reading(real: Callable[[int, int], bytes]) -> Callable[[int, int], bytes]:
    """`os.read` that knows pipes."""

    def read(fd, length, /):
        found = _ends.get(fd)
        if found is None:
            return real(fd, length)
        if fd != found.reader:
            raise _error(errno.EBADF)
        while not found.is_readable():
            if not threads.run_next():
                threads.wait_for_nobody(None)
        data = bytes(found.content[:length])
        del found.content[:length]
        return data

    return read


def writing(real: Callable[[int, Any], int]) -> Callable[[int, Any], int]:
    """`os.write` that knows pipes."""

    def write(fd, data, /):
        found = _ends.get(fd)
        if found is None:
            return real(fd, data)
        if fd != found.writer:
            raise _error(errno.EBADF)
        if found.reader not in _ends:
            raise _error(errno.EPIPE)
        with memoryview(data) as view:
            found.content += view
            return view.nbytes

    return write


def closing(real: Callable[[int], None]) -> Callable[[int], None]:
    """`os.close` that knows pipes."""

    def close(fd):
        if _ends.pop(fd, None) is None:
            real(fd)

    return close


def selecting(real: Callable[..., tuple[list, list, list]]) -> Callable[..., tuple[list, list, list]]:
    """`select.select` that knows pipes, and waits as long as it takes other threads to fill them."""

    def select(rlist, wlist, xlist, timeout=None, /):
        lists = [list(rlist), list(wlist), list(xlist)]
        if not any(_number(item) in _ends for items in lists for item in items):
            return real(*lists, timeout)
        if timeout is not None and timeout < 0:
            raise ValueError("timeout must be non-negative")
        while not any(ready := _ready(lists, real)):
            if timeout == 0 or not threads.run_next():
                break
        if not any(ready) and timeout != 0:
            # The time passes, and nobody is there to change anything meanwhile.
            threads.wait_for_nobody(timeout)
        return ready

    return select


def _ready(lists: list[list], real: Callable[..., tuple[list, list, list]]) -> tuple[list, list, list]:
    """What a reader, a writer and one that looks for exceptions would not wait for."""
    readers, writers, others = lists
    return (
        [item for item in readers if _is_ready(item, Pipe.is_readable, lambda: real([item], [], [], 0)[0])],
        [item for item in writers if _is_ready(item, Pipe.is_writable, lambda: real([], [item], [], 0)[1])],
        [item for item in others if _is_ready(item, lambda pipe: False, lambda: real([], [], [item], 0)[2])],
    )


def _is_ready(item: Any, of_pipe: Callable[[Pipe], bool], otherwise: Callable[[], list]) -> bool:
    number = _number(item)
    found = _ends.get(number)
    if found is not None:
        return of_pipe(found)
    return stat.S_ISREG(os.fstat(number).st_mode) or bool(otherwise())


def _number(item: Any) -> int:
    return item if isinstance(item, int) else item.fileno()


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
