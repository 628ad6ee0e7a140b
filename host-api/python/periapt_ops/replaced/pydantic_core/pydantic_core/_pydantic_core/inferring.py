"""Serialization by what a value is, where no schema says more."""

from __future__ import annotations

import base64
import collections
import dataclasses
import datetime
import enum
import ipaddress
import math
import pathlib
import re
import types
import uuid
from decimal import Decimal

from .markers import PydanticSerializationError
from .urls import MultiHostUrl, Url

_PLAIN = (str, int, float, bool, type(None))
_SHOWN = (
    uuid.UUID,
    Url,
    MultiHostUrl,
    pathlib.PurePath,
    ipaddress.IPv4Address,
    ipaddress.IPv6Address,
    ipaddress.IPv4Network,
    ipaddress.IPv6Network,
    ipaddress.IPv4Interface,
    ipaddress.IPv6Interface,
    Decimal,
    complex,
)
#: What needs no fallback.
_KNOWN = (
    *_PLAIN,
    *_SHOWN,
    bytes,
    bytearray,
    enum.Enum,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    re.Pattern,
    type,
)
_LISTED = (list, tuple, set, frozenset, collections.deque)


def inferred(value, dump, include=None, exclude=None):
    """A value as its own type asks for."""
    if type(value) in _PLAIN:
        return of_float(value, dump) if type(value) is float and dump.is_json else value
    serializer = None if isinstance(value, type) else getattr(value, "__pydantic_serializer__", None)
    if serializer is not None and hasattr(serializer, "_dumper"):
        return serializer._dumper.dump(value, dump.of_other(serializer), include, exclude)
    with dump.inside(value):
        if isinstance(value, dict):
            return _dict(value, dump, include, exclude)
        if isinstance(value, (*_LISTED, types.GeneratorType)):
            return _items(value, dump, include, exclude)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return _dict(fields, dump, include, exclude)
    if dump.is_json:
        return json_of(value, dump)
    if dump.fallback is not None and not isinstance(value, _KNOWN):
        return inferred(dump.fallback(value), dump)
    return value


def _dict(value, dump, include, exclude):
    done = {}
    for key, item in value.items():
        keeps, inner, outer = picked(key, include, exclude)
        if keeps:
            done[key_of(key, dump) if dump.is_json else key] = inferred(item, dump, inner, outer)
    return done


def _items(value, dump, include, exclude):
    items = list(value)
    done = []
    for place, item in enumerate(items):
        keeps, inner, outer = picked(place, include, exclude, len(items))
        if keeps:
            done.append(inferred(item, dump, inner, outer))
    if dump.is_json or isinstance(value, types.GeneratorType):
        return done
    return type(value)(*done) if hasattr(value, "_fields") else type(value)(done)


def json_of(value, dump):
    """A single value, in what JSON has."""
    if isinstance(value, enum.Enum):
        return inferred(value.value, dump)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return of_float(float(value), dump)
    if isinstance(value, (bytes, bytearray)):
        return of_bytes(bytes(value), dump)
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time, datetime.timedelta)):
        return of_time(value, dump)
    if isinstance(value, _SHOWN):
        return str(value)
    if isinstance(value, re.Pattern):
        return value.pattern
    if dump.fallback is not None:
        return inferred(dump.fallback(value), dump)
    if dump.serialize_unknown:
        try:
            return str(value)
        except Exception:
            return f"<Unserializable {type(value).__name__} object>"
    raise PydanticSerializationError(f"Unable to serialize unknown type: {type(value)}")


def of_float(value, dump):
    """A number that JSON may not have."""
    if math.isfinite(value) or not dump.to_bytes:
        return value
    if dump.inf_nan == "constants":
        return value
    if dump.inf_nan == "strings":
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return None


def of_bytes(value, dump):
    """Bytes, in a text."""
    if dump.bytes_mode == "base64":
        return base64.urlsafe_b64encode(value).decode()
    if dump.bytes_mode == "hex":
        return value.hex()
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise PydanticSerializationError(f"invalid utf-8 sequence of 1 bytes from index {error.start}") from None


def of_time(value, dump):
    """A moment, a day, a time, or a span of it."""
    if isinstance(value, datetime.timedelta):
        if dump.timedelta_mode in ("float", "seconds"):
            return value.total_seconds()
        return value.total_seconds() * 1000 if dump.timedelta_mode == "milliseconds" else _duration(value)
    if dump.temporal_mode != "iso8601":
        seconds = _seconds(value)
        return seconds if dump.temporal_mode == "seconds" else seconds * 1000
    text = value.isoformat()
    return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text


def _seconds(value):
    if isinstance(value, datetime.time):
        return datetime.timedelta(
            hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond
        ).total_seconds()
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    return (value if value.tzinfo else value.replace(tzinfo=datetime.timezone.utc)).timestamp()


def _duration(value):
    sign, value = ("-", -value) if value < datetime.timedelta(0) else ("", value)
    seconds = value.seconds
    years, days = divmod(value.days, 365)
    day = (f"{years}Y" if years else "") + (f"{days}D" if days else "")
    hours, minutes, seconds = seconds // 3600, seconds % 3600 // 60, seconds % 60
    time = (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "")
    if value.microseconds:
        time += f"{seconds}.{value.microseconds:06}".rstrip("0") + "S"
    elif seconds:
        time += f"{seconds}S"
    if not day and not time:
        return "PT0S"
    return f"{sign}P{day}" + (f"T{time}" if time else "")


def key_of(key, dump):
    """A key of a dictionary, in a text."""
    if isinstance(key, enum.Enum):
        return key_of(key.value, dump)
    if isinstance(key, str):
        return str(key)
    if key is None:
        return "None"
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, tuple):
        return ",".join(key_of(part, dump) for part in key)
    if isinstance(key, (int, float)):
        return str(key)
    found = json_of(key, dump)
    return found if isinstance(found, str) else str(found)


def picked(key, include, exclude, length=None):
    """Whether something is to stay, and what is to be picked below it."""
    if include is None and exclude is None:
        return True, None, None
    inner_exclude = inner_include = None
    if exclude is not None:
        rule = _rule(key, exclude, length)
        if rule is True or rule is ...:
            return False, None, None
        inner_exclude = rule
    if include is not None:
        rule = _rule(key, include, length)
        if rule is None or rule is False:
            return False, None, None
        inner_include = None if rule is True or rule is ... else rule
    return True, inner_include, inner_exclude or None


def _rule(key, rules, length):
    """What is said of a key, by its own name and for all."""
    keys = [key] if length is None else [key, key - length]
    said = None
    for one in (*keys, "__all__"):
        if one in rules:
            said = _both(said, rules[one] if isinstance(rules, dict) else True)
    return said


def _both(one, other):
    if one is None or other is None or one is True or one is ...:
        return other if one is None else one
    if other is True or other is ...:
        return other if not isinstance(one, (dict, set)) else one
    one, other = (rules if isinstance(rules, dict) else dict.fromkeys(rules, True) for rules in (one, other))
    return {key: _both(one.get(key), other.get(key)) for key in {**one, **other}}
