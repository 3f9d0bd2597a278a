"""The wheel holds the whole program: built, installed elsewhere, and run from elsewhere."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {"keys", "crdt", "memory", "sync", "node", "cli"}

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(240)]


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    """What the command prints; its output is the message when it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{said}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the working tree, built with the pinned tools and no network."""
    out = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, cwd=ROOT)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture
def installed(wheel: Path, tmp_path: Path) -> Path:
    """A fresh environment that holds the wheel and borrows only this one's dependencies."""
    venv = tmp_path / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv, cwd=tmp_path)
    python = venv / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check")
    run(*pip, "install", "--no-deps", "--no-index", wheel, cwd=tmp_path)

    # A path line adds the folder, not the .pth files in it: an editable install stays unseen.
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = Path(run(python, "-c", ask, cwd=tmp_path).strip())
    borrowed = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    (own / "borrowed.pth").write_text("\n".join(borrowed) + "\n")
    return venv


@pytest.fixture
def account(tmp_path: Path) -> dict[str, str]:
    """The environment of somebody who has never used Roost."""
    home = tmp_path / "home"
    home.mkdir()
    ours = ("ROOST_", "PYTHON", "XDG_", "COV", "COVERAGE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return kept | {"HOME": str(home)}


def test_the_wheel_holds_every_package_and_no_test(wheel: Path) -> None:
    """Only the six packages and the metadata are in the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        folders = {name.split("/")[0] for name in archive.namelist()}
    assert {name for name in folders if not name.endswith(".dist-info")} == PACKAGES


def test_the_wheel_holds_every_file_of_the_packages(wheel: Path) -> None:
    """SQL, specifications and other data beside the code are shipped with it."""
    with zipfile.ZipFile(wheel) as archive:
        shipped = set(archive.namelist())
    present = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert present - shipped == set()


def test_the_installed_wheel_runs_the_demo_from_elsewhere(
    installed: Path, account: dict[str, str], tmp_path: Path
) -> None:
    """Nothing of the source tree is needed to run the program."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    python = installed / "bin" / "python"
    loaded = run(python, "-c", "import cli; print(cli.__file__)", cwd=elsewhere, env=account)
    assert Path(loaded.strip()).is_relative_to(installed)

    run(installed / "bin" / "roost", "demo", cwd=elsewhere, env=account)
