"""The output of the command line as a stream: nobody reads it, or the locale knows no letters."""

import os
import subprocess
import sys

import pytest

from tests.support.roost import Roost


def test_nobody_reading_the_output_is_no_fault(roost: Roost) -> None:
    """``roost list | head`` ends quietly, and not with 0."""
    text = "x" * 200
    records = [
        {"record": f"r{n}", "state": "new", "kind": "turn", "text": text} for n in range(999)
    ]
    roost.node.script["list"] = {"records": records, "total": 999, "next": None}
    code = "import sys; from cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "--home", str(roost.node.home), "list", "muse"]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("arguments", [["agent", "list"], ["--json", "agent", "list"]])
def test_output_is_utf_8_whatever_the_locale_says(roost: Roost, arguments: list[str]) -> None:
    """A name may have any letter."""
    agents = [{"agent": "a1", "name": "Müse \ud800 日本"}]
    roost.node.script["agent.list"] = {"agents": agents}
    code = "import sys; from cli.main import main; sys.exit(main())"
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-c", code, "--home", str(roost.node.home), *arguments]
    done = subprocess.run(command, capture_output=True, env=env, check=True)
    assert "Müse \\ud800 日本" in done.stdout.decode("utf-8")
