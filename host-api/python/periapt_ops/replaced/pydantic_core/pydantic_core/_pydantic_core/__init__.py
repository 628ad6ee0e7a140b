"""`pydantic_core._pydantic_core` in Python: validation and serialization as pydantic 2 asks for it.

pydantic makes a *core schema* of each model; the native module compiles it. This one does so with Python code, so that
charms with pydantic run where there is no native code. What it does not know it refuses when a model is defined, which
is while the charm is packed (`validating.Build`), down to each key of a schema. What differs: patterns are brought into
Python's words (`patterns`), and the words about malformed dates, URLs and JSON are its own.
"""

from . import _schema_gather
from .dumping import SchemaSerializer, from_json, to_json, to_jsonable_python
from .errors import (
    PydanticCustomError,
    PydanticKnownError,
    SchemaError,
    ValidationError,
    list_all_errors,
)
from .markers import (
    ArgsKwargs,
    PydanticOmit,
    PydanticSerializationError,
    PydanticSerializationUnexpectedValue,
    PydanticUndefined,
    PydanticUndefinedType,
    PydanticUseDefault,
    Some,
    TzInfo,
)
from .urls import MultiHostUrl, Url
from .validating import SchemaValidator
from .version import __version__

build_profile = "python"
build_info = "periapt"
_recursion_limit = 255

__all__ = [
    "ArgsKwargs",
    "MultiHostUrl",
    "PydanticCustomError",
    "PydanticKnownError",
    "PydanticOmit",
    "PydanticSerializationError",
    "PydanticSerializationUnexpectedValue",
    "PydanticUndefined",
    "PydanticUndefinedType",
    "PydanticUseDefault",
    "SchemaError",
    "SchemaSerializer",
    "SchemaValidator",
    "Some",
    "TzInfo",
    "Url",
    "ValidationError",
    "__version__",
    "_recursion_limit",
    "_schema_gather",
    "build_info",
    "build_profile",
    "from_json",
    "list_all_errors",
    "to_json",
    "to_jsonable_python",
]
