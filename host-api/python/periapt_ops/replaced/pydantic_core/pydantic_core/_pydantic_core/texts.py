"""Validators of texts and bytes."""

from __future__ import annotations

import base64
import enum
import re
from decimal import Decimal

from .errors import fail
from .patterns import compiled
from .scalars import option
from .state import LAX, STRICT


class Str:
    """Takes texts, and makes them as its schema says."""

    name = "str"

    def __init__(self, schema, build):
        config = build.config
        self.strict = option(schema, config, "strict", default=False)
        self.shortest = option(schema, config, "min_length", "str_min_length")
        self.longest = option(schema, config, "max_length", "str_max_length")
        self.strips = option(schema, config, "strip_whitespace", "str_strip_whitespace", False)
        self.lowers = option(schema, config, "to_lower", "str_to_lower", False)
        self.raises = option(schema, config, "to_upper", "str_to_upper", False)
        self.takes_numbers = option(schema, config, "coerce_numbers_to_str", default=False)
        self.is_ascii = bool(schema.get("ascii_only"))
        pattern = schema.get("pattern")
        self.pattern, self.shown = pattern, getattr(pattern, "pattern", pattern)
        if isinstance(pattern, str):
            engine = option(schema, config, "regex_engine", default="rust-regex")
            self.pattern = re.compile(pattern) if engine == "python-re" else compiled(pattern)
        limits = (self.shortest, self.longest, self.pattern)
        if self.strips or self.lowers or self.raises or self.is_ascii or any(limit is not None for limit in limits):
            self.name = "constrained-str"

    def validate(self, value, state):
        text = self._text(value, state)
        if self.strips:
            text = text.strip()
        if self.shortest is not None and len(text) < self.shortest:
            raise fail("string_too_short", value, min_length=self.shortest)
        if self.longest is not None and len(text) > self.longest:
            raise fail("string_too_long", value, max_length=self.longest)
        if self.pattern is not None and not self.pattern.search(text):
            raise fail("string_pattern_mismatch", value, pattern=self.shown)
        if self.is_ascii and not text.isascii():
            raise fail("string_not_ascii", value)
        return text.lower() if self.lowers else text.upper() if self.raises else text

    def _text(self, value, state):
        if type(value) is str:
            return value
        strict = state.is_strict(self.strict)
        if isinstance(value, str):
            if strict and isinstance(value, enum.Enum):
                raise fail("string_sub_type", value)
            state.floor(STRICT)
            return str.__str__(value) if not isinstance(value, enum.Enum) else value.value
        if not strict:
            state.floor(LAX)
            if isinstance(value, (bytes, bytearray)):
                try:
                    return value.decode()
                except UnicodeDecodeError:
                    raise fail("string_unicode", value) from None
            if self.takes_numbers and isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
                return str(value)
            if isinstance(value, enum.Enum):
                return str(value.value)
        raise fail("string_type", value)


class Bytes:
    """Takes bytes, and texts for them."""

    name = "bytes"

    def __init__(self, schema, build):
        self.strict = option(schema, build.config, "strict", default=False)
        self.shortest, self.longest = schema.get("min_length"), schema.get("max_length")
        self.encoding = (build.config or {}).get("val_json_bytes", "utf8")

    def validate(self, value, state):
        content = self._bytes(value, state)
        if self.shortest is not None and len(content) < self.shortest:
            raise fail("bytes_too_short", value, min_length=self.shortest)
        if self.longest is not None and len(content) > self.longest:
            raise fail("bytes_too_long", value, max_length=self.longest)
        return content

    def _bytes(self, value, state):
        if isinstance(value, bytes):
            return value
        is_text = isinstance(value, str)
        if state.mode == "python" and state.is_strict(self.strict) or not (is_text or isinstance(value, bytearray)):
            raise fail("bytes_type", value)
        state.floor(LAX)
        if not is_text:
            return bytes(value)
        if state.mode == "json" and self.encoding != "utf8":
            try:
                return bytes.fromhex(value) if self.encoding == "hex" else base64.urlsafe_b64decode(value)
            except ValueError as error:
                raise fail("bytes_invalid_encoding", value, encoding=self.encoding, encoding_error=str(error)) from None
        return value.encode()
