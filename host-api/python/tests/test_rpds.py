"""The collections that jsonschema stands on."""

import sys

import pytest

from periapt_ops.packing import native


@pytest.fixture
def rpds(monkeypatch):
    monkeypatch.syspath_prepend(str(native.REPLACED["rpds-py"]))
    monkeypatch.delitem(sys.modules, "rpds", raising=False)
    import rpds

    yield rpds
    del sys.modules["rpds"]


def test_each_change_is_a_collection_of_its_own(rpds):
    first = rpds.HashTrieMap({"a": 1})
    second = first.insert("b", 2).update({"c": 3})
    assert (dict(first), dict(second), dict(second.remove("a"))) == ({"a": 1}, {"a": 1, "b": 2, "c": 3}, {"b": 2, "c": 3})
    assert first == rpds.HashTrieMap(a=1) and first == {"a": 1} and hash(first) == hash(rpds.HashTrieMap(a=1))
    with pytest.raises(KeyError):
        first.remove("b")
    assert first.discard("b") is first

    some = rpds.HashTrieSet(["a"])
    assert (set(some.insert("b")), set(some.update(["c"], ["d"])), set(some)) == ({"a", "b"}, {"a", "c", "d"}, {"a"})
    assert "a" in some and len(some.discard("x")) == 1

    row = rpds.List([2, 3]).push_front(1)
    assert (list(row), row.first, list(row.rest), row == rpds.List(1, 2, 3)) == ([1, 2, 3], 1, [2, 3], True)
    queue = rpds.Queue([1]).enqueue(2)
    assert (queue.peek, list(queue.dequeue()), rpds.Queue().is_empty) == (1, [2], True)
    with pytest.raises(IndexError):
        rpds.Queue().dequeue()
