"""StoredState and deferred events as `ops` keeps them in Juju's state: the keys and texts of state-get and state-set."""

from __future__ import annotations

from typing import Any

import ops.storage
import yaml
from scenario._ops_main_mock import EVENT_REGEX, STORED_STATE_REGEX
from scenario.state import DeferredEvent, State, StoredState

_NOTICES = ops.storage.JujuStorage.NOTICE_KEY


class _Texts:
    """The backend of `ops`' own storage, over texts."""

    def __init__(self, texts: dict[str, str]):
        self.texts = texts

    def set(self, key: str, value: Any) -> None:
        self.texts[key] = yaml.dump(value, Dumper=ops.storage._SimpleDumper, default_flow_style=None)

    def get(self, key: str) -> Any:
        # JSON, which Periapt's charms write where it says the same, is YAML.
        return yaml.load(self.texts[key], Loader=ops.storage._SimpleLoader)

    def delete(self, key: str) -> None:
        self.texts.pop(key, None)


def texts_of(state: State) -> dict[str, str]:
    """What a charm finds stored."""
    texts: dict[str, str] = {}
    storage = ops.storage.JujuStorage(_Texts(texts))  # type: ignore[arg-type]
    for event in state.deferred:
        storage.save_notice(event.handle_path, event.owner, event.observer)
        storage.save_snapshot(event.handle_path, event.snapshot_data)
    for stored in state.stored_states:
        storage.save_snapshot(stored._handle_path, dict(stored.content))
    return texts


def read(texts: dict[str, str]) -> tuple[list[DeferredEvent], frozenset[StoredState]]:
    """Deferred events and stored states of what a charm stored."""
    storage = ops.storage.JujuStorage(_Texts(dict(texts)))  # type: ignore[arg-type]
    deferred = []
    for handle, owner, observer in storage.notices():
        data = storage.load_snapshot(handle) if handle in texts else {}
        deferred.append(DeferredEvent(handle, owner, observer, data))
    stored = set()
    for key in texts:
        if key != _NOTICES and not EVENT_REGEX.match(key) and (found := STORED_STATE_REGEX.match(key)):
            stored.add(StoredState(content=storage.load_snapshot(key), **found.groupdict()))
    return deferred, frozenset(stored)
