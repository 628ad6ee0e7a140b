"""Serializers, one for each kind of schema that asks for more than a value's own type does."""

from __future__ import annotations

import datetime
import json
import uuid
from decimal import Decimal

from .inferring import inferred, json_of, key_of, picked
from .markers import PydanticSerializationError, PydanticUndefined, is_missing

#: How well a value fits a serializer: not, as an instance of a subclass, as what it is for.
NOT, WELL, EXACTLY = 0, 1, 2


class Dumper:
    """Serializes whatever it is given by what it is."""

    name = "any"
    default = PydanticUndefined

    def fits(self, value):
        return WELL

    def dump(self, value, dump, include=None, exclude=None):
        return inferred(value, dump, include, exclude)

    def key(self, value, dump):
        """As a key of a dictionary in JSON."""
        return key_of(value, dump)

    def odd(self, value, dump, include=None, exclude=None):
        """What is not what it should be: told, and serialized by what it is."""
        if value is not None:
            dump.warn(self.name, value)
        return inferred(value, dump, include, exclude)


class Scalar(Dumper):
    """Single values of one type."""

    def __init__(self, name, cls, never=()):
        self.name, self.cls, self.never = name, cls, never

    def fits(self, value):
        if type(value) is self.cls:
            return EXACTLY
        return WELL if isinstance(value, self.cls) and not isinstance(value, self.never) else NOT

    def dump(self, value, dump, include=None, exclude=None):
        if not self.fits(value):
            return self.odd(value, dump)
        return value if not dump.is_json else json_of(value, dump)


SCALARS = {
    "none": ("none", type(None)),
    "bool": ("bool", bool),
    "int": ("int", int, (bool,)),
    "float": ("float", (float, int)),
    "str": ("str", str),
    "bytes": ("bytes", (bytes, bytearray)),
    "decimal": ("decimal", Decimal),
    "datetime": ("datetime", datetime.datetime),
    "date": ("date", datetime.date, (datetime.datetime,)),
    "time": ("time", datetime.time),
    "timedelta": ("timedelta", datetime.timedelta),
    "uuid": ("uuid", uuid.UUID),
}


class Literal(Dumper):
    """Certain values."""

    name = "literal"

    def __init__(self, schema, build):
        self.expected = schema["expected"]

    def fits(self, value):
        # With `use_enum_values` the value of a member stands for it.
        return EXACTLY if any(value in (item, getattr(item, "value", item)) for item in self.expected) else NOT

    def dump(self, value, dump, include=None, exclude=None):
        return inferred(value, dump) if self.fits(value) else self.odd(value, dump)


class EnumDumper(Dumper):
    """Members of an enumeration."""

    name = "enum"

    def __init__(self, schema, build):
        self.cls = schema["cls"]
        self.name = self.cls.__name__

    def fits(self, value):
        return EXACTLY if isinstance(value, self.cls) else NOT

    def dump(self, value, dump, include=None, exclude=None):
        if not isinstance(value, self.cls):
            return self.odd(value, dump)
        return inferred(value.value, dump) if dump.is_json else value


class Items(Dumper):
    """Lists, sets and the like."""

    def __init__(self, kind, cls, items, picks):
        self.name, self.cls, self.items, self.picks = f"{kind}[{items.name}]", cls, items, picks

    def fits(self, value):
        if not isinstance(value, self.cls):
            return NOT
        return min((self.items.fits(item) for item in value), default=EXACTLY)

    def dump(self, value, dump, include=None, exclude=None):
        if not isinstance(value, self.cls):
            return self.odd(value, dump, include, exclude)
        done = []
        with dump.inside(value):
            for place, item in enumerate(value):
                keeps, inner, outer = self.pick(place, include, exclude, len(value))
                if keeps:
                    done.append(self.at(place, len(value)).dump(item, dump, inner, outer))
        return done if dump.is_json else self.cls(done)

    def pick(self, place, include, exclude, length):
        if self.cls in (set, frozenset):
            # They have no places.
            return True, None, None
        if self.picks is not None:
            keeps, _, _ = picked(place, self.picks.get("include"), self.picks.get("exclude"), length)
            if not keeps:
                return False, None, None
        return picked(place, include, exclude, length)

    def at(self, place, length):
        return self.items


class Tuple(Items):
    """Tuples, with a serializer for each place."""

    def __init__(self, schema, build):
        self.each, self.variadic = [build(item) for item in schema["items_schema"]], schema.get("variadic_item_index")
        self.name, self.cls = f"tuple[{', '.join(item.name for item in self.each)}]", tuple
        self.picks, self.any = schema.get("serialization"), Dumper()

    def fits(self, value):
        if not isinstance(value, tuple):
            return NOT
        if self.variadic is None and len(value) != len(self.each):
            return NOT
        return min((self.at(place, len(value)).fits(item) for place, item in enumerate(value)), default=EXACTLY)

    def at(self, place, length):
        if self.variadic is not None and place >= self.variadic:
            after = len(self.each) - self.variadic - 1
            place = max(self.variadic, len(self.each) - (length - place)) if length - place <= after else self.variadic
        return self.each[place] if place < len(self.each) else self.any


class Dict(Dumper):
    """Dictionaries."""

    def __init__(self, schema, build):
        self.keys, self.values = build(schema.get("keys_schema") or {"type": "any"}), build(schema.get("values_schema") or {"type": "any"})
        self.name, self.picks = f"dict[{self.keys.name}, {self.values.name}]", schema.get("serialization") or {}

    def fits(self, value):
        if not isinstance(value, dict):
            return NOT
        both = [dumper.fits(item) for pair in value.items() for dumper, item in zip((self.keys, self.values), pair)]
        return min(both, default=EXACTLY)

    def dump(self, value, dump, include=None, exclude=None):
        if not isinstance(value, dict):
            return self.odd(value, dump, include, exclude)
        done = {}
        with dump.inside(value):
            for key, item in value.items():
                keeps, _, _ = picked(key, self.picks.get("include"), self.picks.get("exclude"))
                also, inner, outer = picked(key, include, exclude)
                if keeps and also:
                    found = self.keys.key(key, dump) if dump.is_json else self.keys.dump(key, dump)
                    done[found] = self.values.dump(item, dump, inner, outer)
        return done


class Around(Dumper):
    """What another one serializes."""

    def __init__(self, inner):
        self.inner = inner
        self.name = inner.name

    def fits(self, value):
        return self.inner.fits(value)

    def dump(self, value, dump, include=None, exclude=None):
        return self.inner.dump(value, dump, include, exclude)

    def key(self, value, dump):
        return self.inner.key(value, dump)


class Default(Around):
    """What has a default, which may be left out."""

    def __init__(self, schema, build):
        super().__init__(build(schema["schema"]))
        self.value, self.factory = schema.get("default", PydanticUndefined), schema.get("default_factory")
        self.takes_data = bool(schema.get("default_factory_takes_data"))

    @property
    def default(self):
        if self.factory is not None:
            return PydanticUndefined if self.takes_data else self.factory()
        return self.value


class Nullable(Around):
    """`None`, or what another one serializes."""

    def __init__(self, schema, build):
        super().__init__(build(schema["schema"]))
        self.name = f"nullable[{self.inner.name}]"

    def fits(self, value):
        return EXACTLY if value is None else self.inner.fits(value)

    def dump(self, value, dump, include=None, exclude=None):
        return None if value is None else self.inner.dump(value, dump, include, exclude)

    def key(self, value, dump):
        return "None" if value is None else self.inner.key(value, dump)


class JsonOrPython(Dumper):
    """One for JSON, another one for values."""

    def __init__(self, schema, build):
        self.json, self.python = build(schema["json_schema"]), build(schema["python_schema"])
        self.name = f"json-or-python[json={self.json.name}, python={self.python.name}]"

    def fits(self, value):
        return max(self.json.fits(value), self.python.fits(value))

    def dump(self, value, dump, include=None, exclude=None):
        return (self.json if dump.is_json else self.python).dump(value, dump, include, exclude)


class Union(Dumper):
    """What one of several serializes: the one that a value fits best."""

    def __init__(self, schema, build):
        choices = schema["choices"]
        choices = choices.values() if isinstance(choices, dict) else choices
        self.choices = [build(choice[0] if isinstance(choice, tuple) else choice) for choice in choices]
        self.name = f"Union[{', '.join(choice.name for choice in self.choices)}]"

    def _choice(self, value):
        fits = [choice.fits(value) for choice in self.choices]
        best = max(fits, default=NOT)
        return None if best == NOT else self.choices[fits.index(best)]

    def fits(self, value):
        return max((choice.fits(value) for choice in self.choices), default=NOT)

    def dump(self, value, dump, include=None, exclude=None):
        choice = self._choice(value)
        if choice is None:
            return self.odd(value, dump, include, exclude)
        return choice.dump(value, dump, include, exclude)


class Reference(Around):
    """Another one, by its name: it may not be there yet when this one is built."""

    def __init__(self, schema, build):
        self._key, self._definitions = schema["schema_ref"], build.definitions
        self.name = "..."

    @property
    def inner(self):
        return self._definitions[self._key]


class MissingSentinel(Around):
    """What another one serializes, or the value that says that a field is not there, which models leave out."""

    def __init__(self, schema, build):
        super().__init__(build(schema["schema"]) if schema.get("schema") else Dumper())

    def fits(self, value):
        return EXACTLY if is_missing(value) else self.inner.fits(value)

    def dump(self, value, dump, include=None, exclude=None):
        if not is_missing(value):
            return self.inner.dump(value, dump, include, exclude)
        if dump.to_bytes:
            raise PydanticSerializationError("Error serializing to JSON: 'MISSING' can't be serialized to JSON")
        return value


class Json(Around):
    """What was read from JSON, and becomes it again where that is asked for."""

    def __init__(self, schema, build):
        super().__init__(build(schema.get("schema") or {"type": "any"}))

    def dump(self, value, dump, include=None, exclude=None):
        if not dump.round_trip:
            return self.inner.dump(value, dump, include, exclude)
        with dump.as_json():
            return json.dumps(self.inner.dump(value, dump, include, exclude), separators=(",", ":"), ensure_ascii=False)


class GeneratorDumper(Dumper):
    """What is iterated, item by item."""

    name = "generator"

    def __init__(self, schema, build):
        self.items = build(schema.get("items_schema") or {"type": "any"})

    def dump(self, value, dump, include=None, exclude=None):
        done = (self.items.dump(item, dump) for item in value)
        return list(done) if dump.is_json else done


class Shown(Dumper):
    """A text, by `str()` or by a format."""

    def __init__(self, schema, build):
        self.format = schema.get("formatting_string")
        self.when, self.name = schema.get("when_used", "json-unless-none"), schema["type"]

    def dump(self, value, dump, include=None, exclude=None):
        if not is_used(self.when, value, dump):
            return value if not dump.is_json else inferred(value, dump)
        if self.format is None:
            return str(value)
        try:
            return format(value, self.format)
        except Exception as error:
            raise PydanticSerializationError(f"Error calling `format(value, {self.format!r})`: {error}") from None


def is_used(when, value, dump):
    """Whether a serializer of its own counts here."""
    if when.startswith("json") and not dump.is_json:
        return False
    return not (when.endswith("unless-none") and value is None)


class UrlDumper(Scalar):
    """URLs."""

    def __init__(self, schema, build):
        from .urls import MultiHostUrl, Url

        super().__init__(schema["type"], MultiHostUrl if schema["type"] == "multi-host-url" else Url)



