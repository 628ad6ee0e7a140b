"""Pools of threads: `concurrent.futures.ThreadPoolExecutor`, without threads.

`submit` runs the function at once and returns a future that is done. The standard library's pool has workers that wait for work
for ever, and `threads` cannot end such workers.
"""

from __future__ import annotations

import concurrent.futures.thread
import contextvars
from collections.abc import Callable
from concurrent.futures import Executor, Future
from concurrent.futures.thread import BrokenThreadPool
from typing import Any


def install() -> None:
    """Replaces the standard library's pool."""
    concurrent.futures.thread.ThreadPoolExecutor = ThreadPoolExecutor
    concurrent.futures.ThreadPoolExecutor = ThreadPoolExecutor


class ThreadPoolExecutor(Executor):
    """A pool of threads with the caller as its one worker."""

    def __init__(
        self,
        max_workers: int | None = None,
        thread_name_prefix: str = "",
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
    ):
        if max_workers is not None and max_workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        self._max_workers = max_workers or 1
        self._prepare = None if initializer is None else lambda: initializer(*initargs)
        self._broken = False
        self._shutdown = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        """Runs a function, and returns a future with its result or its error."""
        if self._broken:
            raise BrokenThreadPool("A thread initializer failed, the thread pool is not usable anymore")
        if self._shutdown:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future = Future()
        future.set_running_or_notify_cancel()
        try:
            self._begin()
            result = contextvars.Context().run(fn, *args, **kwargs)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accepts no more functions. All earlier ones have run."""
        self._shutdown = True

    def _begin(self) -> None:
        """Runs the initializer, once."""
        prepare, self._prepare = self._prepare, None
        if prepare is None:
            return
        try:
            prepare()
        except BaseException as error:
            self._broken = True
            raise BrokenThreadPool("A thread initializer failed, the thread pool is not usable anymore") from error
