"""What an author locked is what is packed: `uv.lock`, `poetry.lock` and files of requirements with digests."""

import shutil

import pytest

from periapt_packing import vendor
from periapt_packing.wanted import Choices, Parts


class Locked:
    """Packages in an index, and locks that name some of them."""

    def __init__(self, index, charm):
        self.charm, self._index = charm, index
        self._files = {}

    def release(self, name, version, needs=(), tag="py3-none-any", files=None, says=""):
        """Put a release into the index."""
        says += "".join(f"Requires-Dist: {need}\n" for need in needs)
        made = self._index(name, files or {f"{name}.py": f"version = {version!r}\n"}, version, tag, says)
        self._files.setdefault((name, version), []).append(made)

    def files_of(self, name, version, key):
        """The files of a release as a lock has them; `key` is what it calls their name."""
        prefix = "https://example.org/" if key == "url" else ""
        listed = self._files.get((name, version), [("", "")])
        return ", ".join(f'{{ {key} = "{prefix}{file}", hash = "{digest}" }}' for file, digest in listed if file)

    def digest(self, name, version):
        """The digest of a release that has one file."""
        ((_, digest),) = self._files[name, version]
        return digest

    def uv(self, packages, extra="", version=1):
        """Write uv.lock with packages: (name, version, more lines)."""
        text = f'version = {version}\nrevision = 3\nrequires-python = ">=3.10"\n{extra}\n'
        for name, release, *lines in packages:
            source = (
                ""
                if any(line.startswith("source") for line in lines)
                else 'source = { registry = "https://example.org/simple" }\n'
            )
            wheels = self.files_of(name, release, "url")
            text += f'\n[[package]]\nname = "{name}"\n' + (f'version = "{release}"\n' if release else "") + source
            text += "".join(f"{line}\n" for line in lines if not line.startswith("["))
            text += f"wheels = [{wheels}]\n" if wheels else ""
            text += "".join(f"{line}\n" for line in lines if line.startswith("["))
        (self.charm / "uv.lock").write_text(text)

    def poetry(self, packages, version="2.1"):
        """Write poetry.lock with packages: (name, version, more lines)."""
        text = ""
        for name, release, *lines in packages:
            plain, tables = [line for line in lines if not line.startswith("[")], [line for line in lines if line.startswith("[")]
            text += (
                f'[[package]]\nname = "{name}"\nversion = "{release}"\ndescription = ""\noptional = false\npython-versions ='
                ' ">=3.8"\n'
            )
            text += "".join(f"{line}\n" for line in plain)
            text += f"files = [{self.files_of(name, release, 'file')}]\n" + "".join(f"{line}\n" for line in tables) + "\n"
        (self.charm / "poetry.lock").write_text(
            f'{text}[metadata]\nlock-version = "{version}"\npython-versions = "^3.10"\ncontent-hash = "0"\n'
        )

    def project(self, text):
        """Write pyproject.toml."""
        (self.charm / "pyproject.toml").write_text(text)

    def pack(self, *upgrades, built=None, **parts):
        """What is brought in, as NAME-VERSION, and what is told."""
        target = self.charm / "venv"
        shutil.rmtree(target, ignore_errors=True)
        done = vendor.vendor(self.charm, target, Parts(**parts), Choices(upgrades=upgrades), built)
        self.lacking = {file["package"]: file["lacking"] for file in done["native"]}
        there = sorted(path.name.removesuffix(".dist-info") for path in target.iterdir() if path.name.endswith(".dist-info"))
        return there, [f"{found['file']}:{found['line']}: {found['message']}" for found in done["findings"]]

    def refused(self, *upgrades, **parts):
        """Why nothing is brought in."""
        with pytest.raises(vendor.VendorError) as raised:
            self.pack(*upgrades, **parts)
        assert "\n" not in str(raised.value)
        return str(raised.value)


@pytest.fixture
def locked(index, tmp_path):
    """An index and an empty charm."""
    charm = tmp_path / "charm"
    charm.mkdir()
    return Locked(index, charm)


@pytest.fixture
def several(locked):
    """The same with a few releases: `ops` needs `yaml`, and newer ones than those that the tests lock are there."""
    locked.release("ops", "2.0", ["yaml>=5", "trace>=1; extra == 'tracing'", "old; python_version < '3.9'"])
    locked.release("ops", "3.0", ["yaml>=5", "brandnew"])
    for version in ("5.0", "6.0"):
        locked.release("yaml", version)
    for name in ("trace", "other", "brandnew"):
        for version in ("1.0", "2.0"):
            locked.release(name, version)
    return locked


def uv_lock(locked):
    locked.uv(
        [
            ("charm", "0.1", 'source = { virtual = "." }', 'dependencies = [{ name = "ops" }]'),
            (
                "ops",
                "2.0",
                'dependencies = [{ name = "yaml" }, { name = "old", marker = "python_full_version < \'3.9\'" }]',
                'optional-dependencies = { tracing = [{ name = "trace" }] }',
            ),
            ("yaml", "5.0"),
            ("trace", "1.0"),
            ("other", "1.0"),
            ("old", "1.0"),
        ]
    )


def poetry_lock(locked, version="2.1"):
    locked.poetry(
        [
            (
                "ops",
                "2.0",
                (
                    'dependencies = { yaml = ">=5", trace = { version = ">=1", optional = true }, old = { version = "*", markers'
                    " = \"python_version < '3.9'\" } }"
                ),
                'extras = { tracing = ["trace (>=1)"] }',
            ),
            ("yaml", "5.0"),
            ("trace", "1.0"),
            ("other", "1.0"),
            ("old", "1.0", "markers = \"python_version < '3.9'\""),
        ],
        version,
    )


PROJECT = (
    '[project]\nname = "charm"\nversion = "0.1"\ndependencies = ["ops>=2"]\n[project.optional-dependencies]\nmore ='
    ' ["other"]\n[dependency-groups]\ndev = ["brandnew"]\nhttp = ["other>=1"]\n'
)
POETRYS = (
    '[tool.poetry.dependencies]\npython = "^3.10"\nops = "^2.0"\nother = {version = "^1", optional ='
    ' true}\n[tool.poetry.extras]\nmore = ["other"]\n[tool.poetry.group.http.dependencies]\nother = "^1"\n'
)


@pytest.mark.parametrize(("lock", "project"), [(uv_lock, PROJECT), (poetry_lock, POETRYS)])
def test_what_is_locked_is_packed_and_not_what_is_newer(several, lock, project):
    several.project(project)
    lock(several)
    assert several.pack() == (["ops-2.0", "yaml-5.0"], [])
    assert several.pack(project=True, groups=["http"])[0] == ["ops-2.0", "other-1.0", "yaml-5.0"]
    assert several.pack(project=True, extras=["more"])[0] == ["ops-2.0", "other-1.0", "yaml-5.0"]
    assert several.pack(project=True, only=["http"])[0] == ["other-1.0"]
    assert several.pack(project=True, only=["main", "http"], without=["http"])[0] == ["ops-2.0", "yaml-5.0"]


@pytest.mark.parametrize(("lock", "project"), [(uv_lock, PROJECT), (poetry_lock, POETRYS)])
def test_extras_of_locked_packages_are_followed(several, lock, project):
    several.project(
        project.replace('"ops>=2"', '"ops[tracing]>=2"').replace('ops = "^2.0"', 'ops = {version = "^2.0", extras = ["tracing"]}')
    )
    lock(several)
    assert several.pack()[0] == ["ops-2.0", "trace-1.0", "yaml-5.0"]


def test_groups_that_uv_brings_in_by_default_are_brought_in_but_dev(several):
    several.project(PROJECT + '[tool.uv]\ndefault-groups = ["dev", "http"]\n')
    uv_lock(several)
    assert several.pack()[0] == ["ops-2.0", "other-1.0", "yaml-5.0"]
    several.project(PROJECT + '[tool.uv]\ndefault-groups = "all"\n')
    assert several.pack()[0] == ["ops-2.0", "other-1.0", "yaml-5.0"]


@pytest.mark.parametrize(("lock", "project", "command"), [(uv_lock, PROJECT, "uv lock"), (poetry_lock, POETRYS, "poetry lock")])
def test_a_lock_that_the_project_has_outgrown_is_an_error_by_line(several, lock, project, command):
    lock(several)
    name = f"{command.split()[0]}.lock"
    several.project(project.replace("ops>=2", "ops>=2.1").replace('ops = "^2.0"', 'ops = "^2.1"'))
    line = 2 if "tool.poetry" not in project else 3
    number = [number for number, text in enumerate((several.charm / name).read_text().splitlines(), 1) if text == "[[package]]"][
        1 if "uv" in command else 0
    ]
    place = "pyproject.toml:4" if "uv" in command else f"pyproject.toml:{line}"
    said = several.refused()
    assert said.startswith(f"{name}:{number}: ops 2.0 is locked, and {place} requires "), said
    assert said.endswith(f": run {command}")
    several.project(project.replace("ops>=2", "brandnew").replace('ops = "^2.0"', 'brandnew = "*"'))
    assert several.refused() == f"{place}: {name} does not have brandnew, which is required there: run {command}"


def test_what_uv_overrides_need_not_fit(several):
    several.project(PROJECT.replace("ops>=2", "ops>=3") + '[tool.uv]\noverride-dependencies = ["ops==2.0"]\n')
    uv_lock(several)
    assert several.pack()[0] == ["ops-2.0", "yaml-5.0"]


@pytest.mark.parametrize(("lock", "project"), [(uv_lock, PROJECT), (poetry_lock, POETRYS)])
def test_a_wheel_with_another_digest_is_not_packed(several, lock, project):
    several.project(project)
    lock(several)
    # The index puts another file in its place.
    several.release("yaml", "5.0", files={"yaml.py": "evil = True\n"})
    said = several.refused()
    assert "lock:" in said and said.endswith("yaml 5.0 has none of the digests that are locked for it"), said
    assert not (several.charm / "venv").exists() or not list((several.charm / "venv").iterdir())


def test_digests_of_poetrys_older_locks_stand_apart(several):
    several.project(POETRYS)
    poetry_lock(several)
    lock = several.charm / "poetry.lock"
    text = "\n".join(line for line in lock.read_text().splitlines() if not line.startswith("files"))
    named = "".join(
        f"{name} = [{several.files_of(name, version, 'file')}]\n" for name, version in (("ops", "2.0"), ("yaml", "5.0"))
    )
    lock.write_text(f"{text}\n[metadata.files]\n{named}".replace('lock-version = "2.1"', 'lock-version = "1.1"'))
    assert several.pack()[0] == ["ops-2.0", "yaml-5.0"]


def test_of_several_locked_versions_that_of_the_sandbox_is_taken(several):
    several.project(PROJECT)
    ops = (
        'dependencies = [{ name = "yaml", version = "5.0", marker = "python_full_version < \'3.12\'" }, { name = "yaml", version'
        ' = "6.0", marker = "python_full_version >= \'3.12\'" }]'
    )
    several.uv(
        [
            ("ops", "2.0", ops),
            ("yaml", "5.0", "resolution-markers = [\"python_full_version < '3.12'\"]"),
            ("yaml", "6.0", "resolution-markers = [\"python_full_version >= '3.12'\"]"),
        ]
    )
    assert several.pack()[0] == ["ops-2.0", "yaml-6.0"]
    several.project(POETRYS)
    (several.charm / "uv.lock").unlink()
    several.poetry(
        [
            (
                "ops",
                "2.0",
                (
                    'dependencies = { yaml = [{version = "5.0", markers = "python_version < \'3.12\'"}, {version = ">=6", markers'
                    " = \"python_version >= '3.12'\"}] }"
                ),
            ),
            ("yaml", "5.0"),
            ("yaml", "6.0"),
        ]
    )
    assert several.pack()[0] == ["ops-2.0", "yaml-6.0"]


def test_a_file_of_requirements_with_digests_is_a_lock(several):
    lines = []
    for name, version in (("ops", "2.0"), ("yaml", "5.0")):
        (_, digest), *_ = several._files[name, version]
        lines.append(f"{name}=={version} ; python_version >= '3.8' \\\n    --hash={digest}")
    lines.append("old==1.0 ; python_version < '3.9' \\\n    --hash=sha256:" + "0" * 64)
    requirements = several.charm / "requirements.txt"
    requirements.write_text("\n".join(lines) + "\n")
    assert several.pack() == (["ops-2.0", "yaml-5.0"], [])
    # What a library asks for is found in it, or chosen to go with it.
    library = several.charm / "lib/charms/db/v0/db.py"
    library.parent.mkdir(parents=True)
    library.write_text("PYDEPS = ['ops>=2', 'trace']\n")
    assert several.pack(libraries=True)[0] == ["ops-2.0", "trace-2.0", "yaml-5.0"]
    library.write_text("PYDEPS = ['ops>=2', 'yaml>=6']\n")
    assert (
        several.refused(libraries=True)
        == "lib/charms/db/v0/db.py:1: yaml>=6 is required, and requirements.txt:3 locks yaml 5.0: lock one that fits"
    )
    library.unlink()
    requirements.write_text("\n".join(lines).replace("yaml==5.0", "yaml==6.0") + "\n")
    assert several.refused().startswith("requirements.txt:3: "), several.refused()


def test_what_a_file_with_digests_names_and_has_no_wheel_stays_out(several):
    (_, digest), *_ = several._files["yaml", "5.0"]
    (several.charm.parent / "index/sources-2.9.tar.gz").touch()
    (several.charm / "requirements.txt").write_text(f"yaml==5.0 --hash={digest}\nsources==2.9 --hash=sha256:{'0' * 64}\n")
    assert several.pack() == (
        ["yaml-5.0"],
        ["requirements.txt:2: sources 2.9 has no wheel, and its archive of sources is not found by the digests that are locked: it is not brought in"],
    )
    (several.charm / "requirements.txt").write_text(f"yaml==5.0 --hash={digest}\nnowhere==2.9 --hash=sha256:{'0' * 64}\n")
    assert several.refused().startswith("requirements.txt:2: ")


def test_the_best_wheel_of_each_package_is_taken_for_its_own_interpreter(locked):
    linux = "manylinux_2_17_x86_64.manylinux2014_x86_64"
    locked.release(
        "fast", "1.0", tag=f"cp312-cp312-{linux}", files={"fast/__init__.py": "", "fast/core.cpython-312-x86_64-linux-gnu.so": ""}
    )
    locked.release(
        "fast", "1.0", tag="cp314-cp314-macosx_11_0_arm64", files={"fast/__init__.py": "", "fast/core.cpython-314-darwin.so": ""}
    )
    locked.release("plain", "1.0")
    locked.release("past", "1.0", says="Requires-Python: <3.13\n")
    locked.project('[project]\nname = "c"\ndependencies = ["fast", "plain", "past"]\n')
    locked.uv([("fast", "1.0"), ("plain", "1.0"), ("past", "1.0")])
    assert locked.pack()[0] == ["fast-1.0", "past-1.0", "plain-1.0"]
    assert [path.name for path in (locked.charm / "venv/fast").iterdir()] == ["__init__.py"]


def test_packages_that_share_a_directory_keep_all_their_files(locked):
    linux = "manylinux_2_17_x86_64.manylinux2014_x86_64"
    locked.release("one", "1.0", files={"shared/one.py": ""}, tag=f"cp311-cp311-{linux}")
    locked.release("two", "1.0", files={"shared/two.py": ""})
    locked.project('[project]\nname = "c"\ndependencies = ["one", "two"]\n')
    locked.uv([("one", "1.0"), ("two", "1.0")])
    locked.pack()
    assert sorted(path.name for path in (locked.charm / "venv/shared").iterdir()) == ["one.py", "two.py"]


def test_what_is_locked_without_a_wheel_stays_out_and_is_told(locked):
    locked.release("plain", "1.0")
    locked.project('[project]\nname = "c"\ndependencies = ["plain", "sources"]\n')
    locked.uv(
        [
            ("plain", "1.0"),
            ("sources", "2.9", f'sdist = {{ url = "https://example.org/sources-2.9.tar.gz", hash = "sha256:{"0" * 64}" }}'),
        ]
    )
    there, told = locked.pack()
    assert there == ["plain-1.0"]
    assert told == [
        "uv.lock:12: sources 2.9, required by pyproject.toml:3, has no wheel, and its archive of sources is not found by the digests"
        " that are locked: it is not brought in"
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version = 2\n", "uv.lock:1: version 2 of locks is not known here"),
        ("version = 1\npackage = 1\n", "uv.lock: package is no list of tables"),
        ("version = 1\n[[package]]\nname = 1\n", "uv.lock:2: name '1' is none"),
        ('version = 1\n[[package]]\nname = "-rx"\n', "uv.lock:2: name '-rx' is none"),
        ('version = 1\n[[package]]\nname = "ops"\nversion = "1; x"\n', "uv.lock:2: version '1; x' is none"),
        (
            'version = 1\n[[package]]\nname = "ops"\nversion = "2"\nwheels = [{ url = "x", hash = "md5:0" }]\n',
            "uv.lock:2: 'md5:0' is no digest",
        ),
        ('version = 1\n[[package]]\nname = "ops"\nversion = "2"\ndependencies = 1\n', "uv.lock:2: dependencies is no list"),
        (
            'version = 1\n[[package]]\nname = "ops"\nversion = "2"\nsource = { cargo = "x" }\n',
            "uv.lock:2: source .'cargo'. is not known",
        ),
        (
            'version = 1\n[[package]]\nname = "ops"\nversion = "2"\nresolution-markers = ["' + "(" * 3000 + '"]\n',
            "uv.lock:2: .* is no marker",
        ),
        (
            'version = 1\n[[package]]\nname = "ops"\nversion = "2"\nresolution-markers = ["' + "(" * 5000 + '"]\n',
            "uv.lock:2: .* has more than 4096 characters",
        ),
        ("version = 1\nx = " + "[" * 100_000, "uv.lock: "),
        ("version = ", "uv.lock: Invalid value"),
    ],
)
def test_a_lock_that_makes_no_sense_is_one_line(locked, text, said):
    locked.project('[project]\nname = "c"\ndependencies = ["ops"]\n')
    (locked.charm / "uv.lock").write_text(text)
    with pytest.raises(vendor.VendorError, match=f"^{said}"):
        locked.pack()


def test_locks_are_bounded(locked):
    locked.project('[project]\nname = "c"\ndependencies = ["ops"]\n')
    lock = locked.charm / "uv.lock"
    with lock.open("wb") as file:
        file.truncate((8 << 20) + 1)
    assert "has at most 8 MiB" in locked.refused()
    lock.write_text("version = 1\n" + '[[package]]\nname = "a"\n' * 5001)
    assert "a lock has at most 5000 packages" in locked.refused()
    lock.unlink()
    outside = locked.charm.parent / "outside.lock"
    outside.write_text("version = 1\n")
    lock.symlink_to(outside)
    assert locked.refused().startswith(f"uv.lock: it is a link to {outside}, and leads out of the charm's directory")


def test_a_graph_with_circles_ends(several):
    several.project(PROJECT)
    several.uv([("ops", "2.0", 'dependencies = [{ name = "yaml" }]'), ("yaml", "5.0", 'dependencies = [{ name = "ops" }]')])
    assert several.pack()[0] == ["ops-2.0", "yaml-5.0"]


def test_a_missing_file_of_requirements_gives_way_to_the_lock(several):
    several.project(POETRYS)
    poetry_lock(several)
    (several.charm / "charmcraft.yaml").write_text("name: c\nparts:\n  charm:\n    charm-requirements: [requirements.txt]\n")
    there, told = several.pack(files=["requirements.txt"])
    assert there == ["ops-2.0", "yaml-5.0"]
    assert told == [
        "charmcraft.yaml:4: requirements.txt is not there, and nothing is run that would make it: what pyproject.toml and its"
        " lock say is brought in"
    ]


class TestUpgrade:
    """`--upgrade NAME`."""

    @pytest.fixture
    def pydantic(self, locked):
        """A lock with a pydantic that cannot run, and an index with ones that can."""
        for version, core in (("2.10.6", "2.27"), ("2.12.5", "2.41")):
            locked.release("pydantic", version, [f"pydantic_core=={core}", "typing>=4"])
            locked.release("pydantic_core", core, ["typing>=4"])
        for version in ("4.12", "4.15"):
            locked.release("typing", version)
        locked.release("ops", "2.0")
        locked.release("ops", "3.0")
        locked.project('[project]\nname = "c"\ndependencies = ["ops", "pydantic>=2"]\n')
        self.lock(locked)
        return locked

    @staticmethod
    def lock(locked, *more):
        locked.uv(
            [
                ("ops", "2.0"),
                ("pydantic", "2.10.6", 'dependencies = [{ name = "pydantic-core" }, { name = "typing" }]'),
                ("pydantic_core", "2.27", 'dependencies = [{ name = "typing" }]'),
                ("typing", "4.12"),
                *more,
            ]
        )

    def test_what_cannot_run_is_refused_with_the_way_out(self, pydantic):
        said = pydantic.refused()
        assert said.startswith("uv.lock:12: pydantic 2.10.6 cannot run in the sandbox: "), said
        assert said.endswith("; it runs from 2.12 on, which pyproject.toml:3 allows: periapt pack --upgrade pydantic takes it")
        pydantic.project('[project]\nname = "c"\ndependencies = ["ops", "pydantic~=2.10.0"]\n')
        other = "change pyproject.toml:3, or take one all the same: periapt pack --upgrade 'pydantic>=2.12,<3'"
        assert pydantic.refused().endswith(f" on: {other}")
        said = pydantic.refused("pydantic")
        assert said.startswith("--upgrade pydantic: none that the project allows can run in the sandbox: "), said
        assert said.endswith(f" on: {other}")

    def test_it_takes_another_one_and_what_that_needs_and_all_else_stays(self, pydantic):
        there, told = pydantic.pack("pydantic")
        assert there == ["ops-2.0", "pydantic-2.12.5", "pydantic_core-2.41", "typing-4.12"]
        assert told == [
            "uv.lock:12: pydantic 2.12.5 is packed and not 2.10.6, which is locked: --upgrade pydantic",
            "uv.lock:19: pydantic-core 2.41 is packed and not 2.27, which is locked: --upgrade pydantic",
        ]

    def test_what_is_locked_and_does_not_go_with_it_moves_along_as_far_as_the_project_allows(self, pydantic):
        pydantic.release("model", "1.0", ["pydantic<2.11", "typing"])
        pydantic.release("model", "2.0", ["pydantic>=2.12", "typing"])
        pydantic.release("model", "3.0", ["pydantic>=2.12", "typing"])
        pydantic.release("field", "1.0", ["model<2"])
        pydantic.release("field", "2.0", ["model<3"])
        pydantic.project('[project]\nname = "c"\ndependencies = ["ops", "pydantic>=2", "field"]\n')
        needs = 'dependencies = [{ name = "pydantic" }, { name = "typing" }]'
        self.lock(pydantic, ("model", "1.0", needs), ("field", "1.0", 'dependencies = [{ name = "model" }]'))
        there, told = pydantic.pack("pydantic")
        assert there == ["field-2.0", "model-2.0", "ops-2.0", "pydantic-2.12.5", "pydantic_core-2.41", "typing-4.12"]
        said = [line.partition(": ")[2] for line in told]
        assert sorted(said) == [
            "field 2.0 is packed and not 1.0, which is locked and requires model<2: --upgrade pydantic",
            "model 2.0 is packed and not 1.0, which is locked and requires pydantic<2.11: --upgrade pydantic",
            "pydantic 2.12.5 is packed and not 2.10.6, which is locked: --upgrade pydantic",
            "pydantic-core 2.41 is packed and not 2.27, which is locked: --upgrade pydantic",
        ]

    def test_what_stays_and_does_not_go_with_it_is_named(self, pydantic):
        pydantic.release("model", "1.0", ["pydantic<2.11"])
        pydantic.project('[project]\nname = "c"\ndependencies = ["ops", "pydantic>=2", "model==1.0"]\n')
        self.lock(pydantic, ("model", "1.0", 'dependencies = [{ name = "pydantic" }]'))
        said = pydantic.refused("pydantic")
        assert said == (
            "--upgrade pydantic: model 1.0 stays as locked and requires pydantic<2.11, and the project allows no version of it"
            " that goes with another: add --upgrade 'model>=1.0'"
        )
        pydantic.release("model", "2.0", ["pydantic>=2.12"])
        assert "model-2.0" in pydantic.pack("pydantic", "model>=1.0")[0]

    @pytest.mark.parametrize("write", [uv_lock, poetry_lock])
    def test_of_extras_only_those_that_are_asked_for_are_in_the_lock(self, pydantic, write):
        """Locks name extras of packages, and have what these need only if a requirement asked for it."""
        pydantic.release("mail", "1.0")
        pydantic.release("mail", "2.0")
        pydantic.project('[project]\nname = "c"\ndependencies = ["pydantic[mail]>=2"]\n')
        needs = ["pydantic-core", "typing"]
        if write is uv_lock:
            listed = ", ".join(f'{{ name = "{name}" }}' for name in needs)
            extras = '[package.optional-dependencies]\nmail = [{ name = "mail" }]\ndocs = [{ name = "sphinx" }]'
            pydantic.uv(
                [
                    ("pydantic", "2.10.6", f"dependencies = [{listed}]", extras),
                    ("pydantic_core", "2.27", 'dependencies = [{ name = "typing" }]'),
                    ("typing", "4.12"),
                    ("mail", "1.0"),
                ]
            )
        else:
            (pydantic.charm / "uv.lock").unlink()
            tables = "".join(f'{name} = "*"\n' for name in needs)
            tables += "".join(f'{name} = {{version = "*", optional = true}}\n' for name in ("mail", "sphinx"))
            extras = '[package.extras]\nmail = ["mail"]\ndocs = ["sphinx"]'
            pydantic.poetry(
                [
                    ("pydantic", "2.10.6", f"[package.dependencies]\n{tables}", extras),
                    ("pydantic_core", "2.27", '[package.dependencies]\ntyping = "*"'),
                    ("typing", "4.12"),
                    ("mail", "1.0"),
                ]
            )
        there, _ = pydantic.pack("pydantic")
        assert there == ["mail-1.0", "pydantic-2.12.5", "pydantic_core-2.41", "typing-4.12"]

    def test_it_can_be_bounded(self, pydantic):
        pydantic.release("pydantic", "2.13.0", ["pydantic_core==2.41", "typing>=4"])
        assert "pydantic-2.13.0" in pydantic.pack("pydantic")[0]
        assert "pydantic-2.12.5" in pydantic.pack("pydantic<2.13")[0]
        assert pydantic.refused("pydantic; os_name == 'x'").startswith("--upgrade pydantic; os_name == 'x': it takes a name")
        assert pydantic.refused("-rx").startswith("--upgrade: '-rx' is no requirement")

    def test_only_what_is_locked_can_be_upgraded(self, pydantic):
        assert pydantic.refused("nothing") == "--upgrade nothing: the charm takes no nothing from uv.lock"
        (pydantic.charm / "uv.lock").unlink()
        assert pydantic.refused("nothing") == "--upgrade nothing: no line of the charm's own requires nothing"
        # What leaves pip the choice needs no other.
        assert "pydantic-2.12.5" in pydantic.pack("pydantic")[0]

    def test_a_lower_bound_stands_in_the_place_of_the_projects_own_range(self, pydantic):
        pydantic.project('[project]\nname = "c"\ndependencies = ["ops", "pydantic~=2.10.0"]\n')
        there, told = pydantic.pack("pydantic>=2.12,<3")
        assert there == ["ops-2.0", "pydantic-2.12.5", "pydantic_core-2.41", "typing-4.12"]
        assert told[0] == "uv.lock:12: pydantic 2.12.5 is packed and not 2.10.6, which is locked: --upgrade pydantic"
        assert pydantic.refused("pydantic>=3") == (
            "--upgrade 'pydantic>=3': there is no release of pydantic that satisfies it; the newest that runs is 2.12.5"
        )

    def test_versions_that_there_are_none_of_are_told_with_the_newest_that_runs(self, pydantic):
        newest = "the newest that runs is 2.12.5"
        for asked in ("pydantic>=99", "pydantic==2.12.49"):
            said = f"--upgrade '{asked}': there is no release of pydantic that satisfies it; {newest}"
            assert pydantic.refused(asked) == said
        (pydantic.charm / "uv.lock").unlink()
        (pydantic.charm / "pyproject.toml").unlink()
        listed = pydantic.charm / "requirements.txt"
        listed.write_text("ops==2.0\npydantic==2.10.6\n")
        assert pydantic.refused("pydantic>=99") == (
            f"--upgrade 'pydantic>=99': there is no release of pydantic that satisfies it; {newest}"
        )
        listed.write_text("ops==2.0\npydantic>=2\n")
        assert pydantic.refused("pydantic<2.5") == (
            f"--upgrade 'pydantic<2.5': there is no release of pydantic that satisfies it and that requirements.txt:2 allows; {newest}"
        )
        # Another reason stays as it is told.
        listed.write_text("ops==2.0\npydantic>=2\nnowhere\n")
        assert "nowhere" in pydantic.refused("pydantic>=2.12")

    def test_pinned_lines_are_left_on_request_and_those_of_what_it_needs_as_far_as_they_must(self, pydantic):
        (pydantic.charm / "uv.lock").unlink()
        pydantic.release("typing", "4.9")
        pins = {"ops": "2.0", "pydantic": "2.10.6", "pydantic_core": "2.27", "typing": "4.12"}
        listed = pydantic.charm / "requirements.txt"
        listed.write_text("".join(f"{name}=={version}\n" for name, version in pins.items()))
        assert pydantic.refused().endswith("change requirements.txt:2, or take one all the same: periapt pack --upgrade 'pydantic>=2.12,<3'")
        said = pydantic.refused("pydantic")
        assert said == (
            "--upgrade pydantic: requirements.txt:2 allows no other version; --upgrade 'pydantic>=2.12,<3' takes one all the same"
        )
        there, told = pydantic.pack("pydantic>=2.12,<3")
        assert there == ["ops-2.0", "pydantic-2.12.5", "pydantic_core-2.41", "typing-4.12"]
        assert told == [
            "requirements.txt:2: pydantic 2.12.5 is packed and not 2.10.6, by --upgrade",
            "requirements.txt:3: pydantic-core 2.41 is packed and not 2.27, by --upgrade",
        ]
        # What does not go with it any more follows.
        listed.write_text(listed.read_text().replace("4.12", "3.0"))
        pydantic.release("typing", "3.0")
        assert "typing-4.15" in pydantic.pack("pydantic>=2.12,<3")[0]

    def test_pins_that_do_not_go_with_it_move_along(self, pydantic):
        (pydantic.charm / "uv.lock").unlink()
        pydantic.release("model", "1.0", ["pydantic<2.11"])
        pydantic.release("model", "2.0", ["pydantic>=2.12"])
        listed = pydantic.charm / "requirements.txt"
        # What requires one that moves, and goes with any version of it, stays.
        for version in ("1.0", "2.0"):
            pydantic.release("user", version, ["model"])
        listed.write_text("model==1.0\nops==2.0\npydantic==2.10.6\nuser==1.0\n")
        there, told = pydantic.pack("pydantic>=2.12,<3")
        assert there == ["model-2.0", "ops-2.0", "pydantic-2.12.5", "pydantic_core-2.41", "typing-4.15", "user-1.0"]
        assert told == [
            "requirements.txt:1: model 2.0 is packed and not 1.0, which requires pydantic<2.11: by --upgrade",
            "requirements.txt:3: pydantic 2.12.5 is packed and not 2.10.6, by --upgrade",
        ]

    def test_the_way_out_stays_in_the_series_of_an_exact_pin_whatever_libraries_allow(self, pydantic):
        (pydantic.charm / "uv.lock").unlink()
        library = pydantic.charm / "lib/charms/mail/v0/mail.py"
        library.parent.mkdir(parents=True)
        library.write_text('PYDEPS = ["pydantic>=1.10,<3"]\n')
        for line, way in (
            ("pydantic==2.10.3", ">=2.12,<3"),
            ("pydantic==1.10.19", ">=1.10.25,<2"),
            ("pydantic>=2.5,<2.12", ">=2.12,<3"),
            ("pydantic>=1.9,<1.10.25", ">=1.10.25,<2"),
        ):
            (pydantic.charm / "requirements.txt").write_text(f"{line}\n")
            assert pydantic.refused(libraries=True).endswith(f"--upgrade 'pydantic{way}'"), line

    def test_pins_of_an_older_series_are_left_within_it(self, pydantic):
        (pydantic.charm / "uv.lock").unlink()
        for version in ("1.10.19", "1.10.26"):
            pydantic.release("pydantic", version, ["typing>=4"])
        (pydantic.charm / "requirements.txt").write_text("pydantic==1.10.19\n")
        there, told = pydantic.pack("pydantic>=1.10.25,<2")
        assert (there, told) == (
            ["pydantic-1.10.26", "typing-4.15"],
            ["requirements.txt:1: pydantic 1.10.26 is packed and not 1.10.19, by --upgrade"],
        )

    def test_a_file_with_digests_is_left_on_request_for_one_package(self, pydantic):
        (pydantic.charm / "uv.lock").unlink()
        lines = [("ops", "2.0"), ("pydantic", "2.10.6"), ("pydantic_core", "2.27"), ("typing", "4.12")]
        text = "".join(f"{name}=={version} --hash={pydantic.digest(name, version)}\n" for name, version in lines)
        (pydantic.charm / "requirements.txt").write_text(text)
        there, told = pydantic.pack("pydantic>=2.12,<3")
        assert there == ["ops-2.0", "pydantic-2.12.5", "pydantic_core-2.41", "typing-4.12"]
        assert [line.split(": ")[0] for line in told] == ["requirements.txt:2", "requirements.txt:3"]

    def test_all_that_cannot_run_is_refused_at_once(self, locked):
        (locked.charm / "requirements.txt").write_text("pydantic==2.10.6\nhttpcore==1.0.4\n")
        with pytest.raises(vendor.VendorError) as raised:
            locked.pack()
        first, *causes = str(raised.value).splitlines()
        assert first == "2 releases cannot run in the sandbox:"
        assert [cause.split(" cannot run")[0] for cause in causes] == [
            "  requirements.txt:1: pydantic==2.10.6",
            "  requirements.txt:2: httpcore==1.0.4",
        ]
        assert "--upgrade 'pydantic>=2.12,<3'" in causes[0] and "--upgrade 'httpcore>=1.0.8,<2'" in causes[1]

    def test_without_a_lock_a_version_that_cannot_run_is_refused_before_anything_is_fetched(self, locked, monkeypatch):
        from periapt_packing import fetching

        monkeypatch.setattr(fetching, "run", lambda *_: pytest.fail("pip ran"))
        for line in ("pydantic==2.10.6", "pydantic>=2,<2.12", "pydantic==1.10.19", "pydantic~=2.9.0"):
            (locked.charm / "requirements.txt").write_text(f"# ours\n{line}\n")
            assert locked.refused().startswith(f"requirements.txt:2: {line} cannot run in the sandbox: "), locked.refused()

    def test_one_that_packages_ask_for_is_refused_with_who_does(self, locked):
        locked.release("pydantic", "2.10.6")
        locked.release("model", "1.0", ["pydantic<2.11"])
        (locked.charm / "requirements.txt").write_text("model\n")
        assert locked.refused().startswith("pydantic 2.10.6, required by model 1.0, cannot run in the sandbox: ")


class TestNativeCode:
    """Locked packages in native code, of which some versions were built for the sandbox."""

    @pytest.fixture
    def pydantic(self, locked):
        """A lock with one release of pydantic and its core, and an index with a newer one of both, and one that nobody built."""
        for version, core in (("2.12.5", "2.41.5"), ("2.13.4", "2.46.4"), ("2.15", "2.60.0")):
            locked.release("pydantic", version, [f"pydantic_core=={core}"])
            files = {"pydantic_core/__init__.py": "", "pydantic_core/_pydantic_core.cpython-314-x86_64-linux-gnu.so": ""}
            locked.release("pydantic_core", core, tag="cp314-cp314-manylinux_2_17_x86_64", files=files)
        locked.project('[project]\nname = "c"\ndependencies = ["pydantic>=2"]\n')
        locked.uv([("pydantic", "2.12.5", 'dependencies = [{ name = "pydantic-core" }]'), ("pydantic_core", "2.41.5")])
        return locked

    def test_the_locked_version_is_taken_as_it_was_built(self, pydantic, built_wheels):
        there, told = pydantic.pack(built=built_wheels("2.41.5", "2.46.4"))
        assert (there, told, pydantic.lacking) == (["pydantic-2.12.5", "pydantic_core-2.41.5"], [], {})
        (library,) = pydantic.charm.rglob("*.so")
        assert library.read_text() == "2.41.5"

    def test_what_was_not_built_in_the_locked_version_is_said_with_both_ways_out(self, pydantic, built_wheels):
        pydantic.pack(built=built_wheels("2.46.4"))
        assert pydantic.lacking == {
            "pydantic_core 2.41.5": "there is no wheel of it for the sandbox, but of 2.46.4; `tools/wheels pydantic-core 2.41.5`"
            " of Periapt's repository builds one into $PERIAPT_CACHE/wheels (~/.cache/periapt/wheels), where packing looks;"
            " PERIAPT_WHEELS names another directory, and `periapt pack --upgrade pydantic` takes another version than the one in"
            " uv.lock"
        }

    def test_an_upgrade_takes_the_newest_version_that_was_built(self, pydantic, built_wheels):
        there, told = pydantic.pack("pydantic", built=built_wheels("2.41.5", "2.46.4"))
        assert (there, pydantic.lacking) == (["pydantic-2.13.4", "pydantic_core-2.46.4"], {})
        assert [line.rpartition(": ")[0].partition(": ")[2] for line in told] == [
            "pydantic 2.13.4 is packed and not 2.12.5, which is locked",
            "pydantic-core 2.46.4 is packed and not 2.41.5, which is locked",
        ]
        (library,) = pydantic.charm.rglob("*.so")
        assert library.read_text() == "2.46.4"
