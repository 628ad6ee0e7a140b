"""StoredState and deferred events, kept in the hook's own commit.

`ops` keeps them in a file, `.unit-state.db`, or in Juju's state (`use_juju_for_storage`). The file is written before
what the hook asked for is committed: a hook that is killed in between would find its own notes of what never happened.
So whatever a charm asks for, they are kept by state-get and state-set, which are part of the commit.

All is read with the first question and written with the last word, so that an event that comes and goes within a hook
costs nothing. Values that JSON can say exactly are kept as JSON, all others (tuples, sets, bytes) as the YAML that `ops`
itself keeps in Juju's state.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import ops.storage
import yaml

_Notice = tuple[str, str, str]


def install() -> None:
    """Put it in the place of both kinds of storage."""
    ops.storage.SQLiteStorage = HookStorage
    ops.storage.JujuStorage = HookStorage


class HookStorage:
    """The storage of `ops`' framework, for one hook."""

    #: The key under which notices are kept, as in Juju's state.
    NOTICES = "#notices#"

    def __init__(self, place: object = None):
        """`place`: the file or the backend that there would be elsewhere."""
        self._loaded: dict[str, str] | None = None
        self._changed: dict[str, str | None] = {}
        self._listed: list[_Notice] | None = None

    def save_snapshot(self, handle_path: str, snapshot_data: Any) -> None:
        """Keep what an object is to be made of again; it must be of simple types."""
        self._put(handle_path, encode(snapshot_data))

    def load_snapshot(self, handle_path: str) -> Any:
        """Return what was kept; NoSnapshotError if nothing was."""
        text = self._texts().get(handle_path)
        if text is None:
            raise ops.storage.NoSnapshotError(handle_path)
        return decode(text)

    def drop_snapshot(self, handle_path: str) -> None:
        """Forget what was kept, if anything was."""
        self._put(handle_path, None)

    def list_snapshots(self) -> Iterator[str]:
        """Yield the handles of all that is kept."""
        yield from [key for key in self._texts() if key != self.NOTICES]

    def save_notice(self, event_path: str, observer_path: str, method_name: str) -> None:
        """Remember that an observer is still to be told of an event."""
        self._notices().append((event_path, observer_path, method_name))

    def drop_notice(self, event_path: str, observer_path: str, method_name: str) -> None:
        """Forget that it is."""
        notices, notice = self._notices(), (event_path, observer_path, method_name)
        # Nothing to forget is no error, as with a file.
        notices[:] = [other for other in notices if other != notice]

    def notices(self, event_path: str | None = None) -> Iterator[_Notice]:
        """Yield who is to be told, of one event or of all, in order."""
        yield from [notice for notice in self._notices() if not event_path or notice[0] == event_path]

    def commit(self) -> None:
        """Hand over what differs from what was read; it happens when the hook is committed."""
        kept = self._texts(with_changes=False)
        if self._listed is not None:
            self._put(self.NOTICES, json.dumps(self._listed) if self._listed else None)
        written = {key: text for key, text in self._changed.items() if text is not None and kept.get(key) != text}
        if written:
            # JSON is YAML, which `state-set` reads.
            _run("state-set", "--file", "-", input=json.dumps(written))
        for key, text in self._changed.items():
            if text is None and key in kept:
                _run("state-delete", key)
        self._loaded, self._changed = self._texts(), {}

    def close(self) -> None:
        """Do nothing: there is nothing open."""

    def _texts(self, *, with_changes: bool = True) -> dict[str, str]:
        if self._loaded is None:
            self._loaded = json.loads(_run("state-get", "--format=json") or "{}") or {}
        if not with_changes:
            return self._loaded
        both = {**self._loaded, **self._changed}
        return {key: text for key, text in both.items() if text is not None}

    def _put(self, key: str, text: str | None) -> None:
        self._changed[key] = text

    def _notices(self) -> list[_Notice]:
        if self._listed is None:
            text = self._texts().get(self.NOTICES)
            self._listed = [] if text is None else [tuple(notice) for notice in decode(text) or []]
        return self._listed


def encode(value: Any) -> str:
    """A value as text: JSON where that says exactly the same, YAML where it does not."""
    if _is_exact(value):
        return json.dumps(value)
    return yaml.dump(value, Dumper=ops.storage._SimpleDumper, default_flow_style=None)


def decode(text: str) -> Any:
    """The value of a text."""
    try:
        return json.loads(text)
    except ValueError:
        return yaml.load(text, Loader=ops.storage._SimpleLoader)


def _is_exact(value: Any) -> bool:
    """Whether JSON gives this back as it is."""
    if value is None or type(value) in (str, int, float, bool):
        return True
    if type(value) is list:
        return all(map(_is_exact, value))
    return type(value) is dict and all(type(key) is str and _is_exact(item) for key, item in value.items())


def _run(*command: str, input: str | None = None) -> str:
    done = subprocess.run(command, input=input, check=True, stdout=subprocess.PIPE, encoding="utf-8")
    return done.stdout
