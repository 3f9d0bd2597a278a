"""The negative matrix: every cell is there, has its control, and leaks nothing."""

import sys
from pathlib import Path

from tests.eval.matrix import NODES, ROWS, WAYS, matrix, missing


async def test_no_cell_of_the_negative_matrix_leaks(tmp_path: Path) -> None:
    """Printed, so that a failure shows all of it."""
    cells = await matrix(tmp_path)
    sys.stdout.write("\n".join(map(str, cells)))
    assert missing(cells) == set()
    assert len(cells) == len(ROWS) * len(WAYS) * len(NODES)
    assert [str(c) for c in cells if c.leaked] == []
    assert [str(c) for c in cells if not c.control] == []
