"""Prints the lowest versions that pyproject.toml allows, one a line for pip: `make test-lowest`.

These are all that users can install, and the two tools that run the tests. torch is that of the
development set-up, because each version of it is gigabytes.
"""

import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"
TOOLS = ("hypothesis", "pytest>")


def lowest_versions() -> list[str]:
    """Such as "numpy==2.0", in the order of pyproject.toml."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = list(project["dependencies"])
    for name, requirements in extras.items():
        if not name.startswith("dev"):
            wanted += requirements
    wanted += [tool for tool in extras["dev"] if tool.startswith(TOOLS)]

    # An extra that is made of others names this package.
    without_torch = [one for one in wanted if not one.startswith(("torch>", project["name"]))]
    return [one.replace(">=", "==") for one in dict.fromkeys(without_torch)]


if __name__ == "__main__":
    print("\n".join([*lowest_versions(), "torch"]))
