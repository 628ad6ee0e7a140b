"""`SchemaSerializer`, and serialization without a schema."""

from __future__ import annotations

import collections
import contextlib
import json
import re
import warnings as python_warnings
from collections.abc import Mapping

from . import dumpers, owndumpers
from .errors import SchemaError
from .inferring import inferred
from .markers import PydanticSerializationError

_HELD = {"list": list, "set": set, "frozenset": frozenset, "deque": collections.deque}
_WRAPPED = {
    "custom-error": "schema",
    "function-after": "schema",
    "function-before": "schema",
    "function-wrap": "schema",
    "lax-or-strict": "strict_schema",
}
_KINDS = {
    "dataclass": owndumpers.Dataclass,
    "dataclass-args": owndumpers.Fields,
    "default": dumpers.Default,
    "definition-ref": dumpers.Reference,
    "dict": dumpers.Dict,
    "enum": dumpers.EnumDumper,
    "generator": dumpers.GeneratorDumper,
    "json": dumpers.Json,
    "json-or-python": dumpers.JsonOrPython,
    "literal": dumpers.Literal,
    "missing-sentinel": dumpers.MissingSentinel,
    "model": owndumpers.Model,
    "model-fields": owndumpers.Fields,
    "multi-host-url": dumpers.UrlDumper,
    "nullable": dumpers.Nullable,
    "tagged-union": dumpers.Union,
    "tuple": dumpers.Tuple,
    "typed-dict": owndumpers.Fields,
    "union": dumpers.Union,
    "url": dumpers.UrlDumper,
}
#: Of these a value's own type says how.
_INFERRED = frozenset(
    {"any", "arguments", "call", "callable", "function-plain", "is-instance", "is-subclass", "model-field"}
)


class Build:
    """Makes serializers of schemas, with the configuration and the definitions that hold where they stand."""

    def __init__(self, config, definitions):
        self.config, self.definitions = config, definitions

    def within(self, config):
        """The same under another configuration."""
        return Build(config, self.definitions)

    def __call__(self, schema):
        if schema["type"] == "definitions":
            for definition in schema["definitions"]:
                self(definition)
            return self(schema["schema"])
        made = self._made(schema)
        if schema.get("ref"):
            self.definitions[schema["ref"]] = made
        return made

    def _made(self, schema):
        own = schema.get("serialization")
        if own is None or own["type"].startswith("include-exclude"):
            return self._plain(schema)
        if own["type"] in ("function-plain", "function-wrap"):
            inner = own.get("schema")
            inside = self.within(schema["config"]) if schema.get("config") else self
            return owndumpers.Function(own, inside, self(inner) if inner else self._plain(schema))
        if own["type"] in ("to-string", "format"):
            return dumpers.Shown(own, self)
        return self._plain(own)

    def _plain(self, schema):
        kind = schema["type"]
        if kind in dumpers.SCALARS:
            return dumpers.Scalar(*dumpers.SCALARS[kind])
        if kind in _HELD:
            items = self(schema.get("items_schema") or {"type": "any"})
            return dumpers.Items(kind, _HELD[kind], items, schema.get("serialization"))
        if kind in _KINDS:
            return _KINDS[kind](schema, self)
        if kind in _WRAPPED:
            return dumpers.Around(self(schema[_WRAPPED[kind]]))
        if kind == "chain":
            return dumpers.Around(self(schema["steps"][-1]))
        if kind in _INFERRED:
            return dumpers.Dumper()
        raise SchemaError(f"pydantic's {kind!r} is not known in the sandbox, where pydantic has no native code")


class Dump:
    """One serialization, from its beginning to its end."""

    def __init__(self, mode="python", config=None, to_bytes=False, **options):
        config = config or {}
        self.mode, self.is_json, self.to_bytes = mode, mode == "json", to_bytes
        self.by_alias, self.context = options.get("by_alias"), options.get("context")
        self.exclude_unset = bool(options.get("exclude_unset"))
        self.exclude_defaults = bool(options.get("exclude_defaults"))
        self.exclude_none, self.round_trip = bool(options.get("exclude_none")), bool(options.get("round_trip"))
        self.exclude_computed = bool(options.get("exclude_computed_fields"))
        self.warns = options.get("warnings", True)
        self.fallback, self.serialize_as_any = options.get("fallback"), bool(options.get("serialize_as_any"))
        self.serialize_unknown = bool(options.get("serialize_unknown"))
        temporal = options.get("temporal_mode") or config.get("ser_json_temporal")
        self.timedelta_mode = temporal or options.get("timedelta_mode") or config.get("ser_json_timedelta") or "iso8601"
        self.temporal_mode = temporal or "iso8601"
        self.bytes_mode = options.get("bytes_mode") or config.get("ser_json_bytes") or "utf8"
        self.inf_nan = options.get("inf_nan_mode") or config.get("ser_json_inf_nan") or "null"
        #: The instance whose fields are serialized, and the field that is.
        self.model = self.field_name = None
        self.told: list[str] = []
        self._seen: set[int] = set()

    def of_other(self, serializer):
        """The same, for a value with a serializer of its own."""
        return self

    @contextlib.contextmanager
    def inside(self, value, is_model=False):
        """Against values that hold themselves."""
        if id(value) in self._seen and not is_model:
            raise ValueError("Circular reference detected (id repeated)")
        kept = self.model, self.field_name
        if is_model:
            self.model = value
        self._seen.add(id(value))
        try:
            yield
        finally:
            self._seen.discard(id(value))
            self.model, self.field_name = kept

    @contextlib.contextmanager
    def of_model(self, value):
        """The fields of an instance."""
        if id(value) in self._seen:
            raise ValueError("Circular reference detected (id repeated)")
        yield

    @contextlib.contextmanager
    def as_json(self):
        """For JSON within."""
        kept, self.is_json = self.is_json, True
        try:
            yield
        finally:
            self.is_json = kept

    def warn(self, expected, value):
        """A value is not what its schema says."""
        place = f"field_name={self.field_name!r}, " if self.field_name is not None else ""
        shown = repr(value)
        shown = shown if len(shown) <= 50 else f"{shown[:25]}...{shown[-24:]}"
        self.told.append(
            f"PydanticSerializationUnexpectedValue(Expected `{expected}` - serialized value may not be as expected "
            f"[{place}input_value={shown}, input_type={type(value).__name__}])"
        )

    def finish(self):
        """Tell what was odd, in the way that was asked for."""
        if not self.told or self.warns in (False, "none"):
            return
        message = "Pydantic serializer warnings:\n  " + "\n  ".join(self.told)
        if self.warns == "error":
            raise PydanticSerializationError(message)
        python_warnings.warn(message, UserWarning, stacklevel=4)


class SchemaSerializer:
    """Serializes by a schema."""

    def __init__(self, schema, config=None, _use_prebuilt=True):
        self._schema, self._config = schema, config
        self._dumper = Build(config, {})(schema)

    def __reduce__(self):
        return SchemaSerializer, (self._schema, self._config)

    def __repr__(self):
        return f"SchemaSerializer(serializer={self._dumper.name})"

    def _own_config(self):
        return self._config or self._schema.get("config") or {}

    def to_python(self, value, *, mode=None, include=None, exclude=None, **options):
        """A value as Python's own types."""
        _check_picks(include, exclude)
        dump = Dump(mode or "python", self._own_config(), **options)
        done = self._dumper.dump(value, dump, include, exclude)
        dump.finish()
        return done

    def to_json(self, value, *, indent=None, ensure_ascii=False, include=None, exclude=None, **options):
        """A value as JSON."""
        _check_picks(include, exclude)
        dump = Dump("json", self._own_config(), to_bytes=True, **options)
        done = self._dumper.dump(value, dump, include, exclude)
        dump.finish()
        return _bytes(done, indent, ensure_ascii)


def _check_picks(include, exclude):
    for name, rules in (("include", include), ("exclude", exclude)):
        if rules is not None and not isinstance(rules, (set, frozenset, Mapping)):
            raise TypeError(f"`{name}` argument must be a set or dict.")


def _bytes(value, indent, ensure_ascii=False):
    separators = (",", ":") if indent is None else (",", ": ")
    text = json.dumps(value, indent=indent, separators=separators, ensure_ascii=ensure_ascii)
    if "e-" in text:
        text = _SMALL.sub(_small, text)
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise PydanticSerializationError(f"Error serializing to JSON: UnicodeEncodeError: {error}") from None


#: A text, or a number that is written with a negative exponent.
_SMALL = re.compile(r'"(?:[^"\\]|\\.)*"|(-?)(\d)(?:\.(\d+))?e-0?(\d+)')


def _small(found):
    """Such a number as Rust writes it: 0.00001 and 1e-6, where Python has 1e-05 and 1e-06."""
    sign, first, rest, exponent = found.groups()
    if first is None:
        return found[0]
    if exponent == "5":
        return f"{sign}0.0000{first}{rest or ''}"
    return f"{sign}{first}{f'.{rest}' if rest else ''}e-{exponent}"


def to_json(value, *, indent=None, ensure_ascii=False, include=None, exclude=None, by_alias=True, inf_nan_mode="constants", **options):
    """A value as JSON, by what it is."""
    dump = Dump("json", to_bytes=True, by_alias=by_alias, inf_nan_mode=inf_nan_mode, **options)
    return _bytes(inferred(value, dump, include, exclude), indent, ensure_ascii)


def to_jsonable_python(value, *, include=None, exclude=None, by_alias=True, inf_nan_mode="constants", **options):
    """A value in what JSON has, by what it is."""
    return inferred(value, Dump("json", by_alias=by_alias, inf_nan_mode=inf_nan_mode, **options), include, exclude)


def from_json(data, *, allow_inf_nan=True, cache_strings=True, allow_partial=False):
    """What JSON says."""
    try:
        return json.loads(data)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg[:1].lower()}{error.msg[1:]} at line {error.lineno} column {error.colno}") from None


