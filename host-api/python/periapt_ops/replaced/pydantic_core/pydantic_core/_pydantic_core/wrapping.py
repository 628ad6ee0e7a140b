"""Validators around other validators: defaults, one for each mode, references."""

from __future__ import annotations

import copy

from .errors import Line, Lines, fail
from .markers import PydanticOmit, PydanticUndefined, PydanticUseDefault, Some
from .scalars import option
from .state import LAX


class Default:
    """A validator with a value for where there is none."""

    def __init__(self, schema, build):
        self.inner = build(schema["schema"])
        self.name = f"default[{self.inner.name}]"
        self.value, self.factory = schema.get("default", PydanticUndefined), schema.get("default_factory")
        self.takes_data = bool(schema.get("default_factory_takes_data"))
        self.copies = _is_mutable(self.value)
        self.validates = option(schema, build.config, "validate_default", default=False)
        self.on_error = schema.get("on_error", "raise")

    def validate(self, value, state):
        if value is PydanticUndefined:
            return self.default(state).value
        try:
            return self.inner.validate(value, state)
        except PydanticUseDefault:
            found = self.default(state)
            if found is None:
                raise
            return found.value
        except Lines:
            if self.on_error == "omit":
                raise PydanticOmit from None
            found = self.default(state) if self.on_error == "default" else None
            if found is None:
                raise
            return found.value

    def default(self, state):
        """The value, in a `Some`; none if there is none."""
        if self.factory is not None:
            if self.takes_data and state.has_field_error:
                raise fail("default_factory_not_called", PydanticUndefined)
            value = self.factory(state.data) if self.takes_data else self.factory()
        elif self.value is not PydanticUndefined:
            value = copy.deepcopy(self.value) if self.copies else self.value
        else:
            return self.inner.default(state) if hasattr(self.inner, "default") else None
        if not self.validates:
            return Some(value)
        try:
            return Some(self.inner.validate(value, state))
        except Lines:
            if self.on_error == "omit":
                raise PydanticOmit from None
            raise


def _is_mutable(value):
    """What has no hash may change, and each instance has its own; all else may be the very object that is meant."""
    try:
        hash(value)
    except TypeError:
        return True
    return False


class Nullable:
    """Takes `None`, and what another takes."""

    def __init__(self, schema, build):
        self.inner = build(schema["schema"])
        self.name = f"nullable[{self.inner.name}]"

    def validate(self, value, state):
        if value is None or (state.mode == "strings" and value == ""):
            return None
        return self.inner.validate(value, state)


class Chain:
    """Hands a value from one validator to the next."""

    def __init__(self, schema, build):
        self.steps = [build(step) for step in schema["steps"]]
        self.name = f"chain[{','.join(step.name for step in self.steps)}]"

    def validate(self, value, state):
        for step in self.steps:
            value = step.validate(value, state)
        return value


class LaxOrStrict:
    """One validator in strict mode, another one otherwise."""

    def __init__(self, schema, build):
        self.strict = option(schema, build.config, "strict", default=False)
        self.lax_one, self.strict_one = build(schema["lax_schema"]), build(schema["strict_schema"])
        self.name = f"lax-or-strict[lax={self.lax_one.name},strict={self.strict_one.name}]"

    def validate(self, value, state):
        if state.is_strict(self.strict):
            return self.strict_one.validate(value, state)
        # What strict mode takes is the better fit, where that is asked.
        if state.exactness > LAX and state.mode == "python":
            try:
                with state.scoped(strict=True):
                    return self.strict_one.validate(value, state)
            except (Lines, PydanticOmit, PydanticUseDefault):
                state.floor(LAX)
        return self.lax_one.validate(value, state)


class JsonOrPython:
    """One validator for JSON, another one for values."""

    def __init__(self, schema, build):
        self.json, self.python = build(schema["json_schema"]), build(schema["python_schema"])
        self.name = f"json-or-python[json={self.json.name},python={self.python.name}]"

    def validate(self, value, state):
        return (self.python if state.mode == "python" else self.json).validate(value, state)


class Custom:
    """An error in the place of another validator's."""

    def __init__(self, schema, build=None):
        self.inner = build(schema["schema"]) if build else None
        self.type, self.message = schema["custom_error_type"], schema.get("custom_error_message")
        self.context = schema.get("custom_error_context")
        self.name = self.inner.name if self.inner else "custom-error"

    @classmethod
    def of(cls, schema):
        """That of a union, if it has one."""
        return cls(schema) if schema.get("custom_error_type") else None

    def error(self, value):
        return Lines([Line(self.type, value, self.context, message=self.message)])

    def validate(self, value, state):
        try:
            return self.inner.validate(value, state)
        except Lines:
            raise self.error(value) from None


class Reference:
    """Another validator, by its name; against inputs that hold themselves."""

    def __init__(self, schema, build):
        self.key, self.definitions = schema["schema_ref"], build.definitions

    @property
    def name(self):
        inner = self.definitions.get(self.key)
        return "..." if inner is None else inner.name

    @property
    def inner(self):
        return self.definitions[self.key]

    def default(self, state):
        inner = self.inner
        return inner.default(state) if hasattr(inner, "default") else None

    def validate(self, value, state):
        if not isinstance(value, (dict, list, tuple, set, frozenset)) and not hasattr(value, "__dict__"):
            return self.inner.validate(value, state)
        mark = (id(value), self.key)
        if mark in state.seen:
            raise fail("recursion_loop", value)
        state.seen.add(mark)
        try:
            return self.inner.validate(value, state)
        finally:
            state.seen.discard(mark)

    def validate_assignment(self, instance, name, value, state):
        return self.inner.validate_assignment(instance, name, value, state)
