"""Validators around other validators: functions of a charm's own, defaults, unions, references."""

from __future__ import annotations

import copy
import json

from .errors import HEARD, Line, Lines, ValidationError, below, fail, of_exception
from .markers import PydanticOmit, PydanticUndefined, PydanticUseDefault, Some
from .scalars import option
from .state import EXACT, LAX, ValidationInfo


class _Function:
    """A function of the charm's, with or without another validator."""

    def __init__(self, schema, build):
        function = schema["function"]
        self.call, self.field_name = function["function"], function.get("field_name")
        self.with_info = function["type"] == "with-info"
        self.config = build.config
        self.inner = build(schema["schema"]) if "schema" in schema else None
        shown = getattr(self.call, "__qualname__", None) or type(self.call).__name__
        inner = f", {self.inner.name}" if schema["type"] in ("function-after", "function-before") else ""
        self.name = f"{schema['type']}[{shown.rpartition('.')[2]}(){inner}]"
        if hasattr(self.inner, "default"):
            self.default = self.inner.default

    def ask(self, value, state, *more):
        """Call it; what it raises may be an error of the input."""
        arguments = (value, *more, ValidationInfo(state, self.config, self.field_name)) if self.with_info else (value, *more)
        try:
            return self.call(*arguments)
        except HEARD as error:
            raised = of_exception(error, value)
            if raised is error:
                raise
            raise raised from error


class Before(_Function):
    def validate(self, value, state):
        return self.inner.validate(self.ask(value, state), state)

    def validate_assignment(self, instance, name, value, state):
        return self.inner.validate_assignment(self.ask(instance, state), name, value, state)


class After(_Function):
    def validate(self, value, state):
        return self._after(self.inner.validate(value, state), value, state)

    def validate_assignment(self, instance, name, value, state):
        return self._after(self.inner.validate_assignment(instance, name, value, state), instance, state)

    def _after(self, found, value, state):
        try:
            return self.ask(found, state)
        except Lines as error:
            # What is told as the input is what was given.
            raise Lines([Line(x.type, value if x.input is found else x.input, x.context, x.location, x.message) for x in error.lines])


class Plain(_Function):
    def validate(self, value, state):
        found = self.ask(value, state)
        state.floor(LAX)
        return found

    def validate_assignment(self, instance, name, value, state):
        return self.ask(instance, state)


class Wrap(_Function):
    def validate(self, value, state):
        return self.ask(value, state, Handler(lambda given: self.inner.validate(given, state), self.inner.name, state))

    def validate_assignment(self, instance, name, value, state):
        def go_on(given):
            return self.inner.validate_assignment(given, name, value, state)

        return self.ask(instance, state, Handler(go_on, self.inner.name, state))


class Handler:
    """What a wrapping function calls to have the rest done."""

    def __init__(self, validate, name, state):
        self._validate, self._name, self._state = validate, name, state

    def __call__(self, value, outer_location=None):
        try:
            return self._validate(value)
        except Lines as error:
            lines = error.lines if outer_location is None else below(error, outer_location).lines
            raise ValidationError._of("ValidatorCallable", lines, self._state.mode) from None

    def __repr__(self):
        return f"ValidatorCallable({self._name})"


class Default:
    """A validator with a value for where there is none."""

    def __init__(self, schema, build):
        self.inner = build(schema["schema"])
        self.name = f"default[{self.inner.name}]"
        self.value, self.factory = schema.get("default", PydanticUndefined), schema.get("default_factory")
        self.takes_data = bool(schema.get("default_factory_takes_data"))
        self.copies = self.value is not PydanticUndefined and _is_mutable(self.value, schema.get("copy_default", True))
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


def _is_mutable(value, wanted):
    return wanted and not isinstance(value, (str, bytes, int, float, bool, type(None), type))


class Nullable:
    """Takes `None`, and what another takes."""

    def __init__(self, schema, build):
        self.inner = build(schema["schema"])
        self.name = f"nullable[{self.inner.name}]"

    def validate(self, value, state):
        if value is None or (state.mode == "strings" and value == ""):
            return None
        return self.inner.validate(value, state)


class Union:
    """Takes what one of some validators takes: the one that it fits best, or the first."""

    def __init__(self, schema, build):
        self.choices = []
        for choice in schema["choices"]:
            choice, label = choice if isinstance(choice, tuple) else (choice, None)
            self.choices.append((build(choice), label))
        self.name = f"union[{','.join(label or choice.name for choice, label in self.choices)}]"
        self.is_ordered = schema.get("mode") == "left_to_right"
        self.custom = Custom.of(schema)

    def validate(self, value, state):
        lines: list = []
        best, omits = None, False
        outer = state.exactness, state.fields_set
        for choice, label in self.choices:
            state.exactness, state.fields_set = EXACT, None
            try:
                found = choice.validate(value, state)
            except PydanticOmit:
                omits = True
                continue
            except Lines as error:
                lines += below(error, label or choice.name).lines
                continue
            rank = (found, state.exactness, state.fields_set)
            if self.is_ordered or (state.exactness == EXACT and state.fields_set is None):
                best = rank
                break
            if best is None or _is_better(rank, best):
                best = rank
        state.exactness, state.fields_set = outer
        if best is not None:
            state.floor(best[1])
            if best[2] is not None:
                state.add_fields_set(best[2])
            return best[0]
        if omits:
            raise PydanticOmit
        raise self.custom.error(value) if self.custom else Lines(lines)


def _is_better(new, old):
    if new[2] is not None and old[2] is not None and new[2] != old[2]:
        return new[2] > old[2]
    return new[1] > old[1]


class TaggedUnion:
    """Takes what one of some validators takes, which a field or a function names."""

    def __init__(self, schema, build):
        self.choices = {tag: build(choice) for tag, choice in schema["choices"].items()}
        self.discriminator = schema["discriminator"]
        self.name = f"tagged-union[{','.join(choice.name for choice in self.choices.values())}]"
        self.from_attributes = option(schema, build.config, "from_attributes", default=True)
        self.custom = Custom.of(schema)
        self.shown = self._shown()

    def _shown(self):
        if callable(self.discriminator):
            return f"{getattr(self.discriminator, '__name__', 'function')}()"
        if isinstance(self.discriminator, str):
            return f"'{self.discriminator}'"
        paths = self.discriminator
        paths = paths if isinstance(paths[0], (list, tuple)) else [paths]
        return " | ".join(".".join(f"'{step}'" if isinstance(step, str) else str(step) for step in path) for path in paths)

    def validate(self, value, state):
        tag = self._tag(value, state)
        if tag is None:
            raise self.custom.error(value) if self.custom else fail("union_tag_not_found", value, discriminator=self.shown)
        if not isinstance(tag, (str, int)) or (isinstance(tag, str) and tag not in self.choices and hasattr(tag, "value")):
            tag = getattr(tag, "value", tag)
        choice = self.choices.get(tag)
        if choice is None:
            expected = ", ".join(repr(getattr(known, "value", known)) for known in self.choices)
            context = {"discriminator": self.shown, "tag": str(tag), "expected_tags": expected}
            raise self.custom.error(value) if self.custom else fail("union_tag_invalid", value, **context)
        try:
            return choice.validate(value, state)
        except Lines as error:
            raise below(error, tag) from None

    def _tag(self, value, state):
        if callable(self.discriminator):
            return self.discriminator(value)
        paths = [[self.discriminator]] if isinstance(self.discriminator, str) else self.discriminator
        paths = paths if isinstance(paths[0], (list, tuple)) else [paths]
        for path in paths:
            found = value
            for step in path:
                if isinstance(found, dict):
                    found = found.get(step)
                elif state.mode == "python" and self.from_attributes and isinstance(step, str):
                    found = getattr(found, step, None)
                else:
                    found = None
            if found is not None:
                return found
        if not isinstance(value, dict) and not (state.mode == "python" and hasattr(value, "__dict__")):
            raise fail("model_attributes_type" if self.from_attributes else "dict_type", value)
        return None


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


def parsed_json(text):
    """What JSON says; an error of the input if it says nothing."""
    try:
        return json.loads(text)
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


