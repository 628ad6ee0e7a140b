"""Validators of what is one of certain values, or of a class."""

from __future__ import annotations

import enum
import math
import re

from .errors import fail
from .scalars import option
from .state import LAX


def listed(values):
    """`'a', 'b' or 'c'`"""
    shown = [repr(value) for value in values]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


class Literal:
    """Takes certain values."""

    name = "literal"

    def __init__(self, schema, build):
        self.expected = list(schema["expected"])
        self.shown = listed(self.expected)
        self.name = f"literal[{','.join(map(repr, self.expected))}]"

    def validate(self, value, state):
        for item in self.expected:
            if type(item) is type(value) and item == value:
                return item
        for item in self.expected:
            # A member of an enumeration may be named by its value.
            if isinstance(item, enum.Enum) and (value == item or value == item.value) and not isinstance(value, bool):
                state.floor(LAX)
                return item
            if isinstance(value, enum.Enum) and isinstance(item, str) and isinstance(value, str) and value.value == item:
                return item
            if state.mode == "strings" and str(item) == value:
                return item
        raise fail("literal_error", value, expected=self.shown)


class EnumMember:
    """Takes members of an enumeration, and their values."""

    name = "enum"

    def __init__(self, schema, build):
        self.cls, self.members = schema["cls"], list(schema["members"])
        self.sub_type = schema.get("sub_type")
        self.strict = option(schema, build.config, "strict", default=False)
        self.shown = listed([member.value for member in self.members])
        self.name = f"{self.sub_type}-enum[{self.cls.__name__}]" if self.sub_type else f"enum[{self.cls.__name__}]"

    def validate(self, value, state):
        if isinstance(value, self.cls):
            return value
        if state.mode == "python" and state.is_strict(self.strict):
            raise fail("is_instance_of", value, **{"class": self.cls.__name__})
        state.floor(LAX)
        for member in self.members:
            if member.value == value and isinstance(value, bool) == isinstance(member.value, bool):
                return member
        given = value
        for candidate in self._converted(value, state):
            given = value if isinstance(value, str) else candidate
            for member in self.members:
                if member.value == candidate:
                    return member
        # What is none of them the class may know itself: by `_missing_`, and as flags put together.
        try:
            return self.cls(given)
        except ValueError:
            pass
        raise fail("enum", value, expected=self.shown)

    def _converted(self, value, state):
        if isinstance(value, enum.Enum):
            yield value.value
        if self.sub_type == "int" or (state.mode == "strings" and isinstance(value, str)):
            if isinstance(value, str) and re.fullmatch(r"[+-]?\d+", value):
                yield int(value)
            elif isinstance(value, float) and math.isfinite(value) and value == int(value):
                yield int(value)


class IsInstance:
    """Takes instances of a class."""

    name = "is-instance"

    def __init__(self, schema, build):
        self.cls = schema["cls"]
        shown = getattr(self.cls, "__qualname__", None) or repr(self.cls)
        self.shown = schema.get("cls_repr") or shown
        self.name = f"is-instance[{self.shown}]"

    def validate(self, value, state):
        if not isinstance(value, self.cls):
            raise fail("is_instance_of", value, **{"class": self.shown})
        return value


class IsSubclass:
    """Takes classes below a class."""

    name = "is-subclass"

    def __init__(self, schema, build):
        self.cls = schema["cls"]
        self.shown = schema.get("cls_repr") or getattr(self.cls, "__qualname__", repr(self.cls))

    def validate(self, value, state):
        if not (isinstance(value, type) and issubclass(value, self.cls)):
            raise fail("is_subclass_of", value, **{"class": self.shown})
        return value


class Callable:
    """Takes what can be called."""

    name = "callable"

    def __init__(self, schema, build):
        pass

    def validate(self, value, state):
        state.floor(LAX)
        if not callable(value):
            raise fail("callable_type", value)
        return value


class MissingSentinel:
    """Takes the one value that says that a field is not there, and what another validator takes."""

    name = "missing-sentinel"

    def __init__(self, schema, build):
        from pydantic_core import MISSING

        self.missing = MISSING
        self.inner = build(schema["schema"]) if schema.get("schema") else None
        if self.inner is not None:
            self.name = f"missing-sentinel[{self.inner.name}]"

    def validate(self, value, state):
        if value is self.missing:
            return value
        if self.inner is None:
            raise fail("missing_sentinel_error", value)
        return self.inner.validate(value, state)
