"""Validators of dates, times and spans of time."""

from __future__ import annotations

import datetime
import math
import re
from decimal import Decimal

from .errors import fail
from .markers import TzInfo
from .scalars import option
from .state import LAX

_UTC = TzInfo(0)

_DATE = r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})"
_TIME = (
    r"(?P<hour>\d{2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"\s?(?P<zone>[Zz]|[+-]\d{2}:?(?:\d{2})?)?"
)
_ONLY_DATE = re.compile(_DATE)
_ONLY_TIME = re.compile(_TIME)
_DATETIME = re.compile(_DATE + r"[Tt _]" + _TIME)

_SPAN = re.compile(
    r"(?P<sign>[+-])?P(?:(?P<years>\d+)Y)?(?:(?P<months>\d+)M)?(?:(?P<weeks>\d+(?:\.\d+)?)W)?(?:(?P<days>\d+(?:\.\d+)?)D)?"
    r"(?:T(?:(?P<hours>\d+(?:\.\d+)?)H)?(?:(?P<minutes>\d+(?:\.\d+)?)M)?(?:(?P<seconds>\d+(?:[.,]\d+)?)S)?)?",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"(?P<sign>[+-])?(?:(?P<days>\d+)\s*(?:d|days?,?)?\s*)??(?P<hours>\d{1,2}):(?P<minutes>\d{2})(?::(?P<seconds>\d{2}(?:\.\d+)?))?"
)

#: Numbers above this count milliseconds, those below it seconds.
_WATERSHED = 20_000_000_000


def _number(value):
    """The number that a value is or says; none if it is another thing."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float, Decimal)):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d+(\.\d*)?\s*", value):
        return float(value)
    return None


def _text(value):
    return value.decode("utf-8", "replace") if isinstance(value, (bytes, bytearray)) else value


def _of_match(found):
    fraction = (found["fraction"] or "")[:6].ljust(6, "0")
    return datetime.time(
        int(found["hour"]), int(found["minute"]), int(found["second"] or 0), int(fraction), tzinfo=_zone(found["zone"])
    )


def _zone(text):
    if not text:
        return None
    if text in "Zz":
        return _UTC
    digits = text[1:].replace(":", "").ljust(4, "0")
    if int(digits[2:]) > 59:
        raise ValueError("timezone minute value is outside expected range of 0-59")
    seconds = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    return TzInfo(-seconds if text[0] == "-" else seconds)


class _Moment:
    """What dates and times have in common."""

    bounds = ("le", "lt", "ge", "gt")

    def __init__(self, schema, build):
        self.strict = option(schema, build.config, "strict", default=False)
        self.limits = {name: schema[name] for name in self.bounds if schema.get(name) is not None}
        self.now, self.now_offset = schema.get("now_op"), schema.get("now_utc_offset")
        self.zone = schema.get("tz_constraint")

    def bounded(self, found, value):
        limits = self.limits
        for name, kind, holds in _LIMITS:
            if name in limits and not holds(found, limits[name]):
                raise fail(kind, value, **{name: str(limits[name])})
        return found

    def with_zone(self, found, value):
        if self.zone == "naive" and found.tzinfo is not None:
            raise fail("timezone_naive", value)
        if self.zone is not None and self.zone != "naive" and found.tzinfo is None:
            raise fail("timezone_aware", value)
        if isinstance(self.zone, int):
            actual = int(found.utcoffset().total_seconds())
            if actual != self.zone:
                raise fail("timezone_offset", value, tz_expected=self.zone, tz_actual=actual)
        return found


_LIMITS = (
    ("le", "less_than_equal", lambda a, b: a <= b),
    ("lt", "less_than", lambda a, b: a < b),
    ("ge", "greater_than_equal", lambda a, b: a >= b),
    ("gt", "greater_than", lambda a, b: a > b),
)


class DateTime(_Moment):
    """Takes moments, numbers of seconds, and what is written for them."""

    name = "datetime"

    def validate(self, value, state):
        found = parsed_datetime(value, state, state.is_strict(self.strict))
        if self.now is not None:
            now = datetime.datetime.now(datetime.timezone.utc)
            there = found if found.tzinfo is not None else found.astimezone()
            if self.now == "past" and there >= now:
                raise fail("datetime_past", value)
            if self.now == "future" and there <= now:
                raise fail("datetime_future", value)
        return self.with_zone(self.bounded(found, value), value)


def parsed_datetime(value, state, strict):
    """A moment, of whatever says one."""
    if isinstance(value, datetime.datetime):
        return value
    if state.mode == "python" and strict:
        raise fail("datetime_type", value)
    if isinstance(value, datetime.date):
        state.floor(LAX)
        return datetime.datetime(value.year, value.month, value.day)
    number = None if strict else _number(value)
    state.floor(LAX)
    if number is not None:
        return _of_number(number, value)
    text = _text(value)
    if not isinstance(text, str):
        raise fail("datetime_type", value)
    text = text.strip()
    found = _DATETIME.fullmatch(text)
    day = found or _ONLY_DATE.fullmatch(text)
    if day is None:
        short = "input is too short" if len(text) < 10 else "invalid character in year"
        kind = "datetime_parsing" if _DATETIME.match(text) else "datetime_from_date_parsing"
        raise fail(kind, value, error=short)
    try:
        date = datetime.date(int(day["year"]), int(day["month"]), int(day["day"]))
        return datetime.datetime.combine(date, _of_match(found) if found else datetime.time())
    except ValueError as error:
        raise fail("datetime_from_date_parsing", value, error=_words(error)) from None


def _of_number(number, value):
    seconds = number / 1000 if abs(number) > _WATERSHED else number
    try:
        return datetime.datetime(1970, 1, 1, tzinfo=_UTC) + datetime.timedelta(seconds=seconds)
    except OverflowError:
        raise fail("datetime_parsing", value, error="dates after 9999 are not supported as unix timestamps") from None


def _words(error):
    """Python's words for a part that is out of its range, in pydantic's."""
    for part in ("month", "day", "hour", "minute", "second", "year"):
        if str(error).startswith(part):
            return f"{part} value is outside expected range"
    return str(error)


class Date(_Moment):
    """Takes days, moments at their beginning, and what is written for them."""

    name = "date"

    def validate(self, value, state):
        found = self._date(value, state)
        if self.now is not None:
            today = datetime.datetime.now(datetime.timezone.utc).date()
            if self.now == "past" and found >= today:
                raise fail("date_past", value)
            if self.now == "future" and found <= today:
                raise fail("date_future", value)
        return self.bounded(found, value)

    def _date(self, value, state):
        strict = state.is_strict(self.strict)
        if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
            return value
        if state.mode == "python" and strict:
            raise fail("date_type", value)
        text = _text(value)
        day = _ONLY_DATE.fullmatch(text.strip()) if isinstance(text, str) else None
        if day is not None:
            state.floor(LAX)
            try:
                return datetime.date(int(day["year"]), int(day["month"]), int(day["day"]))
            except ValueError as error:
                raise fail("date_from_datetime_parsing", value, error=_words(error)) from None
        if strict or not (isinstance(text, (str, datetime.datetime)) or _number(value) is not None):
            raise fail("date_type", value)
        moment = _as_of_datetime(value, state)
        if moment.time() != datetime.time():
            raise fail("date_from_datetime_inexact", value)
        state.floor(LAX)
        return moment.date()


def _as_of_datetime(value, state):
    from .errors import Lines

    try:
        return parsed_datetime(value, state, False)
    except Lines as error:
        said = (error.lines[0].context or {}).get("error", "invalid date")
        raise fail("date_from_datetime_parsing", value, error=said) from None


class Time(_Moment):
    """Takes times of a day, and what is written for them."""

    name = "time"

    def validate(self, value, state):
        return self.with_zone(self.bounded(self._time(value, state), value), value)

    def _time(self, value, state):
        strict = state.is_strict(self.strict)
        if isinstance(value, datetime.time):
            return value
        if state.mode == "python" and strict:
            raise fail("time_type", value)
        state.floor(LAX)
        number = None if strict else _number(value)
        if number is not None:
            if not 0 <= number < 86400:
                raise fail("time_parsing", value, error="numeric times may not exceed 86,399 seconds")
            return (datetime.datetime(1, 1, 1) + datetime.timedelta(seconds=number)).time().replace(tzinfo=_UTC)
        text = _text(value)
        if not isinstance(text, str):
            raise fail("time_type", value)
        found = _ONLY_TIME.fullmatch(text.strip())
        if found is None:
            raise fail("time_parsing", value, error="input is too short" if len(text) < 5 else "invalid character in hour")
        try:
            return _of_match(found)
        except ValueError as error:
            raise fail("time_parsing", value, error=_words(error)) from None


class TimeDelta(_Moment):
    """Takes spans of time, numbers of seconds, and what is written for them."""

    name = "timedelta"

    def validate(self, value, state):
        return self.bounded(self._delta(value, state), value)

    def _delta(self, value, state):
        strict = state.is_strict(self.strict)
        if isinstance(value, datetime.timedelta):
            return value
        if state.mode == "python" and strict:
            raise fail("time_delta_type", value)
        state.floor(LAX)
        text = _text(value)
        number = None if strict or (isinstance(text, str) and ":" in text) else _number(value)
        try:
            if number is not None:
                return datetime.timedelta(seconds=number)
            if isinstance(text, str):
                return _span(text.strip(), value)
        except OverflowError:
            raise fail("time_delta_parsing", value, error="durations may not exceed 999,999,999 days") from None
        raise fail("time_delta_type", value)


def _span(text, value):
    found = _SPAN.fullmatch(text) if len(text) > 2 else None
    found = found or _CLOCK.fullmatch(text)
    if found is None:
        raise fail("time_delta_parsing", value, error="input is too short" if len(text) < 3 else "invalid digit in duration")
    parts = {name: float(part.replace(",", ".")) for name, part in found.groupdict().items() if part and name != "sign"}
    parts["days"] = parts.get("days", 0) + 365 * parts.pop("years", 0) + 30 * parts.pop("months", 0)
    delta = datetime.timedelta(**parts)
    return -delta if found["sign"] == "-" else delta
