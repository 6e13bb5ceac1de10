"""The distribution: its name, its address, its page on PyPI, the versions it is developed with."""

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .lowest import lowest_versions

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
REPOSITORY = PYPROJECT["project"]["urls"]["Repository"]
UNTRACKED = {".git", ".venv", "node_modules", "runs", "dist", "exports", "results", "api"}


def tracked_files() -> list[Path]:
    """The project's files: those that git tracks, or, without git, all that look like them."""
    try:
        command = ["git", "-C", str(ROOT), "ls-files", "-z"]
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        files = [ROOT / name for name in listed.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        files = [file for file in ROOT.rglob("*") if not UNTRACKED & {*file.parts}]
    return [file for file in files if file.is_file()]


def lines_of_text() -> Iterator[tuple[str, str]]:
    """Each line of each file that holds text, after the name of its file."""
    for file in tracked_files():
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        name = file.relative_to(ROOT).as_posix()
        yield from ((name, line) for line in text.splitlines())


# The name: `minigpt` on PyPI is another project's program


def installs_a_stranger(line: str) -> bool:
    """Whether a line asks pip for `minigpt`, with or without extras."""
    return bool(
        re.search(r"minigpt\\?\[[a-z{]|pip install (-\S+ )*['\"]?minigpt(?![-_]text)", line)
    )


def test_no_hint_installs_the_other_projects_program() -> None:
    found = [place for place in lines_of_text() if installs_a_stranger(place[1])]
    assert [name for name, _ in found if name != "tests/test_package.py"] == []


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("pip install minigpt", True),
        ("pip install -U 'minigpt'", True),
        ("pip install 'minigpt[serve]'", True),
        ('pip install "minigpt-text[serve]"', False),
        ("pip install dist/minigpt_text-0.1.0-py3-none-any.whl", False),
    ],
)
def test_a_wrong_hint_would_be_found(line: str, wrong: bool) -> None:
    assert installs_a_stranger(line) == wrong


# The address


def test_the_projects_address_is_the_same_everywhere() -> None:
    """Where it is not that of pyproject.toml, the assertion names the file."""
    repository = re.compile(
        r"(?:https?://(?!pypi\.org)[\w.-]+/(?:github/)?|git@[\w.-]+:)([\w-]+/minigpt[\w-]*)"
    )  # Colab's addresses hold /github/ and then the owner and the name
    found = [(name, part) for name, line in lines_of_text() for part in repository.findall(line)]
    assert found
    assert [(name, part) for name, part in found if not REPOSITORY.endswith(f"/{part}")] == []


def test_on_pypi_pictures_and_links_of_the_readme_lead_to_the_repository() -> None:
    from hatchling.metadata.core import ProjectMetadata
    from hatchling.plugin.manager import PluginManager

    readme = ProjectMetadata(str(ROOT), PluginManager()).core.readme
    targets = re.findall(r"\]\(([^)\s]+)\)", readme)
    assert f"{REPOSITORY}/raw/main/docs/page-light.png" in targets
    assert f"{REPOSITORY}/blob/main/docs/README.md" in targets
    assert all(re.match("https://|#", target) for target in targets)


@pytest.mark.parametrize(
    ("relative", "absolute"),
    [
        ("[a](docs/a.md#part)", "[a](https://git.org/me/it/blob/main/docs/a.md#part)"),
        ("![a](a.png)", "![a](https://git.org/me/it/raw/main/a.png)"),
        (
            "[![a](../../actions/a.svg)](LICENSE)",
            "[![a](https://git.org/me/it/actions/a.svg)](https://git.org/me/it/blob/main/LICENSE)",
        ),
        ("[a](https://b.org/) and [c](#part)", "[a](https://b.org/) and [c](#part)"),
    ],
)
def test_a_relative_link_becomes_absolute(relative: str, absolute: str) -> None:
    from hatch_build import with_absolute_links

    assert with_absolute_links(relative, "https://git.org/me/it") == absolute


# The base


def test_the_wheel_takes_the_base_but_not_the_programs_that_make_it(tmp_path: Path) -> None:
    from hatch_build import BaseHook

    folder = tmp_path / "data/base"
    folder.mkdir(parents=True)
    for name in ("model.safetensors", "tokenizer.json", "config.json", "SOURCES.md", "pack.py"):
        (folder / name).write_text("")
    built: dict[str, dict[str, str]] = {"force_include": {}}
    hook = BaseHook(str(tmp_path), {}, None, None, "", "wheel")
    hook.initialize("editable", built)
    assert not built["force_include"]

    hook.initialize("standard", built)
    assert built["force_include"] == {
        str(folder / name): f"minigpt/base/{name}"
        for name in ("model.safetensors", "tokenizer.json", "config.json", "SOURCES.md")
    }


# The versions


def requirements() -> list[Requirement]:
    """All that pyproject.toml names, but for the extras that it names itself."""
    project = PYPROJECT["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    found = [Requirement(line) for lines in lists for line in lines]
    return [one for one in found if one.name != project["name"]]


def test_the_lock_has_each_dependency_in_a_version_that_is_allowed() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith("#")]
    versions = {pin.name: str(pin.specifier).removeprefix("==") for pin in pins}

    assert len(versions) > 100  # with the dependencies of dependencies
    for one in requirements():
        assert versions[canonicalize_name(one.name)] in one.specifier


def test_all_that_users_install_but_torch_is_tried_in_its_lowest_version() -> None:
    extras = PYPROJECT["project"]["optional-dependencies"]
    users = [extra for name, extra in extras.items() if not name.startswith("dev")]
    wanted = {line for extra in [PYPROJECT["project"]["dependencies"], *users] for line in extra}
    wanted = {line for line in wanted if not line.startswith("minigpt-text[")}
    tried = {line.replace("==", ">=") for line in lowest_versions() if "==" in line}
    assert wanted - tried == {"torch>=2.9"}
