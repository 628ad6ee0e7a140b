"""`SchemaValidator`: from a schema to what validates by it."""

from __future__ import annotations


from . import choices, containers, dates, functions, jsons, scalars, texts, unions, urls, wrapping
from .calls import Arguments, Call
from .dataclass import Dataclass, DataclassArgs
from .errors import Lines, SchemaError, ValidationError
from .markers import PydanticOmit, PydanticUseDefault, Some
from .models import Fields, Model, TypedDict
from .state import State

#: All that schemas can be of, here.
KINDS = {
    "any": scalars.Any,
    "arguments": Arguments,
    "bool": scalars.Bool,
    "bytes": texts.Bytes,
    "call": Call,
    "callable": choices.Callable,
    "chain": wrapping.Chain,
    "custom-error": wrapping.Custom,
    "dataclass": Dataclass,
    "dataclass-args": DataclassArgs,
    "date": dates.Date,
    "datetime": dates.DateTime,
    "decimal": scalars.DecimalNumber,
    "default": wrapping.Default,
    "definition-ref": wrapping.Reference,
    "deque": containers.Deque,
    "dict": containers.Dict,
    "enum": choices.EnumMember,
    "float": scalars.Float,
    "frozenset": containers.FrozenSetOf,
    "function-after": functions.After,
    "function-before": functions.Before,
    "function-plain": functions.Plain,
    "function-wrap": functions.Wrap,
    "generator": containers.GeneratorOf,
    "int": scalars.Int,
    "is-instance": choices.IsInstance,
    "is-subclass": choices.IsSubclass,
    "json": jsons.Json,
    "json-or-python": wrapping.JsonOrPython,
    "lax-or-strict": wrapping.LaxOrStrict,
    "list": containers.List,
    "literal": choices.Literal,
    "missing-sentinel": choices.MissingSentinel,
    "model": Model,
    "model-fields": Fields,
    "multi-host-url": urls.MultiHostUrlValidator,
    "none": scalars.NoneValue,
    "nullable": wrapping.Nullable,
    "set": containers.SetOf,
    "str": texts.Str,
    "tagged-union": unions.TaggedUnion,
    "time": dates.Time,
    "timedelta": dates.TimeDelta,
    "tuple": containers.Tuple,
    "typed-dict": TypedDict,
    "union": unions.Union,
    "url": urls.UrlValidator,
    "uuid": scalars.Uuid,
}


#: Keys that any schema may have, and that validate nothing.
_EVERYWHERE = frozenset({"type", "ref", "metadata", "serialization"})

#: Keys that are known and change nothing here, by kind.
_IGNORED = {
    # Of serialization alone.
    "dataclass-args": frozenset({"computed_fields"}),
    "model-fields": frozenset({"computed_fields"}),
    "typed-dict": frozenset({"computed_fields"}),
    # Attributes are set in the same way.
    "dataclass": frozenset({"slots"}),
    # Its choices have their own.
    "tagged-union": frozenset({"strict"}),
    # The class is asked instead.
    "enum": frozenset({"missing"}),
}


class _Asked(dict):
    """A schema, and which of its keys somebody asked for."""

    def __init__(self, schema):
        super().__init__(schema)
        self.keys_read = set()

    def __getitem__(self, key):
        self.keys_read.add(key)
        return super().__getitem__(key)

    def __contains__(self, key):
        self.keys_read.add(key)
        return super().__contains__(key)

    def get(self, key, default=None):
        """As of a dictionary."""
        self.keys_read.add(key)
        return super().get(key, default)


class Build:
    """Makes validators of schemas, with the configuration and the definitions that hold where they stand."""

    def __init__(self, config, definitions):
        self.config, self.definitions = config, definitions

    def within(self, config):
        """The same under another configuration."""
        return Build(config, self.definitions)

    def __call__(self, schema):
        kind = schema["type"]
        if kind == "definitions":
            for definition in schema["definitions"]:
                self(definition)
            return self(schema["schema"])
        if kind not in KINDS:
            raise SchemaError(f"pydantic's {kind!r} is not known in the sandbox, where pydantic has no native code")
        asked = _Asked(schema)
        made = KINDS[kind](asked, self)
        unknown = sorted(set(schema) - asked.keys_read - _EVERYWHERE - _IGNORED.get(kind, frozenset()))
        if unknown:
            raise SchemaError(f"{unknown[0]!r} of pydantic's {kind!r} is not known in the sandbox, where pydantic has no native code")
        if schema.get("ref"):
            self.definitions[schema["ref"]] = made
        return made


class SchemaValidator:
    """Validates by a schema."""

    def __init__(self, schema, config=None, _use_prebuilt=True):
        self._schema, self._config = schema, config
        self._validator = Build(config, {})(schema)
        self.title = (config or {}).get("title") or self._validator.name
        self._hides = bool((config or {}).get("hide_input_in_errors"))
        self._shows_cause = bool((config or {}).get("validation_error_cause"))

    def __reduce__(self):
        return SchemaValidator, (self._schema, self._config)

    def __repr__(self):
        return f"SchemaValidator(title={self.title!r})"

    def _run(self, state, validate):
        try:
            return validate()
        except Lines as error:
            made = ValidationError._of(self.title, error.lines, "json" if state.mode == "json" else "python", self._hides)
            if not self._shows_cause:
                raise made from None
            raise made from error.__cause__
        except PydanticUseDefault:
            raise SchemaError("Uncaught `PydanticUseDefault` exception: the error was raised in a field validator and no default value is available for that field.") from None
        except PydanticOmit:
            raise SchemaError("Uncaught `PydanticOmit` exception: the error was raised in a field validator and the field cannot be left out.") from None

    def validate_python(
        self,
        input,
        *,
        strict=None,
        extra=None,
        from_attributes=None,
        context=None,
        self_instance=None,
        allow_partial=False,
        by_alias=None,
        by_name=None,
    ):
        """Validate a value."""
        state = State("python", strict, context, from_attributes, extra, by_alias, by_name)
        state.self_instance = self_instance
        return self._run(state, lambda: self._validator.validate(input, state))

    def isinstance_python(self, input, *, strict=None, extra=None, from_attributes=None, context=None, self_instance=None, by_alias=None, by_name=None):
        """Whether a value is valid."""
        try:
            self.validate_python(
                input,
                strict=strict,
                extra=extra,
                from_attributes=from_attributes,
                context=context,
                self_instance=self_instance,
                by_alias=by_alias,
                by_name=by_name,
            )
        except ValidationError:
            return False
        return True

    def validate_json(
        self,
        input,
        *,
        strict=None,
        extra=None,
        context=None,
        self_instance=None,
        allow_partial=False,
        by_alias=None,
        by_name=None,
    ):
        """Validate what JSON says."""
        state = State("json", strict, context, None, extra, by_alias, by_name)
        state.self_instance = self_instance
        if not isinstance(input, (str, bytes, bytearray)):
            raise ValidationError.from_exception_data(self.title, [{"type": "json_type", "loc": (), "input": input}])
        return self._run(state, lambda: self._validator.validate(jsons.parsed_json(input), state))

    def validate_strings(self, input, *, strict=None, extra=None, context=None, allow_partial=False, by_alias=None, by_name=None):
        """Validate texts, each for what it says."""
        state = State("strings", strict, context, None, extra, by_alias, by_name)
        return self._run(state, lambda: self._validator.validate(input, state))

    def validate_assignment(
        self,
        obj,
        field_name,
        field_value,
        *,
        strict=None,
        extra=None,
        from_attributes=None,
        context=None,
        by_alias=None,
        by_name=None,
    ):
        """Validate what a field is set to, and set it."""
        state = State("python", strict, context, from_attributes, extra, by_alias, by_name)
        return self._run(state, lambda: self._validator.validate_assignment(obj, field_name, field_value, state))

    def get_default_value(self, *, strict=None, context=None) -> Some | None:
        """The value for where there is none, if there is one."""
        state = State("python", strict, context)
        if not hasattr(self._validator, "default"):
            return None
        return self._run(state, lambda: self._validator.default(state))


