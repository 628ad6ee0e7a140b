"""Validators of dataclasses."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from .errors import HEARD, Line, Lines, below, fail, of_exception
from .fields import Lookup
from .markers import ArgsKwargs, PydanticOmit
from .models import _first
from .scalars import option
from .state import STRICT


class DataclassArgs:
    """The fields of a dataclass: arguments in, and out a dictionary and what is for `__post_init__` alone."""

    name = "dataclass-args"

    def __init__(self, schema, build):
        config = build.config or {}
        self.fields = [(field, build(field["schema"]), Lookup(field["name"], field.get("validation_alias"))) for field in schema["fields"]]
        self.extra = schema.get("extra_behavior") or config.get("extra_fields_behavior") or "ignore"
        self.by_alias, self.by_name = config.get("validate_by_alias"), config.get("validate_by_name")
        self.collects = bool(schema.get("collect_init_only"))
        self.dataclass = schema["dataclass_name"]

    def validate(self, value, state):
        args, source = self._source(value)
        by_alias, by_name = _first(state.by_alias, self.by_alias, True), _first(state.by_name, self.by_name, False)
        found, only, lines, used = {}, [], [], set()
        positional = 0
        with state.scoped(data=found, field_name=None, has_field_error=False):
            for field, validator, lookup in self.fields:
                name = state.field_name = field["name"]
                if field.get("init") is False:
                    default = validator.default(state) if hasattr(validator, "default") else None
                    if default is not None:
                        found[name] = default.value
                    continue
                place, item = lookup.find(source, by_alias, by_name, used)
                if not field.get("kw_only", True) and positional < len(args):
                    item, positional, is_twice = args[positional], positional + 1, place is not None
                    if is_twice:
                        lines.append(Line("multiple_argument_values", item, None, (name,)))
                        continue
                    place = (positional - 1,)
                try:
                    if place is None:
                        default = validator.default(state) if hasattr(validator, "default") else None
                        if default is None:
                            lines.append(Line("missing", value, None, lookup.missing(by_alias, True)))
                            continue
                        result = default.value
                    else:
                        result = validator.validate(item, state)
                except PydanticOmit:
                    continue
                except Lines as error:
                    lines += below(error, *(place or (name,))).lines
                    state.has_field_error = True
                    continue
                if field.get("init_only"):
                    only.append(result)
                else:
                    found[name] = result
        for place, item in enumerate(args[positional:], positional):
            lines.append(Line("unexpected_positional_argument", item, None, (place,)))
        for key in source:
            if key not in used and self.extra != "ignore":
                if self.extra == "forbid":
                    lines.append(Line("unexpected_keyword_argument", source[key], None, (key,)))
                else:
                    found[key] = source[key]
        if lines:
            raise Lines(lines)
        return found, tuple(only) if self.collects else None

    def _source(self, value):
        if isinstance(value, ArgsKwargs):
            return tuple(value.args), value.kwargs or {}
        if isinstance(value, Mapping):
            return (), dict(value)
        raise fail("dataclass_type", value, class_name=self.dataclass)


class Dataclass:
    """Makes instances of a dataclass."""

    def __init__(self, schema, build):
        self.cls = schema["cls"]
        config = schema.get("config")
        inside = build.within(config) if config is not None else build
        self.inner = inside(schema["schema"])
        self.fields, self.post_init = schema["fields"], bool(schema.get("post_init"))
        self.strict = option(schema, inside.config, "strict", default=False)
        self.revalidate = (inside.config or {}).get("revalidate_instances", "never")
        self.frozen = bool(schema.get("frozen"))
        self.name = schema.get("cls_name") or self.cls.__name__

    def validate(self, value, state):
        if state.self_instance is not None:
            instance = state.self_instance
            with state.scoped(self_instance=None):
                return self._filled(instance, value, state)
        if isinstance(value, self.cls) and not isinstance(value, type):
            again = self.revalidate == "always" or (self.revalidate == "subclass-instances" and type(value) is not self.cls)
            if not again:
                return value
            value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
        elif state.mode == "python" and state.is_strict(self.strict):
            raise fail("dataclass_exact_type", value, class_name=self.name)
        state.floor(STRICT)
        return self._filled(self.cls.__new__(self.cls), value, state)

    def _filled(self, instance, value, state):
        found, only = self.inner.validate(value, state)
        for name, item in found.items():
            object.__setattr__(instance, name, item)
        if self.post_init:
            try:
                instance.__post_init__(*(only or ()))
            except HEARD as error:
                raise of_exception(error, value) from error
        return instance

    def validate_assignment(self, instance, name, value, state):
        if self.frozen:
            raise fail("frozen_instance", value)
        inner = self.inner
        while not isinstance(inner, DataclassArgs):
            inner = inner.inner
        for field, validator, _ in inner.fields:
            if field["name"] == name:
                if field.get("frozen"):
                    raise Lines([Line("frozen_field", value, None, (name,))])
                with state.scoped(data=dict(instance.__dict__), field_name=name):
                    try:
                        object.__setattr__(instance, name, validator.validate(value, state))
                    except Lines as error:
                        raise below(error, name) from None
                return instance
        raise Lines([Line("no_such_attribute", value, {"attribute": name}, (name,))])
