"""`rpds` in Python: collections that do not change, of which `jsonschema` makes new ones.

What is native in it is their sharing of what they have in common; here each is a copy, which is as good for the few
entries that schemas have.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, KeysView, Mapping, Set, ValuesView

__all__ = ["HashTrieMap", "HashTrieSet", "ItemsView", "KeysView", "List", "Queue", "Stack", "ValuesView"]


class HashTrieMap(Mapping):
    """A dictionary that does not change."""

    __slots__ = ("_entries",)

    def __init__(self, value=(), /, **entries):
        self._entries = {**dict(value), **entries}

    @classmethod
    def convert(cls, value, /):
        return value if isinstance(value, cls) else cls(value)

    @classmethod
    def fromkeys(cls, keys, value=None, /):
        return cls(dict.fromkeys(keys, value))

    def __getitem__(self, key):
        return self._entries[key]

    def __iter__(self):
        return iter(self._entries)

    def __len__(self):
        return len(self._entries)

    def __hash__(self):
        return hash(frozenset(self._entries.items()))

    def __repr__(self):
        return f"HashTrieMap({self._entries!r})"

    def insert(self, key, value):
        return HashTrieMap({**self._entries, key: value})

    def remove(self, key):
        entries = dict(self._entries)
        del entries[key]
        return HashTrieMap(entries)

    def discard(self, key):
        return self.remove(key) if key in self._entries else self

    def update(self, *more, **entries):
        done = dict(self._entries)
        for one in (*more, entries):
            done.update(one)
        return HashTrieMap(done)

    def __reduce__(self):
        return HashTrieMap, (self._entries,)


class HashTrieSet(Set):
    """A set that does not change."""

    __slots__ = ("_entries",)

    def __init__(self, value: Iterable = (), /):
        self._entries = dict.fromkeys(value)

    def __contains__(self, item):
        return item in self._entries

    def __iter__(self):
        return iter(self._entries)

    def __len__(self):
        return len(self._entries)

    def __hash__(self):
        return hash(frozenset(self._entries))

    def __repr__(self):
        return f"HashTrieSet({{{', '.join(map(repr, self._entries))}}})"

    def insert(self, item):
        return HashTrieSet([*self._entries, item])

    def remove(self, item):
        if item not in self._entries:
            raise KeyError(item)
        return HashTrieSet(one for one in self._entries if one != item)

    def discard(self, item):
        return self.remove(item) if item in self._entries else self

    def update(self, *more):
        return HashTrieSet([*self._entries, *(item for one in more for item in one)])

    def union(self, other):
        return self.update(other)

    def intersection(self, other):
        return HashTrieSet(item for item in self._entries if item in other)

    def difference(self, other):
        return HashTrieSet(item for item in self._entries if item not in other)

    def symmetric_difference(self, other):
        return HashTrieSet(self ^ HashTrieSet(other))

    def __reduce__(self):
        return HashTrieSet, (list(self._entries),)


class _Row:
    """What lists and queues have in common."""

    __slots__ = ("_items",)

    def __init__(self, *items):
        # One iterable, or the items themselves.
        self._items = tuple(items[0]) if len(items) == 1 and isinstance(items[0], Iterable) else items

    def __iter__(self):
        return iter(self._items)

    def __len__(self):
        return len(self._items)

    def __eq__(self, other):
        return type(self) is type(other) and self._items == other._items

    def __hash__(self):
        return hash(self._items)

    def __repr__(self):
        return f"{type(self).__name__}([{', '.join(map(repr, self._items))}])"

    def __reduce__(self):
        return type(self), (self._items,)

    def _first(self):
        if not self._items:
            raise IndexError(f"empty {type(self).__name__.lower()} has no first element")
        return self._items[0]


class List(_Row):
    """A list that grows at its front."""

    __slots__ = ()

    @property
    def first(self):
        return self._first()

    @property
    def rest(self):
        return List(self._items[1:])

    def push_front(self, item):
        return List((item, *self._items))

    def drop_first(self):
        self._first()
        return self.rest

    def __reversed__(self):
        return List(self._items[::-1])


class Queue(_Row):
    """A queue, which grows at its end."""

    __slots__ = ()

    @property
    def peek(self):
        return self._first()

    @property
    def is_empty(self):
        return not self._items

    def enqueue(self, item):
        return Queue((*self._items, item))

    def dequeue(self):
        self._first()
        return Queue(self._items[1:])


class Stack(_Row):
    """A stack."""

    __slots__ = ()

    def peek(self):
        return self._first()

    def push(self, item):
        return Stack((item, *self._items))

    def pop(self):
        self._first()
        return Stack(self._items[1:])
