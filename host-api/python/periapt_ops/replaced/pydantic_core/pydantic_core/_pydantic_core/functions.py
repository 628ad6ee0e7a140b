"""Validators that are a charm's own functions, with or without another validator."""

from __future__ import annotations

from .errors import HEARD, Line, Lines, ValidationError, below, of_exception
from .state import LAX, ValidationInfo


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
