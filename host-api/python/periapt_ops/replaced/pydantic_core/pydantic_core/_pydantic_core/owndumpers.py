"""Serializers of models, of dataclasses, and by functions of a charm's own."""

from __future__ import annotations

from .dumpers import EXACTLY, NOT, WELL, Around, Dumper, is_used
from .inferring import inferred, json_of, picked
from .markers import PydanticOmit, PydanticSerializationError, PydanticSerializationUnexpectedValue, PydanticUndefined, is_missing


class Fields(Dumper):
    """The fields of a model, of a dataclass or of a dictionary."""

    name = "fields"

    def __init__(self, schema, build):
        config = build.config or {}
        fields = schema["fields"]
        named = fields.items() if isinstance(fields, dict) else ((field["name"], field) for field in fields)
        self.fields = {name: _Field(name, field, build) for name, field in named if not field.get("init_only")}
        self.computed = [_Computed(field, build) for field in schema.get("computed_fields") or ()]
        self.by_alias = config.get("serialize_by_alias") or False
        extras = schema.get("extras_schema")
        self.extras = build(extras) if extras else Dumper()
        self.keeps_extra = (schema.get("extra_behavior") or config.get("extra_fields_behavior")) == "allow"
        self.keeps_unknown = schema["type"] == "typed-dict" and self.keeps_extra

    def dump(self, value, dump, include=None, exclude=None):
        return self.dumped(value, None, value, None, dump, include, exclude)

    def fits(self, value):
        return WELL if isinstance(value, dict) else NOT

    def dumped(self, values, extra, instance, given, dump, include, exclude):
        """The fields that are there, and what is computed; `given`: those that were set."""
        done = {}
        by_alias = self.by_alias if dump.by_alias is None else dump.by_alias
        with dump.inside(instance, is_model=True):
            for name, value in values.items():
                field = self.fields.get(name)
                if field is None:
                    if self.keeps_unknown:
                        done[name] = inferred(value, dump)
                    continue
                if field.is_out or (dump.exclude_unset and given is not None and name not in given):
                    continue
                keeps, inner, outer = picked(name, include, exclude)
                if keeps and not self._is_left_out(field, value, dump):
                    dump.field_name = name
                    try:
                        done[field.alias if by_alias else name] = field.dumper.dump(value, dump, inner, outer)
                    except PydanticOmit:
                        continue
            for name, value in (extra or {}).items() if self.keeps_extra else ():
                keeps, inner, outer = picked(name, include, exclude)
                if keeps and not (dump.exclude_none and value is None):
                    done[name] = self.extras.dump(value, dump, inner, outer)
            if not (dump.round_trip or dump.exclude_computed):
                for field in self.computed:
                    keeps, inner, outer = picked(field.name, include, exclude)
                    if keeps:
                        value = getattr(instance, field.name)
                        if not (dump.exclude_none and value is None) and not (field.exclude_if and field.exclude_if(value)):
                            dump.field_name = field.name
                            done[field.alias if by_alias else field.name] = field.dumper.dump(value, dump, inner, outer)
        return done

    def _is_left_out(self, field, value, dump):
        if dump.exclude_none and value is None:
            return True
        if field.exclude_if is not None and field.exclude_if(value):
            return True
        if is_missing(value):
            return True
        if not dump.exclude_defaults:
            return False
        default = field.dumper.default
        return default is not PydanticUndefined and value == default


class _Field:
    def __init__(self, name, field, build):
        self.dumper = build(field["schema"])
        alias = field.get("serialization_alias")
        self.alias = name if alias is None else alias
        self.is_out, self.exclude_if = bool(field.get("serialization_exclude")), field.get("serialization_exclude_if")


class _Computed:
    def __init__(self, field, build):
        self.name = field["property_name"]
        self.alias = field.get("alias") or self.name
        self.dumper, self.exclude_if = build(field["return_schema"]), field.get("serialization_exclude_if")


class Model(Dumper):
    """Instances of a model."""

    def __init__(self, schema, build):
        self.cls, self.is_root = schema["cls"], bool(schema.get("root_model"))
        config = schema.get("config")
        inside = build.within(config) if config is not None else build
        self.inner = inside(schema["schema"])
        self.name = (inside.config or {}).get("title") or self.cls.__name__

    def fits(self, value):
        if type(value) is self.cls:
            return EXACTLY
        return WELL if isinstance(value, self.cls) else NOT

    def dump(self, value, dump, include=None, exclude=None):
        if not isinstance(value, self.cls):
            return self.odd(value, dump, include, exclude)
        if dump.serialize_as_any and type(value) is not self.cls:
            return inferred(value, dump, include, exclude)
        with dump.of_model(value):
            if self.is_root:
                return self.inner.dump(value.root, dump, include, exclude)
            inner = self.inner
            while not isinstance(inner, Fields):
                if not isinstance(inner, Around):
                    return inner.dump(value, dump, include, exclude)
                inner = inner.inner
            extra, given = value.__pydantic_extra__, value.__pydantic_fields_set__
            return inner.dumped(value.__dict__, extra, value, given, dump, include, exclude)


class Dataclass(Dumper):
    """Instances of a dataclass."""

    def __init__(self, schema, build):
        self.cls = schema["cls"]
        config = schema.get("config")
        inside = build.within(config) if config is not None else build
        self.inner, self.fields = inside(schema["schema"]), schema["fields"]
        self.name = schema.get("cls_name") or self.cls.__name__

    def fits(self, value):
        if type(value) is self.cls:
            return EXACTLY
        return WELL if isinstance(value, self.cls) else NOT

    def dump(self, value, dump, include=None, exclude=None):
        if not isinstance(value, self.cls) or isinstance(value, type):
            return self.odd(value, dump, include, exclude)
        values = {name: getattr(value, name) for name in self.fields if hasattr(value, name)}
        inner = self.inner
        while isinstance(inner, Around):
            inner = inner.inner
        with dump.of_model(value):
            return inner.dumped(values, None, value, None, dump, include, exclude)


class Info:
    """What a charm's own serializer is told."""

    def __init__(self, dump, include, exclude, field_name):
        self.include, self.exclude, self.mode, self.context = include, exclude, dump.mode, dump.context
        self.by_alias, self.exclude_unset, self.exclude_defaults = bool(dump.by_alias), dump.exclude_unset, dump.exclude_defaults
        self.exclude_none, self.round_trip, self.serialize_as_any = dump.exclude_none, dump.round_trip, dump.serialize_as_any
        self.exclude_computed_fields, self.polymorphic_serialization = dump.exclude_computed, None
        if field_name is not None:
            self.field_name = field_name

    def mode_is_json(self):
        return self.mode == "json"


class Function(Dumper):
    """A function of a charm's own."""

    def __init__(self, schema, build, inner):
        self.call, self.is_field = schema["function"], bool(schema.get("is_field_serializer"))
        self.with_info, self.when = bool(schema.get("info_arg")), schema.get("when_used", "always")
        returned = schema.get("return_schema")
        self.returned = build(returned) if returned else Dumper()
        self.inner, self.wraps = inner, schema["type"] == "function-wrap"
        shown = getattr(self.call, "__qualname__", None) or repr(self.call)
        self.name = f"{schema['type']}[{shown.rpartition('.')[2]}]"

    @property
    def default(self):
        return self.inner.default

    def fits(self, value):
        return self.inner.fits(value)

    def dump(self, value, dump, include=None, exclude=None):
        if not is_used(self.when, value, dump):
            return self.inner.dump(value, dump, include, exclude)
        return self._asked(value, dump, include, exclude, self.returned.dump)

    def key(self, value, dump):
        if not is_used(self.when, value, dump):
            return self.inner.key(value, dump)
        return self._asked(value, dump, None, None, self.returned.key)

    def _asked(self, value, dump, include, exclude, go_on):
        arguments = [dump.model, value] if self.is_field else [value]
        if self.wraps:
            arguments.append(Handler(self.inner, dump, include, exclude))
        if self.with_info:
            arguments.append(Info(dump, include, exclude, dump.field_name if self.is_field else None))
        field_name = dump.field_name
        try:
            found = self.call(*arguments)
        except PydanticSerializationUnexpectedValue as error:
            dump.told.append(repr(error))
            return inferred(value, dump, include, exclude)
        except (PydanticSerializationError, PydanticOmit, RecursionError):
            raise
        except Exception as error:
            if dump.to_bytes:
                raise PydanticSerializationError(f"Error calling function `{self._shown}`: {type(error).__name__}: {error}") from error
            raise
        finally:
            dump.field_name = field_name
        if found is value and type(self.returned) is Dumper:
            # What serializes itself by this very function.
            return json_of(found, dump) if dump.is_json else found
        return go_on(found, dump)

    @property
    def _shown(self):
        return self.name.partition("[")[2][:-1]


class Handler:
    """What a wrapping serializer calls to have the rest done."""

    def __init__(self, inner, dump, include, exclude):
        self._inner, self._dump, self._picked = inner, dump, (include, exclude)

    def __call__(self, value, index_key=None):
        include, exclude = self._picked
        if index_key is not None:
            keeps, include, exclude = picked(index_key, include, exclude)
            if not keeps:
                raise PydanticOmit
        return self._inner.dump(value, self._dump, include, exclude)

    def __repr__(self):
        return f"SerializationCallable(serializer={self._inner.name})"

