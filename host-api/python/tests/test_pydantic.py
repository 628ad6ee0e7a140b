"""pydantic over Python code says the same as over native code."""

import importlib.metadata
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from periapt_ops.packing import native
from periapt_ops.packing.unpacked import Wheel

CASES = pathlib.Path(__file__).with_name("pydantic_cases.py")


@pytest.fixture(scope="module")
def without_native_code(tmp_path_factory):
    """A directory with pydantic_core as a packed charm has it."""
    place = tmp_path_factory.mktemp("replaced")
    installed = pathlib.Path(importlib.util.find_spec("pydantic_core").origin).parent
    shutil.copytree(installed, place / "pydantic_core", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    (info,) = installed.parent.glob("pydantic_core-*.dist-info")
    shutil.copytree(info, place / info.name)
    assert native.replace(Wheel("pydantic_core", importlib.metadata.version("pydantic_core"), info.name, ()), place)
    return place


def said(path):
    """What the cases come to, with modules of a directory before all others."""
    environment = {**os.environ, "PYTHONPATH": str(path), "PYTHONHASHSEED": "0"}
    done = subprocess.run([sys.executable, str(CASES)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_what_is_valid_and_what_is_not_is_the_same(without_native_code):
    ours, theirs = said(without_native_code), said("")
    assert len(ours) == len(theirs) > 700
    assert [(one, other) for one, other in zip(ours, theirs, strict=True) if one != other] == []


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import typing\nclass P(typing.NamedTuple):\n    x: int\npydantic.TypeAdapter(P)", "pydantic's 'named-tuple' is not known in the sandbox"),
        ("SchemaValidator({'type': 'int', 'newer': 1})", "'newer' of pydantic's 'int' is not known in the sandbox"),
        ("SchemaValidator({'type': 'list', 'items_schema': {'type': 'str', 'newer': 1}})", "'newer' of pydantic's 'str' is not known"),
        ("pydantic.TypeAdapter(Annotated[str, pydantic.Field(pattern='[[:alpha:]]')])", "has a class within a class"),
        ("pydantic.TypeAdapter(Annotated[str, pydantic.Field(pattern='[a-z&&[^b]]')])", "an operation on classes"),
        ("pydantic.TypeAdapter(Annotated[str, pydantic.Field(pattern='(')])", "is none that the sandbox knows"),
    ],
)
def test_what_is_not_known_is_told_when_a_model_is_made(without_native_code, program, said):
    program = f"import pydantic\nfrom typing import Annotated\nfrom pydantic_core import SchemaValidator\n{program}"
    environment = {**os.environ, "PYTHONPATH": str(without_native_code)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert said in done.stderr
