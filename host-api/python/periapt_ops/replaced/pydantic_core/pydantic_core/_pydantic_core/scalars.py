"""Validators of single values: whatever there is, truth values, numbers, UUIDs."""

from __future__ import annotations

import enum
import math
import re
import uuid
from decimal import Decimal, InvalidOperation

from .errors import fail
from .state import LAX, STRICT

_TRUE = frozenset({"1", "t", "true", "y", "yes", "on"})
_FALSE = frozenset({"0", "f", "false", "n", "no", "off"})


def option(schema, config, name, in_config=None, default=None):
    """A setting of a schema, or else of its model's configuration."""
    value = schema.get(name)
    if value is None:
        value = (config or {}).get(in_config or name)
    return default if value is None else value


class Any:
    """Takes everything."""

    name = "any"

    def __init__(self, schema, build):
        pass

    def validate(self, value, state):
        # In a union it comes before conversions.
        state.floor(STRICT)
        return value


class NoneValue:
    """Takes `None`."""

    name = "none"

    def __init__(self, schema, build):
        pass

    def validate(self, value, state):
        if value is None or (state.mode == "strings" and value in ("", "None", "null")):
            return None
        raise fail("none_required", value)


class Bool:
    """Takes truth values, and what is written for one."""

    name = "bool"

    def __init__(self, schema, build):
        self.strict = option(schema, build.config, "strict", default=False)

    def validate(self, value, state):
        if value is True or value is False:
            return value
        if state.mode != "strings" and state.is_strict(self.strict):
            raise fail("bool_type", value)
        state.floor(LAX)
        if isinstance(value, (str, bytes)):
            text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
            if text.lower() in _TRUE:
                return True
            if text.lower() in _FALSE:
                return False
            raise fail("bool_parsing", value)
        if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
            if value == 1:
                return True
            if value == 0:
                return False
            if value == int(value) if math.isfinite(value) else False:
                raise fail("bool_parsing", value)
        raise fail("bool_type", value)


class _Number:
    """What whole and other numbers have in common."""

    def __init__(self, schema, build):
        self.strict = option(schema, build.config, "strict", default=False)
        self.bounds = {name: schema[name] for name in ("multiple_of", "le", "lt", "ge", "gt") if schema.get(name) is not None}
        self.is_finite = not option(schema, build.config, "allow_inf_nan", default=True)
        self.name = f"constrained-{self.name}" if self.bounds and self.name != "decimal" else self.name

    def bounded(self, number, value):
        bounds = self.bounds
        if not bounds:
            return number
        factor = bounds.get("multiple_of")
        if factor is not None and not _is_multiple(number, factor):
            raise fail("multiple_of", value, multiple_of=factor)
        if "le" in bounds and not number <= bounds["le"]:
            raise fail("less_than_equal", value, le=bounds["le"])
        if "lt" in bounds and not number < bounds["lt"]:
            raise fail("less_than", value, lt=bounds["lt"])
        if "ge" in bounds and not number >= bounds["ge"]:
            raise fail("greater_than_equal", value, ge=bounds["ge"])
        if "gt" in bounds and not number > bounds["gt"]:
            raise fail("greater_than", value, gt=bounds["gt"])
        return number


def _is_multiple(number, factor):
    remainder = number % factor
    if isinstance(number, float) or isinstance(factor, float):
        threshold = abs(float(number)) / 1e9
        return abs(remainder) <= threshold or abs(remainder - factor) <= threshold
    return remainder == 0


class Int(_Number):
    """Takes whole numbers, and what is written for one."""

    name = "int"

    def validate(self, value, state):
        return self.bounded(self._int(value, state), value)

    def _int(self, value, state):
        if type(value) is int:
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            # Of a subclass the number alone counts.
            state.floor(STRICT)
            return int(value)
        if state.mode != "strings" and state.is_strict(self.strict):
            raise fail("int_type", value)
        state.floor(LAX)
        if isinstance(value, bool):
            return int(value)
        if isinstance(value, (str, bytes)):
            return _int_of_text(value)
        if isinstance(value, (float, Decimal)):
            if not math.isfinite(value):
                raise fail("finite_number", value)
            if value != int(value):
                raise fail("int_from_float", value)
            return int(value)
        if isinstance(value, enum.Enum):
            return self._int(value.value, state)
        raise fail("int_type", value)


def _int_of_text(value):
    try:
        text = (value.decode() if isinstance(value, bytes) else value).strip()
    except UnicodeDecodeError:
        raise fail("int_parsing", value) from None
    if len(text) > 4300:
        raise fail("int_parsing_size", value)
    whole, point, rest = text.partition(".")
    if (not point or (whole and not rest.strip("0"))) and re.fullmatch(r"[+-]?[0-9]+(_[0-9]+)*", whole):
        return int(whole)
    raise fail("int_parsing", value)


class Float(_Number):
    """Takes numbers, and what is written for one."""

    name = "float"

    def validate(self, value, state):
        number = self._float(value, state)
        if self.is_finite and not math.isfinite(number):
            raise fail("finite_number", value)
        return self.bounded(number, value)

    def _float(self, value, state):
        if type(value) is float:
            return value
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if state.mode != "strings" and state.is_strict(self.strict) and not is_number:
            raise fail("float_type", value)
        state.floor(STRICT if is_number else LAX)
        if isinstance(value, (str, bytes)):
            try:
                text = (value.decode() if isinstance(value, bytes) else value).strip()
                if not text.isascii() or text.startswith("_"):
                    raise ValueError
                return float(text)
            except ValueError:
                raise fail("float_parsing", value) from None
        if value is None or not hasattr(type(value), "__float__"):
            raise fail("float_type", value)
        return float(value)


class DecimalNumber(_Number):
    """Takes decimal numbers, within a number of digits."""

    name = "decimal"

    def __init__(self, schema, build):
        super().__init__(schema, build)
        self.is_finite = not option(schema, build.config, "allow_inf_nan", default=False)
        self.max_digits, self.places = schema.get("max_digits"), schema.get("decimal_places")

    def validate(self, value, state):
        number = self._decimal(value, state)
        if not number.is_finite():
            if self.is_finite:
                raise fail("finite_number", value)
            return number
        self._check_digits(number, value)
        return self.bounded(number, value)

    def _decimal(self, value, state):
        if isinstance(value, Decimal):
            return value
        if state.mode == "python" and state.is_strict(self.strict):
            raise fail("is_instance_of", value, **{"class": "Decimal"})
        state.floor(LAX)
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise fail("decimal_type", value)
        try:
            return Decimal(str(value).strip())
        except InvalidOperation:
            raise fail("decimal_parsing", value) from None

    def _check_digits(self, number, value):
        _, digits, exponent = number.as_tuple()
        places = max(0, -exponent)
        count = len(digits) + max(0, exponent) if exponent >= 0 else max(len(digits), places)
        if self.max_digits is not None and count > self.max_digits:
            raise fail("decimal_max_digits", value, max_digits=self.max_digits)
        if self.places is not None:
            normal = max(0, -number.normalize().as_tuple().exponent)
            if normal > self.places:
                raise fail("decimal_max_places", value, decimal_places=self.places)
            whole = count - places
            if self.max_digits is not None and whole > self.max_digits - self.places:
                raise fail("decimal_whole_digits", value, whole_digits=self.max_digits - self.places)


class Uuid:
    """Takes UUIDs, and what is written for one."""

    name = "uuid"

    def __init__(self, schema, build):
        self.strict = option(schema, build.config, "strict", default=False)
        self.version = schema.get("version")

    def validate(self, value, state):
        found = self._uuid(value, state)
        if self.version is not None and found.version != self.version:
            raise fail("uuid_version", value, expected_version=self.version)
        return found

    def _uuid(self, value, state):
        if isinstance(value, uuid.UUID):
            return value
        if state.mode == "python" and state.is_strict(self.strict):
            raise fail("is_instance_of", value, **{"class": "UUID"})
        state.floor(LAX)
        if isinstance(value, str):
            try:
                return uuid.UUID(value)
            except ValueError as error:
                raise fail("uuid_parsing", value, error=str(error)) from None
        if isinstance(value, (bytes, bytearray)):
            try:
                return uuid.UUID(bytes=bytes(value)) if len(value) == 16 else uuid.UUID(value.decode())
            except ValueError as error:
                raise fail("uuid_parsing", value, error=str(error)) from None
        raise fail("uuid_type", value)
