"""Errors: of one line each while a value is validated, together in one `ValidationError` at its end."""

from __future__ import annotations

import os

from .messages import OF_JSON, TEMPLATES, rendered
from .markers import PydanticOmit, PydanticUseDefault


class SchemaError(Exception):
    """A schema that nothing can be validated or serialized by."""

    def error_count(self):
        return 1

    def errors(self):
        return []


class Line:
    """One error at one place of the input."""

    __slots__ = ("context", "input", "location", "message", "type")

    def __init__(self, type, input, context=None, location=(), message=None):
        self.type, self.input, self.context = type, input, context
        self.location = location
        #: A template of its own, for errors that charms define.
        self.message = message

    def below(self, *outer):
        """The same error, seen from further out."""
        return Line(self.type, self.input, self.context, outer + self.location, self.message)

    def text(self, mode):
        template = self.message
        if template is None:
            template = (OF_JSON.get(self.type) if mode == "json" else None) or TEMPLATES[self.type]
        return rendered(template, self.context)


class Lines(Exception):
    """What validators raise, until it leaves the outermost one."""

    def __init__(self, lines):
        self.lines = lines


def fail(type, input, **context):
    """An error of one line, to raise."""
    return Lines([Line(type, input, context or None)])


def below(error: Lines, *outer) -> Lines:
    """An error seen from further out."""
    return Lines([line.below(*outer) for line in error.lines])


def of_exception(error: BaseException, input) -> BaseException:
    """What an exception of a charm's own function means: an error of the input, or itself."""
    if isinstance(error, PydanticCustomError):
        return Lines([Line(error.type, input, error.context, message=error.message_template)])
    if isinstance(error, PydanticKnownError):
        return Lines([Line(error.type, input, error.context)])
    if isinstance(error, ValidationError):
        return Lines(list(error._lines))
    if isinstance(error, AssertionError):
        return Lines([Line("assertion_error", input, {"error": error})])
    if isinstance(error, ValueError):
        return Lines([Line("value_error", input, {"error": error})])
    return error


class PydanticCustomError(ValueError):
    """An error of a charm's own, with a type and a message of its own."""

    def __new__(cls, error_type, message_template, context=None, /):
        made = super().__new__(cls, error_type, message_template, context)
        made.type, made.message_template, made.context = error_type, message_template, context
        return made

    def __init__(self, *_arguments):
        """Do nothing: a class below may make its instances of other arguments."""

    def message(self):
        return rendered(self.message_template, self.context)

    def __str__(self):
        return self.message()

    def __repr__(self):
        return f"{self.message()} [type={self.type}, context={self.context!r}]"


class PydanticKnownError(ValueError):
    """One of pydantic's own errors, raised by hand."""

    def __init__(self, error_type, context=None, /):
        if error_type not in TEMPLATES:
            raise KeyError(f"Invalid error type: '{error_type}'")
        super().__init__(error_type, context)
        self.type, self.context = error_type, context
        self.message_template = TEMPLATES[error_type]

    def message(self):
        return rendered(self.message_template, self.context)

    def __str__(self):
        return self.message()

    def __repr__(self):
        return f"{self.message()} [type={self.type}, context={self.context!r}]"


class ValidationError(ValueError):
    """Why an input is not what a schema says."""

    def __init__(self, *_arguments):
        raise TypeError("No constructor defined for ValidationError")

    @classmethod
    def _of(cls, title, lines, mode="python", hide_input=False):
        made = cls.__new__(cls)
        made.title, made._lines, made._mode, made._hides = title, lines, mode, hide_input
        return made

    @classmethod
    def from_exception_data(cls, title, line_errors, input_type="python", hide_input=False):
        """Make one by hand."""
        lines = []
        for given in line_errors:
            kind, context = given["type"], given.get("ctx")
            message = None
            if isinstance(kind, PydanticCustomError):
                kind, context, message = kind.type, kind.context, kind.message_template
            elif kind not in TEMPLATES:
                raise KeyError(f"Invalid error type: '{kind}'")
            lines.append(Line(kind, given.get("input"), context, tuple(given.get("loc", ())), message))
        return cls._of(title, lines, input_type, hide_input)

    def error_count(self):
        return len(self._lines)

    def errors(self, *, include_url=True, include_context=True, include_input=True):
        """Each error as a dictionary."""
        return [self._details(line, include_url, include_context, include_input) for line in self._lines]

    def _details(self, line, include_url, include_context, include_input):
        details = {"type": line.type, "loc": line.location, "msg": line.text(self._mode)}
        if include_input:
            details["input"] = line.input
        if include_context and line.context:
            details["ctx"] = line.context
        if include_url and line.message is None:
            details["url"] = _url(line.type)
        return details

    def json(self, *, indent=None, include_url=True, include_context=True, include_input=True):
        """The same in JSON."""
        from .dumping import to_json

        given = self.errors(include_url=include_url, include_context=include_context, include_input=include_input)
        for error in given:
            # An exception of the charm's own is said in its words.
            if isinstance(error.get("ctx", {}).get("error"), Exception):
                error["ctx"] = {**error["ctx"], "error": str(error["ctx"]["error"])}
        return to_json(given, indent=indent, serialize_unknown=True).decode()

    def __str__(self):
        count = len(self._lines)
        parts = [f"{count} validation error{'' if count == 1 else 's'} for {self.title}"]
        for line in self._lines:
            if line.location:
                parts.append(".".join(map(_of_location, line.location)))
            said = f"  {line.text(self._mode)} [type={line.type}"
            if not self._hides:
                said += f", input_value={_shortened(line.input)}, input_type={type(line.input).__name__}"
            parts.append(said + "]")
            if line.message is None and _urls_are_shown():
                parts.append(f"    For further information visit {_url(line.type)}")
        return "\n".join(parts)

    def __repr__(self):
        return str(self)

    def __reduce__(self):
        return _again, (self.title, [(x.type, x.input, x.context, x.location, x.message) for x in self._lines], self._mode)


def _again(title, lines, mode):
    return ValidationError._of(title, [Line(*line) for line in lines], mode)


def _of_location(part):
    text = str(part)
    return f"`{text}`" if isinstance(part, str) and "." in text else text


def _shortened(value):
    """At most 50 characters of what a value looks like."""
    try:
        text = repr(value)
    except Exception:
        text = f"<unprintable {type(value).__name__} object>"
    return text if len(text) <= 50 else f"{text[:25]}...{text[-24:]}"


def _urls_are_shown():
    return os.environ.get("PYDANTIC_ERRORS_INCLUDE_URL", "1").lower() in ("1", "true", "yes", "on")


def _url(type):
    try:
        from pydantic.version import VERSION

        version = ".".join(VERSION.split(".")[:2])
    except ImportError:
        version = "latest"
    return f"https://errors.pydantic.dev/{version}/v/{type}"


def list_all_errors():
    """All kinds of errors."""
    return [
        {"type": kind, "message_template_python": text, "example_message_python": text, "example_context": None}
        for kind, text in TEMPLATES.items()
    ]


#: What a charm's function may raise to be heard by a validator.
HEARD = (ValueError, AssertionError, PydanticOmit, PydanticUseDefault)
