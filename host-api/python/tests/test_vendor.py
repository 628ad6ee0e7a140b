"""What becomes of a charm's dependencies, with pip in the test's hands."""

import pathlib
import subprocess
import sys

import pytest

from periapt_ops.packing import vendor, wheels


def install(target, name, files):
    """A distribution, as pip leaves it."""
    info = target / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    for file in files:
        (target / file).parent.mkdir(parents=True, exist_ok=True)
        (target / file).write_text("")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in [*files, f"{info.name}/METADATA"]))


@pytest.fixture
def pip(monkeypatch):
    """Installs what the test says; `pure` are releases that there are without native code."""

    class Pip:
        listed, packages, pure = {}, {}, {}

        def __call__(self, target, *arguments):
            files = zip(arguments, arguments[1:], strict=False)
            self.listed = {option: pathlib.Path(file).read_text() for option, file in files if option in ("-r", "-c")}
            if "--platform=any" in arguments:
                name = arguments[-1].partition("==")[0]
                if name not in self.pure:
                    raise vendor.VendorError("No matching distribution found")
                install(target, name, self.pure[name])
            else:
                for name, files in self.packages.items():
                    install(target, name, files)

    pip = Pip()
    monkeypatch.setattr(vendor, "_pip", pip)
    return pip


def test_native_code_is_refused_by_name(tmp_path, pip):
    (tmp_path / "requirements.txt").write_text("some\n")
    pip.packages = {"some": ["some/_core.cpython-311-x86_64-linux-gnu.so", "some/__init__.py"]}
    done = vendor.vendor(tmp_path, tmp_path / "venv", [])
    assert done["native"] == [
        {
            "package": "some 1.0",
            "file": "some/_core.cpython-311-x86_64-linux-gnu.so",
            "module": "some._core",
            "required-by": ["requirements.txt:1"],
        }
    ]
    assert [path.name for path in (tmp_path / "venv/some").iterdir()] == ["__init__.py"]


def test_native_code_that_there_is_python_code_for_is_replaced(tmp_path, pip):
    (tmp_path / "requirements.txt").write_text("pydantic\n")
    pip.packages = {"pydantic_core": ["pydantic_core/_pydantic_core.cpython-311.so", "pydantic_core/__init__.py"]}
    done = vendor.vendor(tmp_path, tmp_path / "venv", [])
    assert done == {"native": [], "findings": []}
    core = tmp_path / "venv/pydantic_core"
    assert sorted(path.name for path in core.iterdir()) == ["__init__.py", "_pydantic_core"]
    assert "__version__ = '1.0'" in (core / "_pydantic_core/version.py").read_text()


def test_what_has_no_wheel_is_told_by_its_line_and_the_rest_is_brought_in(tmp_path, monkeypatch):
    asked = []

    def pip(target, *arguments):
        listed = pathlib.Path(arguments[arguments.index("-r") + 1]).read_text()
        asked.append(listed)
        if "psycopg2" in listed:
            raise vendor.NoWheel("psycopg2", "No matching distribution found for psycopg2==2.9")

    monkeypatch.setattr(vendor, "_pip", pip)
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = [\n  "ops",\n  "psycopg2==2.9",\n]\n')
    done = vendor.vendor(tmp_path, tmp_path / "venv", [])
    assert asked == ["ops\npsycopg2==2.9\n", "ops\n"]
    message = "psycopg2==2.9 has no wheel, and nothing is built: it is not brought in"
    assert done["findings"] == [{"file": "pyproject.toml", "line": 4, "severity": "warning", "message": message}]


def test_a_release_without_native_code_is_taken_instead(tmp_path, pip):
    (tmp_path / "requirements.txt").write_text("some\n")
    pip.packages = {"fast": ["fast/__init__.py", "fast/old.py", "fast/native.so"]}
    pip.pure = {"fast": ["fast/__init__.py", "fast/pure.py"]}
    done = vendor.vendor(tmp_path, tmp_path / "venv", [])
    assert done["native"] == []
    assert sorted(path.name for path in (tmp_path / "venv/fast").iterdir()) == ["__init__.py", "pure.py"]


def test_a_package_that_does_without_loses_its_native_files(tmp_path, pip):
    (tmp_path / "requirements.txt").write_text("some\n")
    pip.packages = {"PyYAML": ["yaml/__init__.py", "yaml/_yaml.cpython-311-x86_64-linux-gnu.so"]}
    done = vendor.vendor(tmp_path, tmp_path / "venv", [])
    assert (done["native"], [path.name for path in (tmp_path / "venv/yaml").iterdir()]) == ([], ["__init__.py"])


def test_requirements_come_from_either_file(tmp_path, pip):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "c"\ndependencies = ["ops~=3.0", "jinja2"]\n')
    vendor.vendor(tmp_path, tmp_path / "venv", ["extra"])
    assert pip.listed == {"-r": "ops~=3.0\njinja2\nextra\n"}
    (tmp_path / "requirements.txt").write_text("ops  # of ours\n-c bounds.txt\n")
    (tmp_path / "bounds.txt").write_text("ops<4\n")
    vendor.vendor(tmp_path, tmp_path / "venv", [])
    assert pip.listed == {"-r": "ops\n", "-c": "ops<4\n"}


@pytest.mark.parametrize(
    ("said", "required"),
    [
        ('"^3.1"', "ops>=3.1,<4"),
        ('"^0.2.3"', "ops>=0.2.3,<0.3"),
        ('"~2.1.4"', "ops>=2.1.4,<2.2"),
        ('"2.1"', "ops==2.1"),
        ('"*"', "ops"),
        ('">=2,<3"', "ops>=2,<3"),
        ('{version = "^3", extras = ["tracing"], markers = "python_version >= \'3.8\'"}', "ops[tracing]>=3,<4; python_version >= '3.8'"),
    ],
)
def test_dependencies_in_poetrys_words_are_the_same_in_pips(tmp_path, pip, said, required):
    (tmp_path / "pyproject.toml").write_text(f'[tool.poetry.dependencies]\npython = "^3.10"\nops = {said}\n')
    vendor.vendor(tmp_path, tmp_path / "venv", [])
    assert pip.listed == {"-r": f"{required}\n"}


@pytest.mark.parametrize("said", ['{path = "../x"}', '{git = "https://example.com/x"}', '["^1", "^2"]'])
def test_poetrys_directories_and_repositories_are_refused(tmp_path, said):
    (tmp_path / "pyproject.toml").write_text(f"[tool.poetry.dependencies]\nops = {said}\n")
    with pytest.raises(vendor.VendorError, match=r"pyproject.toml: ops: "):
        vendor.vendor(tmp_path, tmp_path / "venv", [])


@pytest.mark.parametrize("requirement", ["./package", "-e ./package", "package @ file://{charm}/package"])
def test_nothing_is_built_whatever_is_required(tmp_path, monkeypatch, requirement):
    package = tmp_path / "package"
    package.mkdir()
    (package / "pyproject.toml").write_text(
        '[project]\nname = "package"\nversion = "1"\n'
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (package / "backend.py").write_text("import pathlib\npathlib.Path(__file__).with_name('ran').touch()\n")
    (tmp_path / "requirements.txt").write_text("--no-binary :all:\n" + requirement.format(charm=tmp_path))
    monkeypatch.chdir(tmp_path)
    # As if nobody had read it before, as nobody has read what a wheel requires in turn.
    with pytest.raises(vendor.VendorError, match="nothing is built while a charm is packed"):
        vendor._pip(tmp_path / "venv", "--only-binary=:all:", "-r", "requirements.txt")
    assert not (package / "ran").exists()


def test_modules_of_the_charm_are_not_pips(tmp_path):
    (tmp_path / "pip.py").write_text("raise SystemExit('the charm ran')")
    done = subprocess.run([sys.executable, wheels.__file__, "--version"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.startswith("pip "), done.stderr


def test_a_wheel_that_names_files_of_others_as_its_own_deletes_none(tmp_path, pip):
    (tmp_path / "requirements.txt").write_text("some\n")
    (tmp_path / "precious.so").touch()
    pip.packages = {"PyYAML": ["yaml/__init__.py"], "fast": ["fast/native.so"]}
    pip.pure = {"fast": ["fast/__init__.py"]}
    listed = "../precious.so,,\nyaml/../../precious.so,,\n"

    def install_listing(target, name, files, install=install):
        install(target, name, files)
        with (target / f"{name}-1.0.dist-info/RECORD").open("a") as record:
            record.write(listed)

    for name, files in pip.packages.items():
        install_listing(tmp_path / "venv", name, files)
    pip.packages = {}
    vendor.vendor(tmp_path, tmp_path / "venv", [])
    assert (tmp_path / "precious.so").exists()
