"""Threads that run one after the other, as WASI's CPython cannot start threads.

A started thread runs when another thread waits: for its end (`join`), or on a condition (`Condition.wait`, and so `Event`,
`Semaphore` and `queue.Queue`), or for bytes from a workload (`sockets`). The end of the hook waits for all threads but daemons. The thread then runs to its end, within the
call that waits. Real threads may run in this order, too.

No thread runs beside the waiting one. When no thread is left to run, a wait without a timeout could never end: it raises
`RuntimeError`. In a daemon it ends that daemon, as the end of the process would.
"""

from __future__ import annotations

import contextvars
import threading
import time

STUCK = "nothing can end this wait: a hook is one thread, and no other is left to run"

#: Threads that were started and have not run, the first started first.
_waiting: list[threading.Thread] = []

#: The attribute of a started thread that says whether it has run.
_HAS_ENDED = "_periapt_has_ended"

_real_is_alive = threading.Thread.is_alive


class _Ended(SystemExit):
    """Ends a daemon whose wait cannot end."""


def install() -> None:
    """Replaces the standard library's methods."""
    threading.Thread.start = start
    threading.Thread.join = join
    threading.Thread.is_alive = is_alive
    threading.Condition.wait = wait


def finish() -> None:
    """Runs all threads but daemons, as the end of a process waits for them."""
    while others := [thread for thread in _waiting if not thread.daemon]:
        _run(others[0])


def run_next() -> bool:
    """Runs the thread that was started first and has not run, and tells whether there was one."""
    if not _waiting:
        return False
    _run(_waiting[0])
    return True


def start(self: threading.Thread) -> None:
    """Starts a thread (`Thread.start`): it runs when another one waits."""
    if not self._initialized:
        raise RuntimeError("thread.__init__() not called")
    if self._started.is_set():
        raise RuntimeError("threads can only be started once")
    self._started.set()
    setattr(self, _HAS_ENDED, False)
    _waiting.append(self)


def join(self: threading.Thread, timeout: float | None = None) -> None:
    """Waits for a thread (`Thread.join`): runs it, unless it has run."""
    if not self._initialized:
        raise RuntimeError("Thread.__init__() not called")
    if not self._started.is_set():
        raise RuntimeError("cannot join thread before it is started")
    if self is threading.current_thread():
        raise RuntimeError("cannot join current thread")
    if self in _waiting:
        _run(self)
    elif is_alive(self):
        # It waits for the caller, further up the stack.
        wait_for_nobody(timeout)


def is_alive(self: threading.Thread) -> bool:
    """Tells whether a thread has started and not ended (`Thread.is_alive`)."""
    has_ended = getattr(self, _HAS_ENDED, None)
    return _real_is_alive(self) if has_ended is None else not has_ended


def wait(self: threading.Condition, timeout: float | None = None) -> bool:
    """Waits on a condition (`Condition.wait`): runs started threads until one notifies the caller."""
    if not self._is_owned():
        raise RuntimeError("cannot wait on un-acquired lock")
    waiter = threading.Lock()
    waiter.acquire()
    self._waiters.append(waiter)
    saved = self._release_save()
    woken = False
    try:
        while not (woken := waiter.acquire(False)) and _waiting:
            _run(_waiting[0])
        if not woken:
            wait_for_nobody(timeout)
        return woken
    finally:
        self._acquire_restore(saved)
        if not woken:
            self._waiters.remove(waiter)


def _run(thread: threading.Thread) -> None:
    """Runs a thread to its end, as the current one."""
    _waiting.remove(thread)
    own = threading.get_ident()
    caller = threading.current_thread()
    thread._set_ident()
    threading._active[own] = thread
    try:
        contextvars.Context().run(thread.run)
    except SystemExit:
        pass
    except BaseException:
        thread._invoke_excepthook(thread)
    finally:
        threading._active[own] = caller
        setattr(thread, _HAS_ENDED, True)


def wait_for_nobody(timeout: float | None) -> None:
    """Ends a wait that no thread is left to end."""
    if threading.current_thread().daemon:
        raise _Ended
    if timeout is None:
        raise RuntimeError(STUCK)
    time.sleep(max(timeout, 0))
