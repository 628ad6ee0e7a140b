"""Which modules a source names."""

import ast
import sys

import pytest

from periapt_ops import imports


def test_all_import_statements_count_wherever_they_stand():
    tree = ast.parse("import a, b.c\nfrom d import e\ndef f():\n    from .g import h\n    from .. import i\n    import j as k\n")
    assert set(imports.named_in(tree, "pkg.sub")) == {"a", "b.c", "d", "pkg.sub.g", "pkg", "j"}


def test_a_submodule_that_is_imported_from_a_package_is_named():
    tree = ast.parse("from importlib import metadata, nothing_of_the_kind, import_module")
    names = set(imports.named_in(tree, ""))
    assert {"importlib", "importlib.nothing_of_the_kind"} <= names
    assert "importlib.import_module" not in names


def test_the_modules_of_a_directory_are_found_tests_left_out(tmp_path):
    for name in ("charm.py", "helpers/__init__.py", "helpers/db.py", "space/deep/mod.py", "tests/test_charm.py", "no-module/x.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    found = set(imports.modules_of(str(tmp_path)))
    assert found == {"charm", "helpers", "helpers.db", "space", "space.deep", "space.deep.mod"}


def test_of_the_standard_library_what_stays_in_its_package_is_done_early(tmp_path):
    import importlib.metadata

    assert "importlib.metadata._adapters" in imports._put_off("importlib.metadata", importlib.metadata) | set(sys.modules)
    assert not [name for name in imports._put_off("importlib.metadata", importlib.metadata) if not name.startswith("importlib")]
    assert imports._put_off("sys", sys) == set()
    assert imports._put_off("pytest", pytest) == set()
