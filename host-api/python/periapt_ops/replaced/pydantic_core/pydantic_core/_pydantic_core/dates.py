"""Validators of dates, times and spans of time."""

from __future__ import annotations

import datetime
import math
import re
from decimal import Decimal

from .errors import SchemaError, fail
from .markers import TzInfo
from .scalars import option
from .state import LAX

_UTC = TzInfo(0)

_DATE = r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})"
_TIME = (
    r"(?P<hour>\d{2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"(?P<zone>[Zz]|[+-]\d{2}:?\d{2})?"
)
_ONLY_DATE = re.compile(_DATE)
_ONLY_TIME = re.compile(_TIME)
_DATETIME = re.compile(_DATE + r"[Tt _]" + _TIME)

_SPAN = re.compile(
    r"(?P<sign>[+-])?P(?:(?P<years>\d+(?:\.\d+)?)Y)?(?:(?P<months>\d+(?:\.\d+)?)M)?(?:(?P<weeks>\d+(?:\.\d+)?)W)?"
    r"(?:(?P<days>\d+(?:\.\d+)?)D)?"
    r"(?:T(?:(?P<hours>\d+(?:\.\d+)?)H)?(?:(?P<minutes>\d+(?:\.\d+)?)M)?(?:(?P<seconds>\d+(?:[.,]\d+)?)S)?)?"
)
_DAYS = r"(?P<days>\d+) ?[dD](?:ays?)?"
_HOURS = r"(?P<hours>\d+):(?P<minutes>\d{2})(?::(?P<seconds>\d{2}(?:\.\d{1,6})?)\d*)?"
_CLOCK = re.compile(rf"(?P<sign>[+-])?(?:{_DAYS}(?:,? ?{_HOURS})?|{_HOURS.replace('(?P<', '(?P<only_')})")

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
    digits = text[1:].replace(":", "")
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
        if schema.get("microseconds_precision", "truncate") != "truncate":
            raise SchemaError("in the sandbox more digits of a second than six are cut off, and are no error")

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
    day = _ONLY_DATE.match(text)
    if day is None:
        raise fail("datetime_from_date_parsing", value, error="input is too short" if len(text) < 10 else "invalid character in year")
    found = _DATETIME.fullmatch(text)
    try:
        date = datetime.date(int(day["year"]), int(day["month"]), int(day["day"]))
    except ValueError as error:
        raise fail("datetime_from_date_parsing", value, error=_words(error)) from None
    if len(text) == day.end():
        return datetime.datetime.combine(date, datetime.time())
    try:
        if found is not None:
            return datetime.datetime.combine(date, _of_match(found))
    except ValueError:
        pass
    raise fail("datetime_from_date_parsing", value, error="unexpected extra characters at the end of the input")


def _of_number(number, value):
    seconds = number / 1000 if abs(number) > _WATERSHED else number
    try:
        return datetime.datetime(1970, 1, 1, tzinfo=_UTC) + datetime.timedelta(seconds=seconds)
    except OverflowError:
        raise fail("datetime_parsing", value, error="dates after 9999 are not supported as unix timestamps") from None


_RANGES = {"month": " of 1-12", "hour": " of 0-23", "minute": " of 0-59", "second": " of 0-59"}


def _words(error):
    """Python's words for a part that is out of its range, in pydantic's."""
    for part in ("month", "day", "hour", "minute", "second", "year"):
        if str(error).startswith(part):
            return f"{part} value is outside expected range{_RANGES.get(part, '')}"
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
        found = _ONLY_TIME.fullmatch(text)
        head = _ONLY_TIME.match(text)
        if found is None and head is not None and head["zone"] is None:
            raise fail("time_parsing", value, error=f"invalid timezone {'minute' if text[head.end()] in '+-' else 'sign'}")
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
        number = None if strict or isinstance(text, str) else _number(value)
        try:
            if number is not None:
                return datetime.timedelta(seconds=number)
            if isinstance(text, str):
                return _span(text, value)
        except OverflowError:
            raise fail("time_delta_parsing", value, error="durations may not exceed 999,999,999 days") from None
        raise fail("time_delta_type", value)


def _span(text, value):
    found = _SPAN.fullmatch(text) if len(text) > 2 and "P" in text else _CLOCK.fullmatch(text)
    if found is None or ("P" not in text and found["days"] is None and len(text.lstrip("+-")) < 5):
        raise fail("time_delta_parsing", value, error=_wrong_with(text))
    said = {name.removeprefix("only_"): part for name, part in found.groupdict().items() if part is not None}
    sign = said.pop("sign", "+")
    parts = {name: float(part.replace(",", ".")) for name, part in said.items()}
    if "P" not in text:
        for name in ("minutes", "seconds"):
            if parts.get(name, 0) >= 60:
                raise fail("time_delta_parsing", value, error=f"{name.removesuffix('s')} value is outside expected range of 0-59")
    parts["days"] = parts.get("days", 0) + 365 * parts.pop("years", 0) + 30 * parts.pop("months", 0)
    delta = datetime.timedelta(**parts)
    return -delta if sign == "-" else delta


def _wrong_with(text):
    bare = text[1:] if text[:1] in ("+", "-") else text
    if bare[:1].isdigit() and "P" not in bare and ("d" in bare.lower() or len(bare) < 5):
        said = re.match(r"\d+ ?[dD](?:ays?)?", bare)
        return '"day" identifier in duration not correctly formatted' if said is None else "input is too short"
    if len(bare) < 3:
        return "input is too short"
    if re.fullmatch(r"\d+", bare):
        return "invalid character in hour"
    return "invalid character in minute" if re.match(r"\d+:", bare) else "invalid digit in duration"
