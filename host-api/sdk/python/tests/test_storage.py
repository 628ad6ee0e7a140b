"""StoredState and deferred events in the hook's commit."""

import json

import ops
import ops.charm
import ops.framework
import ops.storage
import pytest

from periapt_ops import storage


@pytest.fixture
def kept(tools):
    """Juju's state, behind the tools."""
    state = {}

    def get(arguments, stdin):
        assert arguments == ["--format=json"]
        return json.dumps(state).encode()

    def put(arguments, stdin):
        assert arguments == ["--file", "-"]
        state.update(json.loads(stdin))
        return b""

    tools.answers = {"state-get": get, "state-set": put, "state-delete": lambda arguments, _: state.pop(arguments[0]) and b""}
    return state


def test_what_was_kept_is_there_in_the_next_hook(kept):
    values = [{"a": [1, "x", None, True]}, (1, 2), {"s": {1, 2}}, b"\x00\xff", {1: "one"}, "plain", 1.5, {}]
    first = storage.HookStorage("/charm/.unit-state.db")
    for number, value in enumerate(values):
        first.save_snapshot(f"C/{number}", value)
    first.commit()
    second = storage.HookStorage()
    assert [second.load_snapshot(f"C/{number}") for number in range(len(values))] == values
    assert set(second.list_snapshots()) == {f"C/{number}" for number in range(len(values))}


def test_nothing_is_written_before_the_commit_and_only_what_changed(kept, tools):
    kept["C/same"] = "1"
    hook = storage.HookStorage()
    hook.save_snapshot("C/same", 1)
    hook.save_snapshot("C/event", {})
    hook.drop_snapshot("C/event")
    hook.save_notice("C/event", "C", "_on")
    hook.drop_notice("C/event", "C", "_on")
    hook.commit()
    assert [name for name, _, _ in tools.calls] == ["state-get"]
    hook.save_snapshot("C/same", 2)
    hook.commit()
    hook.commit()
    assert [name for name, _, _ in tools.calls] == ["state-get", "state-set"]
    assert kept == {"C/same": "2"}


def test_what_was_dropped_is_gone(kept):
    kept["C/old"] = "1"
    hook = storage.HookStorage()
    hook.drop_snapshot("C/old")
    hook.drop_snapshot("C/never")
    hook.commit()
    assert kept == {}
    with pytest.raises(ops.storage.NoSnapshotError):
        hook.load_snapshot("C/old")


def test_notices_keep_their_order_and_belong_to_their_events(kept):
    hook = storage.HookStorage()
    notices = [("C/a", "C", "_one"), ("C/b", "C", "_two"), ("C/a", "C", "_three")]
    for notice in notices:
        hook.save_notice(*notice)
    hook.commit()
    later = storage.HookStorage()
    assert list(later.notices()) == notices
    assert list(later.notices("C/a")) == [notices[0], notices[2]]
    later.drop_notice(*notices[0])
    later.commit()
    assert list(storage.HookStorage().notices()) == notices[1:]


def test_a_framework_works_on_it(kept, monkeypatch):
    monkeypatch.setattr(ops.storage, "SQLiteStorage", storage.HookStorage)

    class Charm(ops.charm.CharmBase):
        stored = ops.framework.StoredState()

    def framework():
        meta = ops.charm.CharmMeta.from_yaml("name: c")
        return ops.framework.Framework(ops.storage.SQLiteStorage("x"), ".", meta, None)

    one = framework()
    charm = Charm(one)
    charm.stored.set_default(pairs={"a": [1, 2]}, seen={"x"})
    one.commit()
    again = Charm(framework())
    assert (dict(again.stored.pairs), set(again.stored.seen)) == ({"a": [1, 2]}, {"x"})
