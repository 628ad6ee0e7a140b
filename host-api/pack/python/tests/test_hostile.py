"""Projects that are made to hurt the machine that packs them: each is one clear line, and only what the packing needs is written."""

import json
import os
import subprocess
import sys

import pytest

from periapt_packing import vendor
from periapt_packing.wanted import Choices, Parts

LONG = "a" * 5000
PACKAGE = '[[package]]\nname = "some"\nversion = "1.0"\n'
HASH = "sha256:" + "0" * 64


def project(required="our-lib", more=""):
    return f'[project]\nname = "c"\nversion = "0"\ndependencies = ["{required}"]\n{more}'


def source(said, more=""):
    return {"charm/pyproject.toml": project(more=f"[tool.uv.sources]\nour-lib = {said}\n{more}")}


def lib(text="", **files):
    named = '[project]\nname = "our-lib"\nversion = "1"\n'
    return {**source('{ path = "../lib" }'), "lib/pyproject.toml": named + text, "lib/our_lib.py": "", **files}


def lock(said):
    return {"charm/pyproject.toml": project("some"), "charm/uv.lock": f"version = 1\n{PACKAGE}{said}\n"}


def named(name, file):
    """A library in the charm's own directory, which is called what it says."""
    text = f'[project]\nname = "{name}"\n' if file == "pyproject.toml" else f"[metadata]\nname = {name}\n"
    return {"charm/requirements.txt": "./lib\n", f"charm/lib/{file}": text, "charm/lib/src/x.py": ""}


def workspace(said):
    return {"pyproject.toml": f"[tool.uv.workspace]\n{said}\n", **source("{ workspace = true }")}


@pytest.fixture
def packed(tmp_path):
    """What is told of a repository with some files and links, of which `charm` is packed. Nothing is fetched."""
    root = tmp_path / "repository"

    def packed(files, links=None, **parts):
        (root / "charm").mkdir(parents=True)
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for name, target in (links or {}).items():
            (root / name).symlink_to(target)
        try:
            done = vendor.vendor(root / "charm", tmp_path / "venv", Parts(**parts), Choices(repository=root))
        except vendor.VendorError as error:
            return str(error)
        return done["packages"]

    return packed


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"charm/requirements.txt": "-r a\0b\n"}, "'a\\x00b': it is no path"),
        ({"charm/requirements.txt": "./a\0b\n"}, "requirements.txt:1: 'a\\x00b' is no path"),
        ({"charm/requirements.txt": "-r " + LONG}, f"'{LONG[:120]}': it cannot be read: File name too long"),
        ({"charm/requirements.txt": "./" + LONG}, f"requirements.txt:1: '{LONG[:120]}' cannot be read: File name too long"),
        ({"charm/requirements.txt": "-r\n"}, "requirements.txt:1: -r names no file"),
        ({"charm/requirements.txt": LONG}, f"requirements.txt:1: '{LONG[:80]}'... is no requirement: it has more than 2000 characters"),
        (source('{ path = "a\\u0000b" }'), "pyproject.toml:6: our-lib: 'a\\x00b' is no path"),
        (source(f'{{ path = "{LONG}" }}'), f"pyproject.toml:6: our-lib: '{LONG[:120]}' cannot be read: File name too long"),
        (lock('source = { directory = "a\\u0000b" }'), "uv.lock:2: some: 'a\\x00b' is no path"),
        (lib('[tool.setuptools]\npackages = ["a\\u0000b"]\n'), "pyproject.toml:6: lib: 'lib/a\\x00b' is no path"),
        (lib(f'[tool.flit.module]\nname = "{LONG}"\n'), f"pyproject.toml:6: lib: 'lib/src/{LONG[:112]}' cannot be read: File name too long"),
        (lib('[tool.setuptools.packages.find]\nwhere = ["../../"]\n'), "pyproject.toml:6: lib: ../.. leads out of the repository"),
    ],
)
def test_what_is_no_path_is_told_in_short(packed, files, said):
    assert packed(files).partition(" (/")[0] == said


@pytest.mark.parametrize(
    ("links", "said"),
    [
        ({"charm/requirements.txt": "requirements.txt"}, "requirements.txt: it is a link that leads back to itself"),
        ({"charm/pyproject.toml": "pyproject.toml"}, "pyproject.toml: it is a link that leads back to itself"),
        ({"charm/uv.lock": "uv.lock"}, "uv.lock: it is a link that leads back to itself"),
        ({"uv.lock": "uv.lock"}, "uv.lock: it is a link that leads back to itself"),
        ({"charm/lib": "other", "charm/other": "lib"}, "pyproject.toml:6: our-lib: lib is a link that leads back to itself"),
        ({"charm/requirements.txt": "gone.txt"}, "requirements.txt: it is a link to gone.txt, which does not exist"),
    ],
)
def test_links_in_a_circle_and_links_to_nothing_are_told_and_not_passed_over(packed, links, said):
    files = {} if {"charm/requirements.txt", "charm/pyproject.toml"} & links.keys() else source('{ path = "lib" }')
    beside = {"pyproject.toml": "[tool.uv.workspace]\nmembers = []\n"} if "uv.lock" in links else {}
    assert packed({**files, **beside}, links) == said


def test_a_circle_of_links_in_a_package_is_told(packed):
    links = {"lib/src/our_lib/loop": "loop"}
    assert packed(lib(**{"lib/src/our_lib/x.py": ""}), links) == "pyproject.toml:6: lib: lib/src/our_lib/loop is a link that leads back to itself"


@pytest.mark.parametrize("name", ["{outside}", "a/b", "../../x", "a\\nRequires-Dist: evil", "a\\u0000", LONG])
@pytest.mark.parametrize("file", ["pyproject.toml", "setup.cfg"])
def test_the_name_of_a_project_names_no_other_directory(packed, tmp_path, name, file):
    name = name.replace("{outside}", str(tmp_path / "outside"))
    if file == "setup.cfg":
        # An option's value goes on in lines that are indented.
        name = name.replace("\\n", "\n  ").replace("\\u0000", "\0")
    said = packed(named(name, file))
    assert said.startswith("requirements.txt:1: the project in lib is called ") and said.endswith(", which is no name of a package"), said
    assert len(said) < 250
    assert not list(tmp_path.glob("outside*"))


def test_a_directory_whose_name_is_no_packages_is_taken_by_one_that_is(packed):
    assert packed({"charm/requirements.txt": "./a$b\n", "charm/a$b/src/x.py": ""}) == ["a-b==0"]


@pytest.mark.parametrize(
    "address",
    ["https://example.org/${HOME}/a.whl", "https://example.org/a\\n--index-url=https://example.org/a.whl", "https://[x/a.whl\\t", "https://example.org/a b.whl"],
)
def test_the_address_of_a_locked_wheel_is_one_word_that_pip_fills_nothing_in(packed, address):
    said = packed(lock(f'source = {{ url = "{address}" }}\nwheels = [{{ url = "https://example.org/a.whl", hash = "{HASH}" }}]'))
    assert said.startswith("uv.lock:2: some: 'https://") and "is no wheel at an https:// address" in said, said


def test_the_same_holds_for_poetry(packed):
    text = f'{PACKAGE}files = [{{ file = "a.whl", hash = "{HASH}" }}]\n[package.source]\ntype = "url"\nurl = "https://example.org/${{HOME}}.whl"\n'
    files = {"charm/pyproject.toml": '[tool.poetry.dependencies]\nsome = "*"\n', "charm/poetry.lock": f'{text}[metadata]\nlock-version = "2.1"\n'}
    assert packed(files).startswith("poetry.lock:1: some: 'https://example.org/${HOME}.whl' is no wheel")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (lock(f'wheels = [{{ url = "https://[x", hash = "{HASH}" }}]'), "uv.lock:2: 'https://[x' is no address"),
        (lock('source = { git = "https://[x#0" }'), "uv.lock:2: 'https://[x#0' is no address"),
        ({"charm/requirements.txt": "git+https://[x#egg=a\n"}, "requirements.txt:1: 'https://[x#egg=a' is no address"),
        ({"charm/requirements.txt": "a @ https://[x/a.whl\n"}, "requirements.txt:1: 'https://[x/a.whl' is no address"),
    ],
)
def test_what_is_no_address_is_told_by_line(packed, files, said):
    assert packed(files) == said


def test_groups_that_include_others_are_each_taken_once_and_bounded(packed):
    twice = "".join(f"g{n} = [{{include-group = 'g{n + 1}'}}, {{include-group = 'g{n + 1}'}}]\n" for n in range(40))
    files = {"charm/pyproject.toml": f"[project]\ndependencies = []\n[dependency-groups]\n{twice}g40 = []\n"}
    assert packed(files, project=True, groups=["g0"]) == []


def test_groups_that_include_others_too_deep_are_told(packed):
    deep = "".join(f"g{n} = [{{include-group = 'g{n + 1}'}}]\n" for n in range(2000))
    files = {"charm/pyproject.toml": f"[project]\ndependencies = []\n[dependency-groups]\n{deep}g2000 = []\n"}
    assert packed(files, project=True, groups=["g0"]) == "pyproject.toml:54: groups include others at most 50 deep"


@pytest.mark.parametrize("said", ["members = 5", 'members = [""]', 'members = ["**a", "["]', 'members = ["a\\u0000"]', f'members = ["{LONG}"]'])
def test_patterns_of_a_workspace_that_fit_nothing_are_told_by_who_asks(packed, said):
    assert packed(workspace(said)) == "pyproject.toml:6: our-lib is no member of the workspace in pyproject.toml"


def test_patterns_that_leave_out_are_told_where_they_are_none(packed):
    files = {**workspace('members = ["l*"]\nexclude = [""]'), "lib/pyproject.toml": "[project]\nname = 'our-lib'\n"}
    assert packed(files).endswith("pyproject.toml: '' is no pattern of directories")


def test_the_directories_that_are_looked_at_for_members_are_bounded(packed):
    files = {**workspace(f'members = ["{"**/" * 12}gone"]'), "/".join("abcdefghijklmnop") + "/x/file": ""}
    assert packed(files).endswith("pyproject.toml: for its members more than 20000 files and directories are looked at")


def test_links_multiply_no_members_and_show_nothing_from_outside(packed, tmp_path):
    (tmp_path / "outside/our-lib").mkdir(parents=True)
    (tmp_path / "outside/our-lib/pyproject.toml").write_text("[project]\nname = 'our-lib'\n")
    links = {"out": tmp_path / "outside", **{f"l{n}": "." for n in range(5)}}
    files = workspace(f'members = ["out/*", "{"/".join("*" * 12)}/gone"]')
    assert "looked at" in packed(files, links)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ('{version = "*", extras = 5}', "some: extras are no list"),
        ("5", "some: 5 is neither a version nor a table with one"),
        ('{version = "*", python = "x"}', "python = 'x': no versions of Python"),
        (f'"^{"9" * 5000}"', f"'some==^{'9' * 73}'... is no requirement"),
        (f'"^{"9" * 40}"', f"'some==^{'9' * 40}' is no name with versions"),
    ],
)
def test_poetrys_words_that_make_no_sense_are_told_by_line(packed, said, expected):
    assert packed({"charm/pyproject.toml": f"[tool.poetry.dependencies]\nsome = {said}\n"}).startswith(f"pyproject.toml:2: {expected}")


def test_a_program_that_imports_a_name_of_any_length_is_checked(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/charm.py").write_text(f"import {LONG}\nfrom {LONG} import {LONG}\nmain()\n")
    (tmp_path / "native.json").write_text("[]")
    command = [sys.executable, "-m", "periapt_packing", "check", str(tmp_path), str(tmp_path / "native.json"), str(tmp_path)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [(found["line"], found["severity"]) for found in json.loads(done.stdout)] == [(1, "error"), (1, "error")]
