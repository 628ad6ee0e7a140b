"""Validators of what may be of several kinds."""

from __future__ import annotations

from .errors import Lines, below, fail
from .markers import PydanticOmit
from .scalars import option
from .state import EXACT
from .wrapping import Custom


class Union:
    """Takes what one of some validators takes: the one that it fits best, or the first."""

    def __init__(self, schema, build):
        self.choices = []
        for choice in schema["choices"]:
            choice, label = choice if isinstance(choice, tuple) else (choice, None)
            self.choices.append((build(choice), label))
        self.name = f"union[{','.join(label or choice.name for choice, label in self.choices)}]"
        self.is_ordered = schema.get("mode") == "left_to_right"
        self.custom = Custom.of(schema)

    def validate(self, value, state):
        lines: list = []
        best, omits = None, False
        outer = state.exactness, state.fields_set
        for choice, label in self.choices:
            state.exactness, state.fields_set = EXACT, None
            try:
                found = choice.validate(value, state)
            except PydanticOmit:
                omits = True
                continue
            except Lines as error:
                lines += below(error, label or choice.name).lines
                continue
            rank = (found, state.exactness, state.fields_set)
            if self.is_ordered or (state.exactness == EXACT and state.fields_set is None):
                best = rank
                break
            if best is None or _is_better(rank, best):
                best = rank
        state.exactness, state.fields_set = outer
        if best is not None:
            state.floor(best[1])
            if best[2] is not None:
                state.add_fields_set(best[2])
            return best[0]
        if omits:
            raise PydanticOmit
        raise self.custom.error(value) if self.custom else Lines(lines)


def _is_better(new, old):
    if new[2] is not None and old[2] is not None and new[2] != old[2]:
        return new[2] > old[2]
    return new[1] > old[1]


class TaggedUnion:
    """Takes what one of some validators takes, which a field or a function names."""

    def __init__(self, schema, build):
        self.choices = {tag: build(choice) for tag, choice in schema["choices"].items()}
        self.discriminator = schema["discriminator"]
        self.name = f"tagged-union[{','.join(choice.name for choice in self.choices.values())}]"
        self.from_attributes = option(schema, build.config, "from_attributes", default=True)
        self.custom = Custom.of(schema)
        self.shown = self._shown()

    def _shown(self):
        if callable(self.discriminator):
            return f"{getattr(self.discriminator, '__name__', 'function')}()"
        if isinstance(self.discriminator, str):
            return f"'{self.discriminator}'"
        paths = self.discriminator
        paths = paths if isinstance(paths[0], (list, tuple)) else [paths]
        return " | ".join(".".join(f"'{step}'" if isinstance(step, str) else str(step) for step in path) for path in paths)

    def validate(self, value, state):
        tag = self._tag(value, state)
        if tag is None:
            raise self.custom.error(value) if self.custom else fail("union_tag_not_found", value, discriminator=self.shown)
        if not isinstance(tag, (str, int)) or (isinstance(tag, str) and tag not in self.choices and hasattr(tag, "value")):
            tag = getattr(tag, "value", tag)
        choice = self.choices.get(tag)
        if choice is None:
            expected = ", ".join(repr(getattr(known, "value", known)) for known in self.choices)
            context = {"discriminator": self.shown, "tag": str(tag), "expected_tags": expected}
            raise self.custom.error(value) if self.custom else fail("union_tag_invalid", value, **context)
        try:
            return choice.validate(value, state)
        except Lines as error:
            raise below(error, tag) from None

    def _tag(self, value, state):
        if callable(self.discriminator):
            return self.discriminator(value)
        paths = [[self.discriminator]] if isinstance(self.discriminator, str) else self.discriminator
        paths = paths if isinstance(paths[0], (list, tuple)) else [paths]
        for path in paths:
            found = value
            for step in path:
                if isinstance(found, dict):
                    found = found.get(step)
                elif state.mode == "python" and self.from_attributes and isinstance(step, str):
                    found = getattr(found, step, None)
                else:
                    found = None
            if found is not None:
                return found
        if not isinstance(value, dict) and not (state.mode == "python" and hasattr(value, "__dict__")):
            raise fail("model_attributes_type" if self.from_attributes else "dict_type", value)
        return None
