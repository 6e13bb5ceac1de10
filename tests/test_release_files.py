"""The workflows, CITATION.cff and what GitHub shows agree with pyproject.toml and the Makefile."""

import platform
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import minigpt
from minigpt.cli import main

ROOT = Path(__file__).parent.parent
GITHUB = ROOT / ".github"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
WORKFLOWS = sorted(GITHUB.glob("workflows/*.yml"))


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(workflow: Path) -> list[dict[str, Any]]:
    return [step for job in read(workflow)["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_what_a_workflow_runs_is_there(workflow: Path) -> None:
    commands = "\n".join(step.get("run", "") for step in steps(workflow))

    targets = re.findall(r"^(?:make) ([\w-]+)", commands, re.M)
    files = re.findall(
        r"(?:^|\s)((?:\.\w+|tests|docs|benchmarks)/[\w./]+|\w+\.(?:txt|toml|py))", commands
    )
    extras = re.findall(r"'\.\[([\w,-]+)\]'", commands)
    markers = re.findall(r"pytest -m (\w+)", commands)
    assert targets or files

    assert all(re.search(rf"^{target}:", MAKEFILE, re.M) for target in targets)
    assert all((ROOT / file).exists() for file in files)
    for names in extras:
        assert set(names.split(",")) <= PROJECT["project"]["optional-dependencies"].keys()
    registered = {
        line.split(":")[0] for line in PROJECT["tool"]["pytest"]["ini_options"]["markers"]
    }
    assert set(markers) <= registered


def test_the_tested_pythons_begin_with_the_oldest_that_is_promised() -> None:
    matrix = read(GITHUB / "workflows/tests.yml")["jobs"]["tests"]["strategy"]["matrix"]
    assert PROJECT["project"]["requires-python"] == f">={matrix['python'][0]}"

    kind = "Programming Language :: Python :: 3."
    promised = [line for line in PROJECT["project"].get("classifiers", []) if line.startswith(kind)]
    if promised:
        assert [line.split(" :: ")[-1] for line in promised] == matrix["python"]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_read_and_only_publishing_asks_for_more(workflow: Path) -> None:
    content = read(workflow)
    assert content["permissions"] == {"contents": "read"}

    allowed = {
        name: job["permissions"] for name, job in content["jobs"].items() if "permissions" in job
    }
    publishes: dict[str, dict[str, dict[str, str]]] = {
        "publish": {"publish": {"id-token": "write"}},
        "site": {"publish": {"pages": "write", "id-token": "write"}},
    }
    assert allowed == publishes.get(workflow.stem, {})


def test_only_a_tag_publishes() -> None:
    triggers = read(GITHUB / "workflows/publish.yml")[True]  # YAML reads "on" as true
    assert triggers == {"push": {"tags": ["v*"]}}


def test_the_readme_begins_with_the_address_of_the_site() -> None:
    """GitHub Pages has it by the names of the owner and of the repository."""
    owner, name = PROJECT["project"]["urls"]["Repository"].split("/")[-2:]
    first = (ROOT / "README.md").read_text(encoding="utf-8").split("\n\n")[1]
    assert f"](https://{owner}.github.io/{name}/)" in first


def test_the_citation_is_that_of_this_version() -> None:
    citation = read(ROOT / "CITATION.cff")
    project = PROJECT["project"]

    assert citation["version"] == project["version"] == minigpt.__version__
    assert citation["license"] == project["license"]
    assert citation["abstract"] == project["description"]
    assert citation["repository-code"] == project["urls"]["Repository"]


def test_a_bug_report_asks_for_the_command_the_system_and_the_device() -> None:
    form = read(GITHUB / "ISSUE_TEMPLATE/bug.yml")
    required = {
        field["id"] for field in form["body"] if field.get("validations", {}).get("required")
    }
    assert {"command", "machine", "device"} <= required


def test_version_prints_what_a_bug_report_needs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert not end.value.code

    (line,) = capsys.readouterr().out.splitlines()
    expected = (f"minigpt {minigpt.__version__}", "torch 2.", platform.python_version())
    assert all(part in line for part in (*expected, platform.system()))
