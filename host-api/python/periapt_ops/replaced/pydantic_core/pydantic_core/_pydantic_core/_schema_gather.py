"""References in a schema, counted before pydantic puts into place what is referred to once."""

from __future__ import annotations


class MissingDefinitionError(LookupError):
    """A reference to a definition that is not there."""

    def __init__(self, schema_reference, /):
        super().__init__(schema_reference)
        self.schema_reference = schema_reference


#: Keys of a schema under which there is a schema, a list of them, or a dictionary of them.
_BELOW = (
    "schema",
    "items_schema",
    "keys_schema",
    "values_schema",
    "extras_schema",
    "extras_keys_schema",
    "lax_schema",
    "strict_schema",
    "json_schema",
    "python_schema",
    "return_schema",
    "json_schema_input_schema",
    "arguments_schema",
    "var_args_schema",
    "var_kwargs_schema",
    "definitions",
    "choices",
    "steps",
    "fields",
    "computed_fields",
    "serialization",
)


def gather_schemas_for_cleaning(schema, definitions):
    """The references of a schema, each with its own schema where it stands alone; and what is still to be told apart."""
    references: dict = {}
    deferred: list = []
    waiting = [schema]
    while waiting:
        found = waiting.pop()
        if found.get("type") == "definition-ref":
            name = found["schema_ref"]
            if name in references:
                references[name] = None
                continue
            if name not in definitions:
                raise MissingDefinitionError(name)
            references[name] = found
            waiting.append(definitions[name])
        if "pydantic_internal_union_discriminator" in (found.get("metadata") or ()):
            deferred.append(found)
        for key in _BELOW:
            if key in found:
                waiting.extend(_schemas(found[key]))
    return references, deferred


def _schemas(value):
    if isinstance(value, dict):
        if isinstance(value.get("type"), str):
            yield value
        else:
            for inner in value.values():
                yield from _schemas(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            # A choice of a union may come with its label.
            yield from _schemas(inner[0] if isinstance(inner, tuple) else inner)
