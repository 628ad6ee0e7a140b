"""Validators of models and of what has fields as they do."""

from __future__ import annotations

from collections.abc import Mapping

from .errors import HEARD, Line, Lines, below, fail, of_exception
from .fields import Lookup
from .markers import PydanticOmit, PydanticUndefined
from .scalars import option
from .state import STRICT, State


class Fields:
    """The fields of a model: a dictionary in, and out a dictionary, what is extra, and which were given."""

    name = "model-fields"

    def __init__(self, schema, build):
        config = build.config or {}
        self.fields = {
            name: (build(field["schema"]), Lookup(name, field.get("validation_alias")), bool(field.get("frozen")))
            for name, field in schema["fields"].items()
        }
        self.strict = option(schema, config, "strict", default=False)
        self.extra = schema.get("extra_behavior") or config.get("extra_fields_behavior") or "ignore"
        extras, keys = schema.get("extras_schema"), schema.get("extras_keys_schema")
        self.extras = None if extras is None else build(extras)
        self.extras_keys = None if keys is None else build(keys)
        self.from_attributes = option(schema, config, "from_attributes", default=False)
        self.by_alias, self.by_name = config.get("validate_by_alias"), config.get("validate_by_name")
        self.loc_by_alias = config.get("loc_by_alias", True)
        self.model = schema.get("model_name")
        #: Fields that need not be there.
        self.optional: set = set()

    def validate(self, value, state):
        source = self._source(value, state)
        strict = state.strict
        extra_behavior = state.extra or self.extra
        by_alias = _first(state.by_alias, self.by_alias, True)
        by_name = _first(state.by_name, self.by_name, False)
        found: dict = {}
        given: set = set()
        lines: list = []
        used: set = set()
        count = 0
        with state.scoped(data=found, field_name=None, has_field_error=False, strict=strict):
            for name, (validator, lookup, _) in self.fields.items():
                state.field_name = name
                try:
                    place, item = lookup.find(source, by_alias, by_name, used)
                except Exception as error:
                    said = f"{type(error).__name__}: {error}"
                    lines.append(Line("get_attribute_error", value, {"error": said}, (name,)))
                    continue
                try:
                    if place is not None:
                        kept = state.fields_set
                        found[name] = validator.validate(item, state)
                        state.fields_set = kept
                        given.add(name)
                        count += 1
                    else:
                        default = validator.default(state) if hasattr(validator, "default") else None
                        if default is not None:
                            found[name] = default.value
                        elif name not in self.optional:
                            state.has_field_error = True
                            lines.append(Line("missing", value, None, lookup.missing(by_alias, self.loc_by_alias)))
                except PydanticOmit:
                    continue
                except Lines as error:
                    outer = place if place is not None and self.loc_by_alias else (name,)
                    lines += below(error, *outer).lines
                    state.has_field_error = True
        extra = self._extra(source, extra_behavior, used, state, lines, given)
        state.add_fields_set(count)
        if lines:
            raise Lines(lines)
        return found, extra, given

    def _source(self, value, state):
        """What fields are found in: a mapping, or an object with attributes."""
        if isinstance(value, dict):
            return value
        strict = state.mode == "python" and state.is_strict(self.strict)
        if isinstance(value, Mapping) and not strict:
            return dict(value)
        attributes = _first(state.from_attributes, self.from_attributes, False)
        if state.mode == "python" and attributes and _has_attributes(value):
            return _Attributes(value)
        if attributes:
            raise fail("model_attributes_type", value)
        raise fail("model_type", value, class_name=self.model or "Model")

    def _extra(self, source, behavior, used, state, lines, given):
        if behavior == "ignore" or isinstance(source, _Attributes):
            return {} if behavior == "allow" else None
        extra = {}
        for key, item in source.items():
            if key in used:
                continue
            if not isinstance(key, str):
                lines.append(Line("invalid_key", key, None, (str(key),)))
            elif behavior == "forbid":
                lines.append(Line("extra_forbidden", item, None, (key,)))
            else:
                try:
                    name = key if self.extras_keys is None else self.extras_keys.validate(key, state)
                    extra[name] = item if self.extras is None else self.extras.validate(item, state)
                    given.add(name)
                except Lines as error:
                    lines += below(error, key).lines
        return extra if behavior == "allow" else None

    def validate_assignment(self, values, name, value, state):
        """The fields with one of them set anew."""
        values = dict(values)
        extra = {key: values.pop(key) for key in list(values) if key not in self.fields}
        behavior = state.extra or self.extra
        if name in self.fields:
            validator, _, frozen = self.fields[name]
            if frozen:
                raise Lines([Line("frozen_field", value, None, (name,))])
            before = {key: item for key, item in values.items() if key != name}
            with state.scoped(data=before, field_name=name):
                try:
                    values[name] = validator.validate(value, state)
                except Lines as error:
                    raise below(error, name) from None
        elif behavior == "allow":
            try:
                extra[name] = value if self.extras is None else self.extras.validate(value, state)
            except Lines as error:
                raise below(error, name) from None
        else:
            raise Lines([Line("no_such_attribute", value, {"attribute": name}, (name,))])
        return values, extra if behavior == "allow" else None, {name}


class _Attributes:
    """An object, asked for attributes as a mapping is for keys."""

    def __init__(self, value):
        self.value = value

    def __contains__(self, name):
        return hasattr(self.value, name)

    def __getitem__(self, name):
        return getattr(self.value, name)


def _has_attributes(value):
    plain = (str, bytes, int, float, bool, list, tuple, set, frozenset, dict, type(None), type)
    return not isinstance(value, plain) or hasattr(value, "_fields")


def _first(*values):
    return next((value for value in values if value is not None), None)


class TypedDict(Fields):
    """The fields of a dictionary whose keys are known."""

    name = "typed-dict"

    def __init__(self, schema, build):
        config = {**(build.config or {}), **(schema.get("config") or {})}
        super().__init__(schema, build.within(config))
        self.extra = schema.get("extra_behavior") or config.get("extra_fields_behavior") or "ignore"
        total = _first(schema.get("total"), config.get("typed_dict_total"), True)
        self.optional = {name for name, field in schema["fields"].items() if not _first(field.get("required"), total)}
        self.name = (schema.get("cls_name") or getattr(schema.get("cls"), "__name__", None)) or self.name

    def validate(self, value, state):
        if not isinstance(value, Mapping) or (
            not isinstance(value, dict) and state.mode == "python" and state.is_strict(self.strict)
        ):
            raise fail("dict_type", value)
        found, extra, _ = super().validate(value, state)
        return {**found, **(extra or {})}


class Model:
    """Makes instances of a model."""

    def __init__(self, schema, build):
        self.cls = schema["cls"]
        config = schema.get("config")
        inside = build.within(config) if config is not None else build
        self.inner = inside(schema["schema"])
        config = inside.config or {}
        self.name = config.get("title") or self.cls.__name__
        self.strict = option(schema, config, "strict", default=False)
        self.custom_init, self.is_root = bool(schema.get("custom_init")), bool(schema.get("root_model"))
        self.post_init, self.frozen = schema.get("post_init"), bool(schema.get("frozen"))
        self.revalidate = schema.get("revalidate_instances") or config.get("revalidate_instances") or "never"
        self.origin = schema.get("generic_origin")

    def validate(self, value, state):
        if state.self_instance is not None:
            instance, state_of = state.self_instance, state
            with state_of.scoped(self_instance=None):
                return self._filled(instance, value, state_of)
        is_own = isinstance(value, self.cls)
        if is_own or (self.origin is not None and isinstance(value, self.origin)):
            again = not is_own or self.revalidate == "always"
            again = again or (self.revalidate == "subclass-instances" and type(value) is not self.cls)
            if not again:
                return value
            inner = value.root if self.is_root else {**value.__dict__, **(value.__pydantic_extra__ or {})}
            return self._made(inner, state, value.__pydantic_fields_set__)
        state.floor(STRICT)
        return self._made(value, state)

    def _made(self, value, state, fields_set=None):
        if self.custom_init and isinstance(value, Mapping):
            try:
                return self.cls(**value)
            except HEARD as error:
                raise of_exception(error, value) from error
        return self._filled(self.cls.__new__(self.cls), value, state, fields_set)

    def _filled(self, instance, value, state, fields_set=None):
        put = object.__setattr__
        if self.is_root:
            with state.scoped(field_name="root"):
                root = self.inner.validate(value, state)
            put(instance, "__pydantic_fields_set__", set() if value is PydanticUndefined else {"root"})
            put(instance, "root", root)
        else:
            fields, extra, given = self.inner.validate(value, state)
            put(instance, "__dict__", fields)
            put(instance, "__pydantic_extra__", extra)
            put(instance, "__pydantic_private__", None)
            put(instance, "__pydantic_fields_set__", given if fields_set is None else fields_set)
        if self.post_init is not None:
            try:
                getattr(instance, self.post_init)(state.context)
            except HEARD as error:
                raise of_exception(error, value) from error
        return instance

    def validate_assignment(self, instance, name, value, state: State):
        if self.frozen:
            raise fail("frozen_instance", value)
        if self.is_root:
            if name != "root":
                raise Lines([Line("no_such_attribute", value, {"attribute": name}, (name,))])
            with state.scoped(field_name="root"):
                object.__setattr__(instance, "root", self.inner.validate(value, state))
            return instance
        values = {**instance.__dict__, **(instance.__pydantic_extra__ or {})}
        values[name] = value
        fields, extra, given = self.inner.validate_assignment(values, name, value, state)
        instance.__pydantic_fields_set__.update(given)
        object.__setattr__(instance, "__dict__", fields)
        object.__setattr__(instance, "__pydantic_extra__", extra)
        return instance

