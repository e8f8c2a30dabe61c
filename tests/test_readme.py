"""The README's Python runs as it is printed, from the first block to the last."""

import re
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def test_python_blocks_run_in_order(capsys):
    blocks = re.findall(
        r"^```python\n(.*?)^```$", README.read_text("utf-8"), re.M | re.S
    )
    names: dict = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)  # noqa: S102
    assert names["attention"].count_params() == 2 * 64 * 64
    assert names["hypotheses"].ids.shape[:2] == (2, 1)
    assert "Paired bootstrap" in capsys.readouterr().out


def test_relative_links_lead_somewhere():
    targets = re.findall(r"\]\(([^)#:]+)\)", README.read_text("utf-8"))
    assert targets
    assert [t for t in targets if not (README.parent / t).exists()] == []
