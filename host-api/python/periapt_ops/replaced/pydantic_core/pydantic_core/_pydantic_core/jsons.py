"""The validator of JSON, and reading it."""

from __future__ import annotations

import json
import re

from .errors import fail


class Json:
    """Takes JSON, and what is in it."""

    name = "json"

    def __init__(self, schema, build):
        self.inner = build(schema["schema"]) if schema.get("schema") else None
        self.name = f"json[{self.inner.name if self.inner else 'any'}]"

    def validate(self, value, state):
        if not isinstance(value, (str, bytes, bytearray)):
            raise fail("json_type", value)
        found = parsed_json(value)
        if self.inner is None:
            return found
        with state.scoped(mode="json"):
            return self.inner.validate(found, state)


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parsed_json(text):
    """What JSON says; an error of the input if it says nothing."""
    try:
        found = json.loads(text)
        if _SURROGATE.search(text if isinstance(text, str) else bytes(text).decode("latin-1")):
            # Half a character is none; the parser takes it.
            json.dumps(found, ensure_ascii=False).encode()
        return found
    except UnicodeEncodeError:
        raise fail("json_invalid", text, error="lone surrogate in hex escape at line 1 column 1") from None
    except json.JSONDecodeError as error:
        raise fail("json_invalid", text, error=_said_of_json(text, error)) from None
    except UnicodeDecodeError:
        raise fail("json_invalid", text, error="invalid unicode code point at line 1 column 1") from None
    except RecursionError:
        raise fail("json_invalid", text, error="recursion limit exceeded at line 1 column 1") from None


#: Python's words for malformed JSON, in pydantic's.
_OF_JSON = {
    "Expecting value": "expected value",
    "Expecting property name enclosed in double quotes": "key must be a string",
    "Expecting ':' delimiter": "expected `:`",
    "Extra data": "trailing characters",
    "Unterminated string starting at": "EOF while parsing a string",
}


def _said_of_json(text, error):
    if error.pos >= len(text):
        what = "an object" if "property name" in error.msg else "a string" if "string" in error.msg else "a value"
        return f"EOF while parsing {what} at line {error.lineno} column {max(0, error.colno - 1)}"
    message = _OF_JSON.get(error.msg, f"{error.msg[:1].lower()}{error.msg[1:]}")
    return f"{message} at line {error.lineno} column {error.colno}"
