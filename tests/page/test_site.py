"""The project's site: what the steps of its workflow build opens in a browser."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ..browser import new_context

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "site.yml"

pytestmark = pytest.mark.page


def test_the_steps_of_the_workflow_build_a_page_that_writes(chromium: Any, tmp_path: Path) -> None:
    """All but the installation, with a shorter training."""
    steps = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]["build"]["steps"]
    folder = next(
        step["with"]["path"] for step in steps if "pages-artifact" in step.get("uses", "")
    )
    commands = [step["run"] for step in steps if "run" in step and step["name"] != "Install"]
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path, "MINUTES": "0.05"}
    for command in commands:
        assert folder in command
        here = command.replace(folder, str(tmp_path / folder))
        subprocess.run(["bash", "-c", here], cwd=ROOT, env=environment, check=True)

    assert [file.name for file in (tmp_path / folder).iterdir()] == ["index.html"]
    page = new_context(chromium).new_page()
    page.goto((tmp_path / folder / "index.html").as_uri())
    page.evaluate("minigpt.ready")
    text = page.evaluate("minigpt.generate('The old', { maxNewTokens: 20, seed: 1 })")
    assert text.startswith("The old") and len(text) > len("The old")
    assert "plays" in page.inner_text("body")
    page.context.close()
