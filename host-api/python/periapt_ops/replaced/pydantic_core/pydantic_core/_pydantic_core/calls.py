"""Validators of calls: what `validate_call` makes of a function."""

from __future__ import annotations

from collections.abc import Mapping

from .errors import Line, Lines, SchemaError, below, fail
from .fields import Lookup
from .markers import ArgsKwargs
from .models import _first


class Arguments:
    """The arguments of a function."""

    name = "arguments"

    def __init__(self, schema, build):
        config = build.config or {}
        self.parameters = [
            (one["name"], one.get("mode", "positional_or_keyword"), build(one["schema"]), Lookup(one["name"], one.get("alias")))
            for one in schema["arguments_schema"]
        ]
        if schema.get("var_kwargs_mode", "uniform") != "uniform":
            raise SchemaError("`**kwargs: Unpack[...]` is not known in the sandbox, where pydantic has no native code")
        args, kwargs = schema.get("var_args_schema"), schema.get("var_kwargs_schema")
        self.args, self.kwargs = build(args) if args else None, build(kwargs) if kwargs else None
        self.by_alias, self.by_name = config.get("validate_by_alias"), config.get("validate_by_name")

    def validate(self, value, state):
        args, named = _split(value)
        by_alias, by_name = _first(state.by_alias, self.by_alias, True), _first(state.by_name, self.by_name, False)
        lines, used, given, keywords = [], set(), [], {}
        count = 0
        for place, (name, mode, validator, lookup) in enumerate(self.parameters):
            path, item = (None, None) if mode == "positional_only" else lookup.find(named, by_alias, by_name, used)
            is_positional = mode != "keyword_only" and count < len(args)
            if is_positional:
                item, count = args[count], count + 1
                if path is not None:
                    lines.append(Line("multiple_argument_values", item, None, path))
                    continue
                path = (place,)
            try:
                if path is not None:
                    found = validator.validate(item, state)
                else:
                    default = validator.default(state) if hasattr(validator, "default") else None
                    if default is None:
                        kind = {"positional_only": "missing_positional_only_argument", "keyword_only": "missing_keyword_only_argument"}
                        at = (place,) if mode == "positional_only" else lookup.missing(by_alias, True)
                        lines.append(Line(kind.get(mode, "missing_argument"), value, None, at))
                        continue
                    found = default.value
            except Lines as error:
                lines += below(error, *(path or (name,))).lines
                continue
            if mode == "keyword_only" or (not is_positional and mode != "positional_only" and len(given) < place):
                keywords[name] = found
            elif mode == "keyword_only" or (path is not None and not is_positional):
                keywords[name] = found
            else:
                given.append(found)
        for place, item in enumerate(args[count:], count):
            given.append(self._more(self.args, item, place, "unexpected_positional_argument", lines, state))
        for key, item in named.items():
            if key not in used:
                keywords[key] = self._more(self.kwargs, item, key, "unexpected_keyword_argument", lines, state)
        if lines:
            raise Lines(lines)
        return tuple(given), keywords

    def _more(self, validator, item, place, kind, lines, state):
        if validator is None:
            lines.append(Line(kind, item, None, (place,)))
            return None
        try:
            return validator.validate(item, state)
        except Lines as error:
            lines += below(error, place).lines
        return None


def _split(value):
    if isinstance(value, ArgsKwargs):
        return tuple(value.args), dict(value.kwargs or {})
    if isinstance(value, Mapping):
        return (), dict(value)
    if isinstance(value, (list, tuple)):
        return tuple(value), {}
    raise fail("arguments_type", value)


class Call:
    """A function that is called with validated arguments."""

    name = "call"

    def __init__(self, schema, build):
        self.arguments, self.function = build(schema["arguments_schema"]), schema["function"]
        self.returned = build(schema["return_schema"]) if schema.get("return_schema") else None
        self.name = schema.get("function_name") or getattr(self.function, "__name__", "call")

    def validate(self, value, state):
        args, kwargs = self.arguments.validate(value, state)
        result = self.function(*args, **kwargs)
        if self.returned is None:
            return result
        try:
            return self.returned.validate(result, state)
        except Lines as error:
            raise below(error, "return") from None
