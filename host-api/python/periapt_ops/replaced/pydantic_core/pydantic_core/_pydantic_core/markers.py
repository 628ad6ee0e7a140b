"""Values and exceptions that carry a meaning and nothing else."""

from __future__ import annotations

import datetime


class PydanticUndefinedType:
    """The type of `PydanticUndefined`, of which there is one."""

    __slots__ = ()
    _one = None

    def __new__(cls):
        if cls._one is None:
            cls._one = super().__new__(cls)
        return cls._one

    def __repr__(self):
        return "PydanticUndefined"

    def __reduce__(self):
        return "PydanticUndefined"

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


PydanticUndefined = PydanticUndefinedType()


class Some:
    """A value that is there, where `None` says that there is none."""

    __slots__ = ("value",)
    __match_args__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return f"Some({self.value!r})"

    def __class_getitem__(cls, item):
        return cls


class ArgsKwargs:
    """The arguments of a call."""

    __slots__ = ("args", "kwargs")

    def __init__(self, args, kwargs=None):
        self.args = args
        self.kwargs = kwargs or None

    def __eq__(self, other):
        return isinstance(other, ArgsKwargs) and (self.args, self.kwargs) == (other.args, other.kwargs)

    __hash__ = None

    def __repr__(self):
        return f"ArgsKwargs({self.args!r}{'' if self.kwargs is None else f', {self.kwargs!r}'})"


class TzInfo(datetime.tzinfo):
    """A fixed offset from UTC."""

    def __init__(self, seconds=0.0):
        if abs(seconds) >= 86400:
            raise ValueError(f"TzInfo offset must be strictly between -86400 and 86400 (24 hours) seconds, got {seconds}")
        self._offset = datetime.timedelta(seconds=int(seconds))

    def utcoffset(self, dt):
        return self._offset

    def dst(self, dt):
        return None

    def tzname(self, dt):
        return str(self)

    def fromutc(self, dt):
        return dt + self._offset

    def __eq__(self, other):
        if isinstance(other, datetime.tzinfo):
            return self._offset == other.utcoffset(None)
        return NotImplemented

    def __hash__(self):
        return hash(self._offset)

    def __str__(self):
        return "UTC" if not self._offset else str(datetime.timezone(self._offset)).removeprefix("UTC")

    def __repr__(self):
        return f"TzInfo({int(self._offset.total_seconds())})"

    def __reduce__(self):
        return TzInfo, (self._offset.total_seconds(),)

    def __deepcopy__(self, memo):
        return self


class PydanticOmit(Exception):
    """What a value is asked to be left out by."""


class PydanticUseDefault(Exception):
    """What the default is asked for by."""


class PydanticSerializationError(ValueError):
    """Something cannot be serialized."""


class PydanticSerializationUnexpectedValue(ValueError):
    """A value is not of the type that its field says."""

    def __init__(self, message=None, *details):
        super().__init__(message or "Unexpected Value")

    def __repr__(self):
        return f"PydanticSerializationUnexpectedValue({self})"


def is_missing(value):
    """Whether a field's value says that it is not there."""
    # It is made after this module is.
    from pydantic_core import MISSING

    return value is MISSING
