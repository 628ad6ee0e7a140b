"""Projects that are taken as source: from the charm's repository, and from others at a commit; nothing of them is run."""

import os
import subprocess

import pytest

from periapt_packing import unpacked, vendor
from periapt_packing.wanted import Choices, Parts

TRAP = "raise SystemExit('a build backend ran')\n"


class Repository:
    """A checkout with a charm and what else the test puts there."""

    def __init__(self, root):
        self.root, self.charm = root, root / "charms/own"
        self.charm.mkdir(parents=True)

    def write(self, files):
        """Write files, by their paths from the root."""
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def pack(self, parts=None, **choices):
        """The files that are brought in, without metadata of packages; and what is told."""
        target = self.charm / "venv"
        done = vendor.vendor(self.charm, target, parts or Parts(), Choices(repository=self.root, **choices))
        files = sorted(path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file())
        return [file for file in files if ".dist-info/" not in file], done["findings"]

    def refused(self, parts=None, **choices):
        """Why nothing is brought in."""
        with pytest.raises(vendor.VendorError) as raised:
            self.pack(parts, **choices)
        assert "\n" not in str(raised.value)
        return str(raised.value)


@pytest.fixture
def repository(tmp_path, index):
    """An empty checkout, and an index without packages."""
    index("some")
    return Repository(tmp_path / "repository")


def project(name, dependencies=(), more=""):
    listed = ", ".join(f'"{one}"' for one in dependencies)
    return f'[project]\nname = "{name}"\nversion = "1.5"\ndependencies = [{listed}]\n{more}'


@pytest.mark.parametrize(
    ("layout", "files"),
    [
        # What backends find that are told nothing.
        (
            {
                "pyproject.toml": project("our-lib"),
                "src/our_lib/__init__.py": "",
                "src/our_lib/data.json": "",
                "src/beside.py": "",
                "tests/test_x.py": "",
            },
            ["beside.py", "our_lib/__init__.py", "our_lib/data.json"],
        ),
        ({"pyproject.toml": project("our-lib"), "our_lib/__init__.py": "", "tests/__init__.py": ""}, ["our_lib/__init__.py"]),
        ({"pyproject.toml": project("our-lib"), "our_lib.py": ""}, ["our_lib.py"]),
        ({"pyproject.toml": project("our-lib"), "other/__init__.py": "", "docs/conf.py": ""}, ["other/__init__.py"]),
        ({"pyproject.toml": project("our-lib"), "src/our/lib/part.py": ""}, ["our/lib/part.py"]),
        # What they are told.
        (
            {
                "pyproject.toml": project(
                    "our-lib", more='[tool.setuptools]\npackages = ["one", "one.deep"]\npackage-dir = {"" = "code"}\n'
                ),
                "code/one/__init__.py": "",
                "code/one/deep/x.py": "",
                "code/two/__init__.py": "",
            },
            ["one/__init__.py", "one/deep/x.py"],
        ),
        (
            {
                "pyproject.toml": project(
                    "our-lib", more='[tool.setuptools.packages.find]\nwhere = ["code"]\ninclude = ["one*"]\n'
                ),
                "code/one/__init__.py": "",
                "code/two/__init__.py": "",
            },
            ["one/__init__.py"],
        ),
        (
            {
                "pyproject.toml": project("our-lib", more='[tool.setuptools]\npy-modules = ["single"]\n'),
                "single.py": "",
                "setup.py": TRAP,
            },
            ["single.py"],
        ),
        (
            {
                "pyproject.toml": project("our-lib", more='[tool.hatch.build.targets.wheel]\npackages = ["code/one"]\n'),
                "code/one/__init__.py": "",
                "code/two/__init__.py": "",
            },
            ["one/__init__.py"],
        ),
        (
            {
                "pyproject.toml": project("our-lib", more='[tool.uv.build-backend]\nmodule-name = "one"\nmodule-root = ""\n'),
                "one/__init__.py": "",
            },
            ["one/__init__.py"],
        ),
        (
            {
                "pyproject.toml": (
                    '[tool.poetry]\nname = "our-lib"\nversion = "1"\npackages = [{include = "one", from = "code"}]\n'
                ),
                "code/one/x.py": "",
            },
            ["one/x.py"],
        ),
        ({"pyproject.toml": project("our-lib", more='[tool.flit.module]\nname = "one"\n'), "one.py": ""}, ["one.py"]),
        (
            {
                "setup.cfg": "[metadata]\nname = our-lib\n[options]\npackages = find:\npackage_dir =\n    = code\n",
                "setup.py": TRAP,
                "code/one/__init__.py": "",
            },
            ["one/__init__.py"],
        ),
        ({"setup.py": TRAP, "our_lib/__init__.py": ""}, ["our_lib/__init__.py"]),
    ],
)
def test_modules_are_found_as_a_build_backend_would_and_none_is_run(repository, layout, files):
    repository.write(
        {"charms/own/pyproject.toml": project("c", ["our-lib"], '[tool.uv.sources]\nour-lib = { path = "../../lib" }\n')}
    )
    repository.write({f"lib/{name}": text for name, text in layout.items()})
    assert repository.pack() == (files, [])
    assert (repository.charm / "venv/our_lib-1.5.dist-info/METADATA").exists() or "1.5" not in str(layout)


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        (
            {"pyproject.toml": project("our-lib")},
            "lib: which modules our-lib has cannot be read without running its build backend",
        ),
        (
            {"pyproject.toml": project("our-lib", more='[build-system]\nbuild-backend = "maturin"\n')},
            "built by maturin, which makes native code",
        ),
        (
            {"pyproject.toml": project("our-lib"), "setup.py": "setup(ext_modules=[])", "our_lib/x.py": ""},
            "has native code .setup.py.",
        ),
        ({"pyproject.toml": project("other"), "other/x.py": ""}, "our-lib: the project in .* calls itself 'other'"),
        (
            {"pyproject.toml": project("our-lib", more='[tool.setuptools]\npackages = ["gone"]\n')},
            "names .*gone among its modules, and that is not there",
        ),
        (
            {
                "pyproject.toml": project(
                    "our-lib", more='[tool.setuptools]\npackages = ["one"]\npackage-dir = {"one" = "../../outside"}\n'
                )
            },
            "outside leads out of the repository",
        ),
        (
            {
                "pyproject.toml": project("our-lib", more='[tool.poetry]\npackages = [{include = "our_lib", to = "../../x"}]\n'),
                "our_lib/x.py": "",
            },
            "'../../x/our_lib' is no name of a package",
        ),
        (
            {"pyproject.toml": '[project]\nname = "our-lib"\ndynamic = ["dependencies"]\n', "our_lib/x.py": ""},
            "what a build backend finds to be required is not",
        ),
        (
            {"setup.py": "setup(install_requires=read())", "our_lib/x.py": ""},
            "setup.py computes what it requires, and is not run",
        ),
    ],
)
def test_what_only_a_build_backend_knows_is_one_line(repository, layout, said):
    (repository.root.parent / "outside").mkdir()
    (repository.root.parent / "outside/secret.py").write_text("")
    repository.write(
        {"charms/own/pyproject.toml": project("c", ["our-lib"], '[tool.uv.sources]\nour-lib = { path = "../../lib" }\n')}
    )
    repository.write({f"lib/{name}": text for name, text in layout.items()})
    with pytest.raises(
        vendor.VendorError, match=f"^(charms/own/)?(pyproject.toml:6|lib/pyproject.toml:3|../../lib/pyproject.toml:3): .*{said}"
    ):
        repository.pack()


def test_what_a_project_requires_is_brought_in_with_its_own_sources(repository, index):
    index("deep", {"deep.py": ""})
    repository.write(
        {
            "charms/own/pyproject.toml": project(
                "c", ["one[more]"], '[tool.uv.sources]\none = { path = "../../lib/one", editable = true }\n'
            ),
            "lib/one/pyproject.toml": project(
                "one", ["two"], '[project.optional-dependencies]\nmore = ["deep"]\n[tool.uv.sources]\ntwo = { path = "../two" }\n'
            ),
            "lib/one/one.py": "",
            # They require each other.
            "lib/two/pyproject.toml": project("two", ["one"], '[tool.uv.sources]\none = { path = "../one" }\n'),
            "lib/two/two.py": "",
        }
    )
    assert repository.pack()[0] == ["deep.py", "one.py", "two.py"]
    assert "Requires-Dist: two" in (repository.charm / "venv/one-1.5.dist-info/METADATA").read_text()


def test_what_is_taken_from_sources_is_not_taken_by_its_name_for_another_package(repository, index):
    index("our-lib".replace("-", "_"), {"evil.py": ""}, version="9.0")
    index("other", {"other.py": ""}, says="Requires-Dist: our-lib\n")
    repository.write(
        {
            "charms/own/pyproject.toml": project("c", ["our-lib", "other"], '[tool.uv.sources]\nour-lib = { path = "../../lib" }\n'),
            "lib/pyproject.toml": project("our-lib"),
            "lib/our_lib.py": "",
        }
    )
    assert repository.refused().startswith("pyproject.toml:6: our-lib is taken from its sources, and other 1.0 requires it by its name")


@pytest.mark.parametrize("locked", [True, False])
def test_members_of_a_workspace_are_found_by_name(repository, locked, index):
    _, digest = index("deep", {"deep.py": ""})
    repository.write(
        {
            "pyproject.toml": (
                '[project]\nname = "all"\nversion = "0"\n[tool.uv.workspace]\nmembers = ["charms/*", "lib/*"]\nexclude ='
                ' ["lib/old"]\n'
            ),
            "charms/own/pyproject.toml": project("own", ["shared"], "[tool.uv.sources]\nshared = { workspace = true }\n"),
            "lib/shared/pyproject.toml": project("shared", ["deep"]),
            "lib/shared/src/shared/__init__.py": "",
            "lib/old/pyproject.toml": project("shared"),
        }
    )
    if locked:
        repository.write(
            {
                "uv.lock": (
                    "version = 1\n"
                    '[[package]]\nname = "own"\nversion = "1.5"\nsource = { virtual = "charms/own" }\ndependencies = [{ name ='
                    ' "shared" }]\n'
                    '[[package]]\nname = "shared"\nversion = "1.5"\nsource = { editable = "lib/shared" }\ndependencies = [{ name'
                    ' = "deep" }]\n'
                    '[[package]]\nname = "deep"\nversion = "1.0"\nsource = { registry = "x" }\nwheels = [{ url ='
                    f' "https://x/deep-1.0-py3-none-any.whl", hash = "{digest}" }}]\n'
                )
            }
        )
        index("deep", {"deep.py": "newer"}, version="2.0")
    assert repository.pack()[0] == ["deep.py", "shared/__init__.py"]
    assert (repository.charm / f"venv/deep-{'1.0' if locked else '1.0'}.dist-info").exists()


def test_of_a_project_that_is_no_package_only_what_it_needs_is_brought_in(repository, index):
    _, digest = index("deep", {"deep.py": ""})
    repository.write(
        {
            "charms/own/pyproject.toml": project("own", ["shared"], '[tool.uv.sources]\nshared = { path = "../../lib" }\n'),
            "lib/pyproject.toml": project("shared", ["deep"], "[tool.uv]\npackage = false\n"),
            "lib/shared.py": "",
            "charms/own/uv.lock": "version = 1\n"
            '[[package]]\nname = "shared"\nversion = "1.5"\nsource = { virtual = "../../lib" }\ndependencies = [{ name = "deep" }]\n'
            f'[[package]]\nname = "deep"\nversion = "1.0"\nwheels = [{{ url = "https://x/deep-1.0-py3-none-any.whl", hash = "{digest}" }}]\n',
        }
    )
    assert repository.pack()[0] == ["deep.py"]


def test_poetrys_directories_are_taken_with_and_without_a_lock(repository):
    repository.write(
        {
            "charms/own/pyproject.toml": (
                '[tool.poetry.dependencies]\npython = "^3.10"\nour-lib = {path = "../../lib", develop = true}\n'
            ),
            "lib/pyproject.toml": '[tool.poetry]\nname = "our-lib"\nversion = "2"\n',
            "lib/our_lib/__init__.py": "",
        }
    )
    assert repository.pack()[0] == ["our_lib/__init__.py"]
    repository.write(
        {
            "charms/own/poetry.lock": (
                '[[package]]\nname = "our-lib"\nversion = "2"\nfiles = []\n[package.source]\ntype = "directory"\nurl ='
                ' "../../lib"\n\n[metadata]\nlock-version = "2.1"\n'
            )
        }
    )
    assert repository.pack()[0] == ["our_lib/__init__.py"]


def test_directories_in_a_file_of_requirements_are_taken(repository):
    repository.write(
        {"charms/own/requirements.txt": "-e ../../lib\n", "lib/pyproject.toml": project("our-lib"), "lib/our_lib/__init__.py": ""}
    )
    assert repository.pack()[0] == ["our_lib/__init__.py"]
    # The charm itself is there; what it requires is brought in.
    repository.write({"charms/own/requirements.txt": "-e .\n", "charms/own/pyproject.toml": project("c", ["our-lib"], '[tool.uv.sources]\nour-lib = { path = "../../lib" }\n')})
    assert repository.pack()[0] == ["our_lib/__init__.py"]
    repository.write({"charms/own/requirements.txt": "./gone\n"})
    assert "no directory" in repository.refused()
    repository.write({"charms/own/requirements.txt": "../../../outside\n"})
    assert repository.refused().startswith("requirements.txt:1: ") and "leads out of the repository" in repository.refused()


def test_links_are_followed_in_the_repository_and_not_out_of_it(repository):
    repository.write({"charms/own/pyproject.toml": project("c", ["our-lib"], '[tool.uv.sources]\nour-lib = { path = "lib" }\n')})
    repository.write({"lib/pyproject.toml": project("our-lib"), "lib/our_lib/__init__.py": "", "common/part.py": ""})
    (repository.charm / "lib").symlink_to("../../lib")
    (repository.root / "lib/our_lib/common").symlink_to("../../common")
    assert repository.pack()[0] == ["our_lib/__init__.py", "our_lib/common/part.py"]
    outside = repository.root.parent / "outside"
    outside.mkdir()
    (outside / "secret.py").write_text("")
    (repository.root / "lib/our_lib/away").symlink_to(outside)
    said = repository.refused()
    assert (
        said.startswith("pyproject.toml:6: ")
        and f"lib/our_lib/away is a link to {outside}, and leads out of the repository" in said
    ), said
    (repository.root / "lib/our_lib/away").unlink()
    (repository.root / "lib/our_lib/away").symlink_to("..")
    assert "is a link to a directory that it lies in" in repository.refused()


class Commit(str):
    """A commit, and one after it."""

    later = ""


class TestRepositories:
    """`--allow-git`."""

    @pytest.fixture
    def commit(self, tmp_path, monkeypatch):
        """A repository that git finds at https://example.org/lib.git; the commit with a library in it."""
        place = tmp_path / "served"
        (place / "python/our_lib").mkdir(parents=True)
        (place / "python/pyproject.toml").write_text(project("our-lib", ["some"]))
        (place / "python/our_lib/__init__.py").write_text("")
        (place / "python/our_lib/away").symlink_to("/etc/hostname")
        (place / "python/setup.py").write_text(TRAP)
        (place / "post-checkout").write_text("#!/bin/sh\ntouch ran\n")

        def git(*arguments):
            own = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
            return subprocess.run(
                ["git", "-C", str(place), *arguments], check=True, capture_output=True, text=True, env={**os.environ, **own}
            ).stdout.strip()

        git("init", "--quiet")
        git("add", "-A")
        git("commit", "--quiet", "-m", "first")
        found = Commit(git("rev-parse", "HEAD"))
        git("branch", "with-lib")
        git("tag", "v1")
        git("tag", "-a", "-m", "with a message", "v2")
        git("rm", "-rq", "python")
        (place / "beside").mkdir()
        (place / "beside/pyproject.toml").write_text(project("our-lib"))
        (place / "beside/our_lib.py").write_text("")
        git("add", "-A")
        git("commit", "--quiet", "-m", "later")
        found.later = git("rev-parse", "HEAD")
        git("config", "uploadpack.allowAnySHA1InWant", "true")
        for number, (key, value) in enumerate([(f"url.file://{place}.insteadOf", "https://example.org/lib.git")]):
            monkeypatch.setenv(f"GIT_CONFIG_KEY_{number}", key)
            monkeypatch.setenv(f"GIT_CONFIG_VALUE_{number}", value)
        monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
        return found

    @staticmethod
    def sources(commit):
        """The same source in all the ways that projects have to say it."""
        own = "charms/own/pyproject.toml"
        lock = (
            'version = 1\n[[package]]\nname = "some"\nversion = "1.0"\nwheels = [{ url = "https://x/some-1.0-py3-none-any.whl",'
            ' hash = "DIGEST" }]\n[[package]]\nname = "our-lib"\nversion = "1.5"\nsource = { git ='
            f' "https://example.org/lib.git?subdirectory=python&rev=main#{commit}" }}\ndependencies = [{{ name = "some" }}]\n'
        )
        poetry = (
            '[[package]]\nname = "our-lib"\nversion = "1.5"\nfiles = []\n[package.source]\ntype = "git"\nurl ='
            f' "https://example.org/lib.git"\nreference = "main"\nresolved_reference = "{commit}"\nsubdirectory ='
            ' "python"\n[metadata]\nlock-version = "2.1"\n'
        )
        return {
            "uv": {
                own: project(
                    "c",
                    ["our-lib"],
                    f'[tool.uv.sources]\nour-lib = {{ git = "https://example.org/lib.git", rev = "{commit}", subdirectory ='
                    ' "python" }\n',
                )
            },
            "uv.lock": {
                own: project(
                    "c", ["our-lib"], '[tool.uv.sources]\nour-lib = { git = "https://example.org/lib.git", branch = "main" }\n'
                ),
                "charms/own/uv.lock": lock,
            },
            "poetry": {
                own: (
                    f'[tool.poetry.dependencies]\nour-lib = {{git = "https://example.org/lib.git", rev = "{commit}", subdirectory'
                    ' = "python"}\n'
                )
            },
            "poetry.lock": {
                own: '[tool.poetry.dependencies]\nour-lib = {git = "https://example.org/lib.git"}\n',
                "charms/own/poetry.lock": poetry,
            },
            "direct": {own: project("c", [f"our-lib @ git+https://example.org/lib.git@{commit}#subdirectory=python"])},
            "requirements": {
                "charms/own/requirements.txt": f"git+https://example.org/lib.git@{commit}#egg=our-lib&subdirectory=python\n"
            },
        }

    @pytest.mark.parametrize("way", ["uv", "uv.lock", "poetry", "poetry.lock", "direct", "requirements"])
    def test_a_pinned_commit_is_taken_where_that_is_allowed(self, repository, commit, way, index):
        _, digest = index("some", {"some.py": ""})
        repository.write({name: text.replace("DIGEST", digest) for name, text in self.sources(commit)[way].items()})
        said = repository.refused()
        assert (
            "our-lib comes from a repository (https://example.org/lib.git), and none is asked: periapt pack --allow-git" in said
        ), said
        files, _ = repository.pack(allow_git=True)
        # A link is the text that it says.
        assert files == ["our_lib/__init__.py", "our_lib/away", *(["some.py"] if way != "poetry.lock" else [])]
        assert (repository.charm / "venv/our_lib/away").read_text() == "/etc/hostname"

    @pytest.mark.parametrize(
        ("said", "expected"),
        [
            ('{ git = "https://example.org/lib.git", branch = "gone" }', "it has no branch or tag gone; a commit is named by all"),
            ('{ git = "https://example.org/lib.git", rev = "ABBREVIATED" }', "it has no branch or tag [0-9a-f]{8}; a commit is named by all"),
            ('{ git = "https://example.org/lib.git", branch = "--upload-pack=x" }', "'--upload-pack=x' is no commit, branch or tag"),
            ('{ git = "https://example.org/lib.git", branch = "m*" }', "'m.' is no commit, branch or tag"),
            ('{ git = "file:///etc", rev = "COMMIT" }', "only https:// and ssh:// addresses"),
            ('{ git = "ext::sh -c touch% ran", rev = "COMMIT" }', "only https:// and ssh:// addresses"),
            ('{ git = "https://example.org/lib.git", rev = "COMMIT", subdirectory = "../.." }', "it has no directory '../..'"),
            ('{ git = "https://example.org/lib.git", rev = "NONE" }', "git: "),
            ('{ git = "ssh://-oProxyCommand=x/", rev = "COMMIT" }', "only https:// and ssh:// addresses"),
            (
                '{ git = "https://user:secret@example.org/lib.git", branch = "m*" }',
                "comes from a repository .https://example.org/lib.git.",
            ),
        ],
    )
    def test_nothing_else_is_fetched(self, repository, commit, said, expected):
        said = said.replace("COMMIT", commit).replace("NONE", "0" * 40).replace("ABBREVIATED", commit[:8])
        repository.write({"charms/own/pyproject.toml": project("c", ["our-lib"], f"[tool.uv.sources]\nour-lib = {said}\n")})
        with pytest.raises(vendor.VendorError, match=f"^pyproject.toml:6: .*{expected}"):
            repository.pack(allow_git=True)

    @pytest.mark.parametrize(
        ("said", "named"),
        [
            ('{ git = "https://example.org/lib.git", branch = "with-lib", subdirectory = "python" }', "with-lib"),
            ('{ git = "https://example.org/lib.git", tag = "v1", subdirectory = "python" }', "v1"),
            ('{ git = "https://example.org/lib.git", rev = "v2", subdirectory = "python" }', "v2"),
            ('{ git = "https://example.org/lib.git", subdirectory = "beside" }', "its default branch"),
        ],
    )
    def test_a_branch_or_a_tag_is_taken_at_the_commit_that_it_means_and_that_is_told(self, repository, commit, said, named, index):
        index("some", {"some.py": ""})
        repository.write({"charms/own/pyproject.toml": project("c", ["our-lib"], f"[tool.uv.sources]\nour-lib = {said}\n")})
        files, told = repository.pack(allow_git=True)
        taken = commit.later if named == "its default branch" else commit
        assert files == ["our_lib.py"] if named == "its default branch" else "our_lib/__init__.py" in files
        assert [(it["file"], it["line"], it["message"]) for it in told] == [
            (
                "pyproject.toml",
                6,
                f"our-lib is taken from https://example.org/lib.git at {taken}, which {named} means now: write that commit to get the"
                " same again",
            )
        ]

    def test_a_commit_with_more_than_a_charm_may_have_is_not_written(self, repository, commit, monkeypatch):
        monkeypatch.setattr(unpacked, "MOST_FILES", 3)
        repository.write(self.sources(commit)["uv"])
        assert "or more than 3 files" in repository.refused(allow_git=True)
