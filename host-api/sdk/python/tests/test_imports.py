"""Which modules a source names."""

import importlib
import sys
import types

import pytest

from periapt_ops import imports


def named(source, package):
    return set(imports.named_in(imports.statements(compile(source, "source", "exec")), package))


def test_all_import_statements_count_wherever_they_stand():
    source = "import a, b.c\nfrom d import e\ndef f():\n    from .g import h\n    from .. import i\n    import j as k\n"
    assert named(source, "pkg.sub") == {"a", "b.c", "d", "pkg.sub.g", "pkg", "j"}


def test_a_submodule_that_is_imported_from_a_package_is_named():
    names = named("from importlib import metadata, nothing_of_the_kind, import_module", "")
    assert {"importlib", "importlib.nothing_of_the_kind"} <= names
    assert "importlib.import_module" not in names


def test_what_a_module_imports_is_noted_when_it_is_loaded_or_read_afterwards(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "early.py").write_text("def f():\n    import one\n")
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").touch()
    place = tmp_path / "pkg" / "late.py"
    place.write_text("class C:\n    def f():\n        from . import two, three\nfrom importlib import *\n")
    early = importlib.import_module("early")
    before = importlib.machinery.SourceFileLoader.get_code
    with imports.noted():
        late = importlib.import_module("pkg.late")
        place.unlink()
        assert imports.imported_by(late) == {"importlib", "pkg", "pkg.two", "pkg.three"}
        assert imports.imported_by(early) == {"one"}
        for other in (sys, None, object()):
            assert imports.imported_by(other) == set()
    assert importlib.machinery.SourceFileLoader.get_code is before
    for name in ("early", "pkg", "pkg.late"):
        del sys.modules[name]


def test_encodings_that_code_names_are_found_by_any_of_their_names():
    source = """
def f(text, codes=("sjis", "no-encoding")):
    for code in ("Shift_JIS", "UTF-16", "iso-8859-15"):
        text.encode(code)
    return text.encode("koi8-r") in {"latin1", 5}, "zip", b"cp1252", "an ü", "cp1252" * 100
"""
    code = compile(source, "source", "exec", optimize=0)
    assert set(imports.encodings_in(code)) == {"shift_jis", "utf_16", "iso8859_15", "koi8_r", "latin_1"}
    assert set(imports.encodings_in(None)) == set()


def test_of_encodings_those_of_the_charms_own_code_are_done_early(tmp_path):
    class Loader:
        def get_code(self, name):
            return compile("import one\n'a text'.encode('sjis')\n", name, "exec")

    for directory, expected in (("src", {"one", "encodings.shift_jis"}), ("venv", {"one"})):
        module = types.ModuleType("module")
        module.__file__, module.__loader__ = f"/charm/{directory}/module.py", Loader()
        assert imports.imported_by(module) == expected


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
