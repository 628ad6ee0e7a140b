"""Patterns in the words of Rust's `regex`, which pydantic takes them in, as Python's."""

from __future__ import annotations

import re

from .errors import SchemaError

#: What Rust takes for an operation on classes, and Python for characters.
_OPERATIONS = ("&&", "--", "~~")


def compiled(pattern: str) -> re.Pattern:
    """The same pattern; what would mean something else in Python is refused."""
    try:
        return re.compile("".join(_translated(pattern)))
    except re.error as error:
        raise SchemaError(f"the pattern {pattern!r} is none that the sandbox knows: {error}") from None


def _translated(pattern):
    # In lines, an end is that of a line in both.
    in_lines = re.search(r"\(\?[a-zA-Z]*m", pattern) is not None
    at, inside, began = 0, False, 0
    while at < len(pattern):
        char, following = pattern[at], pattern[at + 1 : at + 2]
        if char == "\\":
            if following == "Z":
                raise SchemaError(f"the pattern {pattern!r} has \\Z, which is no word of its language; the end of a text is \\z")
            yield r"\Z" if following == "z" else char + following
            at += 2
            continue
        if inside:
            if char == "[" or pattern[at : at + 2] in _OPERATIONS:
                raise SchemaError(f"the pattern {pattern!r} has a class within a class or an operation on classes, which the sandbox does not know")
            # The first one is itself a member.
            inside = not (char == "]" and at > began)
            yield char
        elif char == "[":
            inside, began = True, at + (2 if following == "^" else 1)
            yield char
        elif char == "$" and not in_lines:
            yield r"\Z"
        elif pattern[at : at + 3] == "(?<" and pattern[at + 3 : at + 4] not in ("=", "!"):
            yield "(?P<"
            at += 2
        else:
            yield char
        at += 1
