"""The repository keeps its own rules: size, pins, where SQL is, no trace of one machine."""

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("keys", "crdt", "memory", "sync", "node", "cli")
REQUIREMENTS = ("build.txt", "run.txt", "dev.txt")
LINES_MAX = 400

# Assembled, so that this file does not hold what it looks for.
MACHINE_MARKS = tuple(
    first + second
    for first, second in (
        ("index", "-url"),
        ("find", "-links"),
        ("files.python", "hosted"),
        ("pypi.org", "/simple"),
        ("/wo", "rk/"),
        ("/fa", "rm"),
        ("bash", "_jobs"),
    )
)

SQL = re.compile(
    r"\b(SELECT\s|INSERT\s+(OR\s+\w+\s+)?INTO\s|UPDATE\s+\w+\s+SET\s|DELETE\s+FROM\s|REPLACE\s+INTO\s"
    r"|(CREATE|DROP|ALTER)\s+(TEMP\s+|VIRTUAL\s+|UNIQUE\s+)?(TABLE|INDEX|TRIGGER|VIEW)\s"
    r"|PRAGMA\s+\w|BEGIN\s+(IMMEDIATE|EXCLUSIVE))"
)


def repository_files() -> list[Path]:
    """What is committed or about to be; everything but hidden folders where there is no git."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    if (ROOT / ".git").exists():
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        found = {ROOT / name for name in listed.stdout.split("\0") if name}
    else:
        found = {path for path in ROOT.rglob("*") if not _hidden(path.relative_to(ROOT))}
    return sorted(path for path in found if path.is_file())


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts[:-1])


def python_files(*folders: str) -> list[Path]:
    """The Python files below these top-level folders, or all of them."""
    return [
        path
        for path in repository_files()
        if path.suffix == ".py" and (not folders or path.relative_to(ROOT).parts[0] in folders)
    ]


def names(paths: Iterator[Path]) -> list[str]:
    """Paths as a person would write them."""
    return [str(path.relative_to(ROOT)) for path in paths]


def pins(name: str) -> dict[str, str]:
    """Each requirement of a requirements file with everything that follows its name."""
    text = (ROOT / "requirements" / name).read_text().replace("\\\n", " ")
    lines = (line for line in text.splitlines() if line and not line.lstrip().startswith("#"))
    parted = (line.partition("==") for line in lines)
    return {requirement: exact + rest for requirement, exact, rest in parted}


def project() -> dict[str, object]:
    """The [project] table."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert isinstance(table, dict)
    return table


def test_no_python_file_is_longer_than_400_lines() -> None:
    """A file that a reader cannot hold in mind is split."""
    too_long = (p for p in python_files() if len(p.read_text().splitlines()) > LINES_MAX)
    assert names(too_long) == []


def test_only_the_output_module_prints() -> None:
    """What reaches a terminal is escaped in one place."""

    def prints(path: Path) -> bool:
        called = (n.func for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call))
        return any(isinstance(func, ast.Name) and func.id == "print" for func in called)

    def is_output(path: Path) -> bool:
        return path.relative_to(ROOT).parts[:2] in {("cli", "output.py"), ("cli", "output")}

    assert names(p for p in python_files(*PACKAGES) if prints(p) and not is_output(p)) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_says_what_it_is_for_and_nothing_else(package: str) -> None:
    """An __init__.py holds a docstring, so that importing a module runs that module only."""
    inits = [path for path in python_files(package) if path.name == "__init__.py"]
    assert ROOT / package / "__init__.py" in inits

    for init in inits:
        tree = ast.parse(init.read_text())
        assert ast.get_docstring(tree), f"{init}: no docstring"
        assert len(tree.body) == 1, f"{init}: more than a docstring"


def test_tests_are_no_package() -> None:
    """Test modules are found by path; nothing can import them by accident."""
    assert names(p for p in python_files("tests") if p.name == "__init__.py") == []


@pytest.mark.parametrize("mark", MACHINE_MARKS)
def test_no_file_holds_a_package_index_or_a_path_of_a_machine(mark: str) -> None:
    """A clone works anywhere, and tells nothing of where it was made."""
    holding = (p for p in repository_files() if mark.encode() in p.read_bytes().lower())
    assert names(holding) == []


def test_only_memory_holds_sql() -> None:
    """Every statement that reads or writes a database is in one package."""
    elsewhere = set(PACKAGES) - {"memory"}
    sources = (
        path
        for path in repository_files()
        if path.suffix in {".py", ".sql"} and path.relative_to(ROOT).parts[0] in elsewhere
    )
    assert names(p for p in sources if SQL.search(p.read_text())) == []


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_every_requirement_has_an_exact_version_and_a_hash(name: str) -> None:
    """What is installed is what was looked at."""
    found = pins(name)
    assert found

    for requirement, rest in found.items():
        assert re.match(r"==[\w.!+]+\s", rest), f"{requirement}: no exact version"
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", rest), f"{requirement}: no hash"


def test_the_requirements_agree_with_one_another() -> None:
    """The program is tested with the versions that it is installed with."""
    assert pins("run.txt").items() <= pins("dev.txt").items()
    assert pins("build.txt").items() <= pins("dev.txt").items()


def test_every_runtime_dependency_is_pinned_where_it_is_declared() -> None:
    """pyproject.toml and requirements/run.txt name the same versions."""
    declared = project()["dependencies"]
    assert isinstance(declared, list)
    locked = {name: rest.split()[0] for name, rest in pins("run.txt").items()}

    for dependency in declared:
        name, exact, version = dependency.partition("==")
        assert exact, f"{dependency}: not pinned exactly"
        assert locked[name] == exact + version


def test_automerge_is_pinned_to_the_build_that_was_measured() -> None:
    """Another build may make another change hash from the same operations."""
    declared = project()["dependencies"]
    assert isinstance(declared, list)
    assert "automerge==1.0.0rc1" in declared


def test_the_license_is_there_in_full() -> None:
    """The text that pyproject.toml names is in the repository."""
    text = (ROOT / "LICENSE").read_text()
    assert project()["license"] == "Apache-2.0"
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text
