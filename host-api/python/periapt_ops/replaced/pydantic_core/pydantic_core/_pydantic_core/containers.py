"""Validators of what holds other values."""

from __future__ import annotations

import collections as types
from collections.abc import Generator, Iterator, Mapping

from .errors import Line, Lines, below, fail
from .markers import PydanticOmit
from .scalars import option
from .state import LAX, STRICT

_VIEWS = (type({}.keys()), type({}.values()), type({}.items()))


class _Items:
    """What lists, sets and the like have in common."""

    name: str
    #: How errors call it, the type that it makes, and what fits it without conversion.
    kind: str
    shown: str
    made: type

    def __init__(self, schema, build):
        self.strict = option(schema, build.config, "strict", default=False)
        self.shortest, self.longest = schema.get("min_length"), schema.get("max_length")
        self.fails_fast = bool(schema.get("fail_fast"))
        items = schema.get("items_schema")
        # Of a tuple they are several.
        self.items = build(items) if isinstance(items, dict) else None
        self.name = f"{self.name}[{self.items.name if self.items else 'any'}]"

    def validate(self, value, state):
        return self.made(self.checked(self.opened(value, state), value, state))

    def opened(self, value, state):
        """The input, if it holds items in the way that is asked for."""
        if type(value) is self.made:
            return value
        if isinstance(value, self.made):
            state.floor(STRICT)
            return value
        if state.mode == "json" and isinstance(value, list):
            return value
        if state.mode == "python" and state.is_strict(self.strict) or not self.is_convertible(value):
            raise fail(self.kind, value)
        state.floor(LAX)
        return value

    def is_convertible(self, value):
        """Whether its items can be taken over."""
        return isinstance(value, (list, tuple, set, frozenset, types.deque, Generator, *_VIEWS))

    def checked(self, items, value, state):
        """Each item, validated."""
        done, lines = [], []
        for place, item in enumerate(_counted(items, value)):
            if self.items is None:
                done.append(item)
            else:
                try:
                    done.append(self.items.validate(item, state))
                except PydanticOmit:
                    continue
                except Lines as error:
                    lines += below(error, place).lines
                    if self.fails_fast:
                        break
            self.check_longest(done, value, items)
        if lines:
            raise Lines(lines)
        self.check_shortest(done, value)
        return done

    def check_longest(self, done, value, items):
        if self.longest is not None and len(done) > self.longest:
            actual = len(items) if hasattr(items, "__len__") else None
            raise fail("too_long", value, field_type=self.shown, max_length=self.longest, actual_length=actual or "more")

    def check_shortest(self, done, value):
        if self.shortest is not None and len(done) < self.shortest:
            raise fail("too_short", value, field_type=self.shown, min_length=self.shortest, actual_length=len(done))


def _counted(items, value):
    try:
        yield from items
    except Lines:
        raise
    except (RuntimeError, TypeError, ValueError) as error:
        raise fail("iteration_error", value, error=f"{type(error).__name__}: {error}") from None


class List(_Items):
    """Takes lists."""

    name, kind, shown, made = "list", "list_type", "List", list


class Deque(_Items):
    """Takes queues."""

    name, kind, shown, made = "deque", "deque_type", "Deque", types.deque


class _Sets(_Items):
    def checked(self, items, value, state):
        done: dict = {}
        lines = []
        for place, item in enumerate(_counted(items, value)):
            try:
                found = item if self.items is None else self.items.validate(item, state)
                done[found] = None
            except PydanticOmit:
                continue
            except TypeError as error:
                if "unhashable" not in str(error) and "hash" not in str(error):
                    raise
                lines.append(Line("set_item_not_hashable", item, None, (place,)))
            except Lines as error:
                lines += below(error, place).lines
            if lines and self.fails_fast:
                break
            self.check_longest(done, value, items)
        if lines:
            raise Lines(lines)
        self.check_shortest(done, value)
        return done


class SetOf(_Sets):
    """Takes sets."""

    name, kind, shown, made = "set", "set_type", "Set", set


class FrozenSetOf(_Sets):
    """Takes sets that do not change."""

    name, kind, shown, made = "frozenset", "frozen_set_type", "Frozenset", frozenset


class GeneratorOf(_Items):
    """Takes what can be iterated, and validates each item when it is asked for."""

    name, kind, shown, made = "generator", "iterable_type", "Generator", list

    def validate(self, value, state):
        try:
            items = iter(value)
        except TypeError:
            raise fail("iterable_type", value) from None
        return self._each(items, value, state)

    def _each(self, items, value, state) -> Iterator:
        from .errors import ValidationError

        for place, item in enumerate(items):
            try:
                yield item if self.items is None else self.items.validate(item, state)
            except Lines as error:
                raise ValidationError._of(self.name, below(error, place).lines, state.mode) from None


class Tuple(_Items):
    """Takes tuples: of so many items of one kind each, with as many as there are of one kind in between."""

    name, kind, shown, made = "tuple", "tuple_type", "Tuple", tuple

    def __init__(self, schema, build):
        self.each = [build(item) for item in schema["items_schema"]]
        super().__init__(schema, build)
        self.variadic = schema.get("variadic_item_index")
        names = [f"{item.name}, ..." if place == self.variadic else item.name for place, item in enumerate(self.each)]
        self.name = f"tuple[{', '.join(names)}]"

    def checked(self, items, value, state):
        given = list(_counted(items, value))
        if self.variadic is None:
            kinds = list(self.each)
            lines = [Line("missing", value, None, (place,)) for place in range(len(given), len(kinds))]
            if len(given) > len(kinds):
                size = {"field_type": "Tuple", "max_length": len(kinds), "actual_length": len(given)}
                raise Lines([Line("too_long", value, size)])
        else:
            before, after = self.each[: self.variadic], self.each[self.variadic + 1 :]
            between = len(given) - len(before) - len(after)
            kinds = [*before, *[self.each[self.variadic]] * max(0, between), *after]
            lines = [Line("missing", value, None, (place,)) for place in range(len(given), len(kinds))]
            if self.longest is not None and len(given) > self.longest:
                raise fail("too_long", value, field_type="Tuple", max_length=self.longest, actual_length=len(given))
        done = []
        found = []
        for place, (item, kind) in enumerate(zip(given, kinds)):
            try:
                done.append(kind.validate(item, state))
            except PydanticOmit:
                continue
            except Lines as error:
                found += below(error, place).lines
                if self.fails_fast:
                    break
        if found or lines:
            raise Lines(found + lines)
        self.check_shortest(done, value)
        return done


class Dict:
    """Takes dictionaries, and other mappings."""

    name = "dict"

    def __init__(self, schema, build):
        self.strict = option(schema, build.config, "strict", default=False)
        self.shortest, self.longest = schema.get("min_length"), schema.get("max_length")
        keys, values = schema.get("keys_schema"), schema.get("values_schema")
        self.keys, self.values = build(keys or {"type": "any"}), build(values or {"type": "any"})
        self.name = f"dict[{self.keys.name},{self.values.name}]"

    def validate(self, value, state):
        if not isinstance(value, dict):
            strict = state.mode == "python" and state.is_strict(self.strict)
            if strict or not isinstance(value, Mapping):
                raise fail("dict_type", value)
            state.floor(LAX)
        done, lines = {}, []
        for key, item in dict(value).items():
            place = key if isinstance(key, (str, int)) else str(key)
            try:
                found = self.keys.validate(key, state)
            except PydanticOmit:
                continue
            except Lines as error:
                lines += below(error, place, "[key]").lines
                found = None
            try:
                done[found] = self.values.validate(item, state)
            except PydanticOmit:
                continue
            except Lines as error:
                lines += below(error, place).lines
        if lines:
            raise Lines(lines)
        if self.shortest is not None and len(done) < self.shortest:
            raise fail("too_short", value, field_type="Dictionary", min_length=self.shortest, actual_length=len(done))
        if self.longest is not None and len(done) > self.longest:
            raise fail("too_long", value, field_type="Dictionary", max_length=self.longest, actual_length=len(done))
        return done


