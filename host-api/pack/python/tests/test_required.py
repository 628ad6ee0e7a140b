"""What a charm requires, by all that may say so."""

import pytest

from periapt_packing import required, requirements
from periapt_packing.git import Checkouts
from periapt_packing.wanted import Choices, Parts


@pytest.fixture
def asked(tmp_path):
    """What a charm with some files requires, in lines, what it constrains, and what is told."""

    def asked(files, **parts):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        wanted = required.of(tmp_path, Parts(**parts), Choices(), Checkouts(tmp_path / "repositories", allowed=False), [])
        return wanted.required, wanted.constraints, wanted.findings

    return asked


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ('"^3.1"', "ops>=3.1,<4"),
        ('"^0.2.3"', "ops>=0.2.3,<0.3"),
        ('"~2.1.4"', "ops>=2.1.4,<2.2"),
        ('"2.1"', "ops==2.1"),
        ('"*"', "ops"),
        ('">=2,<3"', "ops>=2,<3"),
        ('{version = "^3", extras = ["tracing"], markers = "python_version >= \'3.8\'"}', "ops[tracing]>=3,<4; python_version >= '3.8'"),
        ('{version = "^3", python = "^3.10"}', "ops>=3,<4; python_version >= '3.10' and python_version < '4'"),
        ('{version = "^3", python = "3.12.*"}', "ops>=3,<4; python_full_version == '3.12.*'"),
        (
            '{version = "3", python = "<3.9 || >=3.12", markers = "os_name == \'posix\'"}',
            "ops==3; (os_name == 'posix') and ((python_version < '3.9') or (python_version >= '3.12'))",
        ),
        ('{version = "^3", optional = true}', ""),
        ('[{version = "2", python = "<3.10"}, {version = "3", python = ">=3.10"}]', "ops==2; python_version < '3.10'|ops==3; python_version >= '3.10'"),
    ],
)
def test_dependencies_in_poetrys_words_are_the_same_in_pips(asked, said, line):
    listed, _, _ = asked({"pyproject.toml": f'[tool.poetry.dependencies]\npython = "^3.10"\nops = {said}\n'})
    assert "|".join(listed) == line


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ('{path = "../x"}', r"ops: \.\./x leads out of the charm's directory"),
        ('{git = "https://example.com/x"}', r"ops comes from a repository \(https://example.com/x\), and none is asked: .*--allow-git"),
        ('{version = "1", source = "ours"}', "ops: index ours is not asked"),
        ('{url = "https://example.com/x.tar.gz"}', "ops: .* is no wheel"),
        ('["^1", "^2"]', "ops: several choices"),
        ('"1 || 2"', "ops: several choices"),
        ("{new = 1}", "ops: new is not known here"),
    ],
)
def test_of_poetrys_sources_those_that_are_not_taken_are_told_by_line(asked, said, expected):
    with pytest.raises(requirements.RequirementError, match=f"pyproject.toml:3: {expected}"):
        asked({"pyproject.toml": f"# of ours\n[tool.poetry.dependencies]\nops = {said}\n"})


@pytest.mark.parametrize("table", ["[tool.uv.sources]", "[tool.poetry.dependencies]"])
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('{ git = "https://example.org/a" }', r"our-own comes from a repository \(https://example.org/a\)"),
        ('{ path = "../a" }', r"our-own: \.\./a leads out of the charm's directory"),
        ('{ url = "https://example.org/a.tar.gz" }', "our-own: .* is no wheel at an https:// address"),
    ],
)
def test_what_a_project_takes_from_elsewhere_is_not_taken_by_its_name(asked, table, source, expected):
    text = f'[project]\ndependencies = ["Our.Own>=1", "ops"]\n{table}\nour-own = {source}\n'
    with pytest.raises(requirements.RequirementError, match=f"pyproject.toml:4: {expected}"):
        asked({"pyproject.toml": text})
    # Of what is not required it may say what it likes.
    assert asked({"pyproject.toml": text.replace("Our.Own>=1", "other")})[0] == ["other", "ops"]


@pytest.mark.parametrize("table", ["[tool.uv.sources]", "[tool.poetry.dependencies]"])
def test_a_wheel_that_a_project_names_is_taken_from_its_address(asked, table):
    text = f'[project]\ndependencies = ["Our.Own[a]>=1; python_version > \'3\'"]\n{table}\nour-own = {{ url = "https://example.org/a-1.whl" }}\n'
    assert asked({"pyproject.toml": text})[0] == ['Our.Own[a] @ https://example.org/a-1.whl ; python_version > "3"']


def test_indexes_that_a_project_names_are_told(asked):
    text = '[project]\ndependencies = ["ops"]\n[[tool.uv.index]]\nurl = "https://example.org"\n'
    _, _, findings = asked({"pyproject.toml": text})
    assert [(found["file"], found["line"], found["severity"]) for found in findings] == [("pyproject.toml", 3, "warning")]


def test_groups_and_extras_that_parts_name_are_required(asked):
    text = (
        '[project]\ndependencies = ["ops"]\n[project.optional-dependencies]\nMore = ["more==1"]\n'
        '[dependency-groups]\ntls = ["one", {include-group = "deep"}]\ndeep = ["two"]\nround = [{include-group = "round"}]\n'
        '[tool.poetry.group.db.dependencies]\nthree = "^3"\n'
    )
    files = {"pyproject.toml": text, "requirements.txt": "old\n"}
    listed, _, _ = asked(files, project=True, groups=["tls", "db"], extras=["more"])
    assert listed == ["ops", "one", "two", "three>=3,<4", "more==1"]
    assert asked(files)[0] == ["old"]
    for parts, said in (({"groups": ["none"]}, "no group none"), ({"groups": ["round"]}, "includes itself"), ({"extras": ["x"]}, "no extra x")):
        with pytest.raises(requirements.RequirementError, match=said):
            asked(files, project=True, **parts)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[project]\ndependencies = "ops"\n', "pyproject.toml:2: dependencies is no list"),
        ("[project]\ndependencies = [1]\n", "pyproject.toml:2: 1 is no requirement"),
        ('[project]\nname = "c"\ndynamic = ["dependencies"]\n', "pyproject.toml:3: what a build backend finds"),
    ],
)
def test_a_project_whose_dependencies_cannot_be_read_is_an_error(asked, text, said):
    with pytest.raises(requirements.RequirementError, match=said):
        asked({"pyproject.toml": text})


def test_constraints_of_parts_constrain(asked):
    files = {"requirements.txt": "ops\n", "c.txt": "ops<4\n-c more.txt\n", "more.txt": "jinja2<4\n"}
    listed, constraints, _ = asked(files, constraints=["c.txt"])
    assert (listed, constraints) == (["ops"], ["ops<4", "jinja2<4"])


def test_what_libraries_of_charms_name_is_required_and_they_are_not_run(asked, tmp_path):
    files = {
        "requirements.txt": "ops\n",
        "lib/charms/db/v0/db.py": "import nowhere\n\nPYDEPS = ['pydantic>=2', \"cosl\"]\nopen('ran', 'w')\n",
        "lib/charms/db/v0/no.py": "def f(:\n",
        "lib/other.py": "PYDEPS = ['other']\n",
    }
    listed, _, _ = asked(files, libraries=True)
    assert [(line, requirements.place_of(line)) for line in listed[1:]] == [
        ("pydantic>=2", "lib/charms/db/v0/db.py:3"),
        ("cosl", "lib/charms/db/v0/db.py:3"),
    ]
    assert asked(files)[0] == ["ops"]
    for said, message in (("['-rhttps://example.org']", "is for the one who packs"), ("[x for x in ()]", "no list of texts"), ("'ops'", "no list")):
        files["lib/charms/db/v0/db.py"] = f"PYDEPS = {said}\n"
        with pytest.raises(requirements.RequirementError, match=f"lib/charms/db/v0/db.py:1: .*{message}"):
            asked(files, libraries=True)
