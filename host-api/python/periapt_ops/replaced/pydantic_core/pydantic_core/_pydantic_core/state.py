"""What a validator knows besides its input."""

from __future__ import annotations

import contextlib

#: How well an input fits: exactly, after nothing but what strict mode allows, or after a conversion.
EXACT, STRICT, LAX = 2, 1, 0


class State:
    """One validation, from its beginning to its end."""

    __slots__ = (
        "by_alias",
        "by_name",
        "context",
        "data",
        "exactness",
        "extra",
        "field_name",
        "fields_set",
        "from_attributes",
        "has_field_error",
        "mode",
        "seen",
        "self_instance",
        "strict",
    )

    def __init__(self, mode, strict=None, context=None, from_attributes=None, extra=None, by_alias=None, by_name=None):
        #: `python`, `json` or `strings`.
        self.mode, self.strict, self.context = mode, strict, context
        self.from_attributes, self.extra = from_attributes, extra
        self.by_alias, self.by_name = by_alias, by_name
        #: The instance whose `__init__` this is.
        self.self_instance = None
        #: The fields that came before, for validators and factories that ask.
        self.data = self.field_name = None
        self.has_field_error = False
        self.exactness, self.fields_set = EXACT, None
        #: The inputs that references are validating, against those that hold themselves.
        self.seen = set()

    def is_strict(self, own):
        """Whether the call, or else the schema, asks for no conversions."""
        return self.strict if self.strict is not None else own

    def floor(self, exactness):
        """The input fits no better than this."""
        if self.exactness > exactness:
            self.exactness = exactness

    def add_fields_set(self, count):
        """So many fields were given."""
        self.fields_set = (self.fields_set or 0) + count

    @contextlib.contextmanager
    def scoped(self, **values):
        """Other values for a while."""
        kept = {name: getattr(self, name) for name in values}
        for name, value in values.items():
            setattr(self, name, value)
        try:
            yield self
        finally:
            for name, value in kept.items():
                setattr(self, name, value)


class ValidationInfo:
    """What a charm's own validator is told."""

    __slots__ = ("config", "context", "data", "field_name", "mode")

    def __init__(self, state, config, field_name=None):
        self.context, self.config, self.data = state.context, config, state.data
        self.field_name = state.field_name if state.field_name is not None else field_name
        self.mode = "json" if state.mode == "strings" else state.mode

    def __repr__(self):
        return (
            f"ValidationInfo(config={self.config!r}, context={self.context!r}, data={self.data!r}, "
            f"field_name={self.field_name!r})"
        )
