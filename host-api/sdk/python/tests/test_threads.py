"""Threads and pools of threads, over the stand-ins: all runs in the test's own thread."""

import concurrent.futures
import concurrent.futures.thread
import contextvars
import queue
import threading

import pytest

from periapt_ops.stand_ins import pools, threads


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch):
    """The stand-ins, until the test is over."""
    for name in ("start", "join", "is_alive"):
        monkeypatch.setattr(threading.Thread, name, getattr(threads, name))
    monkeypatch.setattr(threading.Condition, "wait", threads.wait)
    monkeypatch.setattr(threads, "_waiting", [])
    monkeypatch.setattr(concurrent.futures, "ThreadPoolExecutor", pools.ThreadPoolExecutor)


def started(target, *args, daemon=False):
    thread = threading.Thread(target=target, args=args, daemon=daemon)
    thread.start()
    return thread


def test_a_thread_runs_when_it_is_joined_and_once():
    ran = []
    thread = started(lambda: ran.append(threading.current_thread()))
    assert ran == [] and thread.is_alive()
    thread.join(timeout=0)
    thread.join()
    assert ran == [thread] and not thread.is_alive()
    assert threading.current_thread() is threading.main_thread() and threading.main_thread().is_alive()
    with pytest.raises(RuntimeError, match="only be started once"):
        thread.start()


def test_a_thread_that_was_not_started_and_the_current_one_cannot_be_joined():
    with pytest.raises(RuntimeError, match="before it is started"):
        threading.Thread().join()
    with pytest.raises(RuntimeError, match="current thread"):
        threading.current_thread().join()


def test_waiting_for_an_event_runs_threads_until_one_sets_it():
    ran, event = [], threading.Event()
    started(ran.append, 1)
    started(event.set)
    started(ran.append, 2)
    assert event.wait()
    assert ran == [1]
    threads.finish()
    assert ran == [1, 2]


def test_a_queue_and_its_daemon_work_until_the_queue_is_empty():
    done, left, work = [], [], queue.Queue()

    def consume():
        try:
            while True:
                done.append(work.get())
                work.task_done()
        finally:
            left.append(True)

    worker = started(consume, daemon=True)
    for number in range(3):
        work.put(number)
    work.join()
    assert done == [0, 1, 2]
    assert left == [True] and not worker.is_alive()


def test_the_end_of_a_hook_waits_for_threads_and_not_for_daemons():
    ran = []
    started(ran.append, "daemon", daemon=True)
    started(lambda: started(ran.append, "second").join() or ran.append("first"))
    threads.finish()
    assert ran == ["second", "first"]


def test_to_wait_for_what_nobody_does_is_an_error_and_a_timeout_ends_it():
    with pytest.raises(RuntimeError, match="nothing can end this wait"):
        threading.Event().wait()
    with pytest.raises(queue.Empty):
        queue.Queue().get(timeout=0)
    condition = threading.Condition()
    with condition:
        assert not condition.wait(timeout=0)
        # Nobody is left to be woken.
        assert list(condition._waiters) == []
    with pytest.raises(RuntimeError, match="un-acquired"):
        condition.wait()


def test_two_threads_that_wait_for_each_other_are_told_and_not_waited_for(monkeypatch):
    told = []
    monkeypatch.setattr(threading, "excepthook", lambda arguments: told.append(str(arguments.exc_value)))
    first = threading.Thread(target=lambda: second.join())
    second = threading.Thread(target=lambda: first.join())
    first.start()
    second.start()
    first.join()
    assert told == [threads.STUCK]
    assert not first.is_alive() and not second.is_alive()


def test_what_a_thread_raises_is_told_and_ends_nobody_else(monkeypatch):
    told = []
    monkeypatch.setattr(threading, "excepthook", lambda arguments: told.append((arguments.thread, arguments.exc_type)))
    thread = started(lambda: 1 / 0)
    thread.join()
    assert told == [(thread, ZeroDivisionError)]


def test_a_thread_has_a_context_of_its_own():
    variable = contextvars.ContextVar("variable", default="none")
    variable.set("caller's")
    seen = []
    started(lambda: seen.append(variable.get())).join()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        seen.append(pool.submit(variable.get).result())
    assert seen == ["none", "none"]


def test_a_pool_runs_at_submit_and_in_order():
    ran = []
    with concurrent.futures.ThreadPoolExecutor(max_workers=4, thread_name_prefix="x") as pool:
        future = pool.submit(ran.append, 1)
        assert ran == [1] and future.done() and future.result() is None
        assert list(pool.map(divmod, [7, 8], [2, 3])) == [(3, 1), (2, 2)]
        failed = pool.submit(int, "x")
        with pytest.raises(ValueError, match="invalid literal"):
            failed.result(timeout=1)
        done, rest = concurrent.futures.wait([future, failed])
        assert (len(done), len(rest)) == (2, 0)
        assert set(concurrent.futures.as_completed([future, failed])) == {future, failed}
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(print)


def test_a_pool_prepares_its_worker_once_and_is_broken_where_that_fails():
    prepared = []
    pool = concurrent.futures.ThreadPoolExecutor(initializer=prepared.append, initargs=(1,))
    assert [pool.submit(len, prepared).result() for _ in range(2)] == [1, 1]
    broken = concurrent.futures.ThreadPoolExecutor(initializer=lambda: 1 / 0)
    with pytest.raises(concurrent.futures.thread.BrokenThreadPool):
        broken.submit(print).result()
    with pytest.raises(concurrent.futures.thread.BrokenThreadPool):
        broken.submit(print)
    for wrong in ({"max_workers": 0}, {"initializer": 1}):
        with pytest.raises((ValueError, TypeError)):
            concurrent.futures.ThreadPoolExecutor(**wrong)
