"""Ids of secrets: Scenario takes any text, Periapt and Juju only xids: 96 bits, as 20 digits of base 32."""

from __future__ import annotations

import hashlib
import re
from typing import Any

# The last digit has one bit that counts.
_XID = re.compile(r"[0-9a-v]{19}[0g]")
_DIGITS = "0123456789abcdefghijklmnopqrstuv"


class Ids:
    """The ids of one run, in the test's words and in the sandbox's.

    Where a test's id is no xid, it gets one, always the same. Settings, options and results that hold the id's text are
    translated on both ways, so that a charm that is told an id by a relation finds its secret.
    """

    def __init__(self) -> None:
        self._inside: dict[str, str] = {}

    def inside(self, id: str) -> str:
        """The xid of a test's id."""
        plain = _plain(id)
        if _XID.fullmatch(plain):
            return plain
        if plain not in self._inside:
            digest = hashlib.sha256(plain.encode()).digest()
            digits = "".join(_DIGITS[byte % 32] for byte in digest[:19])
            self._inside[plain] = digits + ("0" if digest[19] % 2 else "g")
        return self._inside[plain]

    def outside(self, xid: str) -> str:
        """The test's id of an xid, as Scenario writes it."""
        for plain, inside in self._inside.items():
            if inside == xid:
                return f"secret:{plain}"
        return f"secret:{xid}"

    def texts_inside(self, value: Any) -> Any:
        """A value with the test's ids in the sandbox's words, in all of its texts."""
        return _translated(value, self._inside.items())

    def texts_outside(self, value: Any) -> Any:
        """The way back."""
        return _translated(value, [(inside, plain) for plain, inside in self._inside.items()])


def _plain(id: str) -> str:
    """The id without its scheme and the model that may stand before it."""
    return id.removeprefix("secret:").rsplit("/", 1)[-1]


def _translated(value: Any, pairs: Any) -> Any:
    if isinstance(value, str):
        for one, other in pairs:
            # Only as a URI: a short id could be a word of something else.
            value = value.replace(f"secret:{one}", f"secret:{other}")
        return value
    if isinstance(value, dict):
        return {_translated(key, pairs): _translated(item, pairs) for key, item in value.items()}
    if isinstance(value, list):
        return [_translated(item, pairs) for item in value]
    return value
