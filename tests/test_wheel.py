"""The wheel in an environment of its own goes through all commands: `make test-wheel`.

The environment holds the wheel and what it asks for, and nothing else. The commands run in an empty
folder and see nothing of this checkout. They go on from each other, as a person would: the first
trains a run, the others use it.
"""

import contextlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urljoin

import pytest

from minigpt.cli import COMMANDS
from minigpt.runs.folder import CONFIG, TOKENIZER, WEIGHTS

from .patience import PATIENCE

ROOT = Path(__file__).parent.parent
# Another Python to try the wheel with: make test-wheel WHEEL_PYTHON=python3.12
PYTHON = os.environ.get("WHEEL_PYTHON", sys.executable)
SCRIPTS, SUFFIX = ("Scripts", ".exe") if os.name == "nt" else ("bin", "")
STORY = "The old miller had a donkey. The donkey had carried his sacks for many years.\n" * 20

pytestmark = pytest.mark.wheel


class Installed:
    """An environment with the wheel, and an empty folder in which its commands run."""

    def __init__(self, wheel: Path, place: Path):
        self.wheel = wheel
        self.environment = place / "environment"
        self.folder = place / "folder"
        self.folder.mkdir()
        self.tried: set[str] = set()  # commands
        hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "MINIGPT_API_KEY")
        self.variables = {name: value for name, value in os.environ.items() if name not in hidden}
        self.variables["MINIGPT_CACHE"] = str(place / "cache")
        self.variables["PYTHONIOENCODING"] = "utf-8"

        subprocess.run([PYTHON, "-m", "venv", str(self.environment)], check=True)
        if sys.executable == PYTHON and os.name != "nt":
            self.borrow_torch()
        self.install(str(wheel))

    def script(self, name: str) -> str:
        """A program of the environment."""
        return str(self.environment / SCRIPTS / f"{name}{SUFFIX}")

    def borrow_torch(self) -> None:
        """torch, which is gigabytes, is that of the tests; pip adds what it asks for."""
        (packages,) = self.environment.glob("lib/python3*/site-packages")
        installed = importlib.metadata.distribution("torch")
        names = {file.parts[0] for file in installed.files or ()} - {".."}
        for name in names:
            (packages / name).symlink_to(str(installed.locate_file(name)))

    def install(self, *requirements: str) -> None:
        """Install into the environment, in the versions that the development set-up has."""
        # Compiling everything takes longer than compiling what is imported.
        quiet = ("--quiet", "--disable-pip-version-check", "--no-compile")
        constraint = ("--constraint", str(ROOT / "constraints.txt"))
        self.run(
            [self.script("python"), "-m", "pip", "install", *quiet, *constraint, *requirements]
        )

    def run(self, command: Sequence[str], status: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a program in the folder; it must end with this exit status."""
        done = subprocess.run(
            command,
            check=False,
            cwd=self.folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done

    def minigpt(self, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a command of the package. Whatever it prints is of use without a checkout."""
        done = self.run([self.script("minigpt"), *arguments], status)
        assert not re.search(r"\b(train|generate)\.py|\.venv", done.stdout + done.stderr)
        self.tried.add(arguments[0])
        return done


@pytest.fixture(scope="module")
def wheel() -> Path:
    """The wheel that `make test-wheel` has just built."""
    built = list((ROOT / "dist").glob("*.whl"))
    assert len(built) == 1, "make test-wheel builds it"
    return built[0]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(wheel, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def run(installed: Installed) -> str:
    """A run of fifteen seconds on the text that comes with the package."""
    done = installed.minigpt("train", "--minutes", "0.25", "--device", "cpu")

    loss = re.match(r"(runs.plays): validation ([\d.]+) bits/byte", done.stdout)
    assert loss and float(loss[2]) < 3, done.stdout
    assert "plays.txt (play or interview), 12 documents, 643kB" in done.stderr
    return loss[1]


def test_the_package_is_that_of_the_environment(installed: Installed, wheel: Path) -> None:
    code = "import minigpt; print(minigpt.__file__, minigpt.__version__)"
    file, version = installed.run([installed.script("python"), "-c", code]).stdout.split()

    assert Path(file).is_relative_to(installed.environment)
    assert Path(file).with_name("py.typed").exists()  # for type checkers
    assert wheel.name.split("-")[1] == version
    assert version in installed.minigpt("--version").stdout


def test_wheel_and_source_hold_the_base_and_the_wheel_is_small(wheel: Path) -> None:
    (source,) = (ROOT / "dist").glob("*.tar.gz")
    in_wheel = set(zipfile.ZipFile(wheel).namelist())
    with tarfile.open(source) as archive:
        in_source = {name.partition("/")[2] for name in archive.getnames()}

    assert wheel.stat().st_size <= 20_000_000
    for file in base_files():
        assert f"minigpt/base/{file.name}" in in_wheel
        assert f"data/base/{file.name}" in in_source


def test_before_the_first_run_the_base_writes(installed: Installed) -> None:
    base_files()
    done = installed.minigpt("generate", "Once upon a time", "--max-new-tokens", "20")
    assert done.stdout.startswith("Once upon a time")
    assert "no run yet: this is the base; " in done.stderr
    assert "minigpt train my.txt makes it yours" in done.stderr  # the command by its path


def base_files() -> list[Path]:
    """The files of the base; without them the test is skipped."""
    files = [ROOT / "data/base" / name for name in (CONFIG, TOKENIZER, WEIGHTS)]
    if not all(file.exists() for file in files):
        pytest.skip("the base is not in data/base/")
    return files


def test_generate_continues_the_prompt(installed: Installed, run: str) -> None:
    arguments = ("generate", "The old", "--plain", "--seed", "7", "--max-new-tokens", "30")
    text = installed.minigpt(*arguments).stdout
    as_module = [installed.script("python"), "-m", "minigpt", *arguments]

    assert text.startswith("The old")
    assert installed.run(as_module).stdout == text


def test_runs_lists_the_run(installed: Installed, run: str) -> None:
    (line,) = installed.minigpt("runs").stdout.splitlines()
    assert line.startswith(run) and "bits/byte" in line


def test_evaluate_measures_another_text(installed: Installed, run: str) -> None:
    (installed.folder / "story.txt").write_text(STORY)
    table = installed.minigpt("read", "--summary", "story.txt").stderr
    assert "plain text" in table
    line = installed.minigpt("evaluate", run, "story.txt", "--device", "cpu").stdout
    assert re.match(rf"{re.escape(run)}: [\d.]+ bits/byte", line), line


def test_explain_says_why_the_last_token_was_likely(installed: Installed, run: str) -> None:
    sentence = installed.minigpt("explain", run, "The old woman").stdout.splitlines()[0]
    assert re.search(r"is <?[\d.]+% likely after", sentence), sentence


def test_compare_says_what_attention_adds_to_counting(installed: Installed, run: str) -> None:
    (installed.folder / "other.txt").write_text(STORY)
    out = installed.minigpt("compare", run, "counting", "other.txt").stdout
    assert f"{run} beside counting, on other.txt" in out and "bits/byte fewer" in out


def test_page_writes_one_file(installed: Installed, run: str) -> None:
    line = installed.minigpt("page").stdout
    name, _, size = line.partition(":")
    page = (installed.folder / name).read_text(encoding="utf-8")

    assert re.search(r"[\d.]+ MB", size)
    assert page.startswith("<!doctype html>") and page.rstrip().endswith("</html>")
    assert not re.search(r"\{\{\w+\}\}", page)  # places that were to be filled


def test_an_exported_run_is_a_model_like_any_other(installed: Installed, run: str) -> None:
    folder = installed.minigpt("export", "--to", "hf").stdout.strip()
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= set(
        os.listdir(installed.folder / folder)
    )

    greedy = ("generate", "The old", "--temperature", "0", "--run")
    of_run = installed.minigpt(*greedy, run, "--plain")  # not as a talk, of which a folder has none
    assert installed.minigpt(*greedy, folder).stdout == of_run.stdout


def test_what_needs_an_extra_names_it_and_then_works(installed: Installed, run: str) -> None:
    for command in (["serve"], ["studio"], ["export", "--to", "gguf"]):
        missing = installed.minigpt(*command, status=2).stderr
        assert f'pip install "minigpt-text[{command[-1]}]"' in missing

    installed.install(f"{installed.wheel}[studio]")
    folder = installed.minigpt("export", "--to", "gguf").stdout.strip()
    (file,) = (installed.folder / folder).glob("*.gguf")
    assert file.read_bytes().startswith(b"GGUF")


def test_serve_answers_a_request(installed: Installed, run: str) -> None:
    with serving(installed) as address:
        body = {"model": "plays", "prompt": "The old", "max_tokens": 20}
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(
            f"{address}/v1/completions", json.dumps(body).encode(), headers
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            answer = json.load(response)

    assert answer["choices"][0]["text"]


@contextlib.contextmanager
def serving(installed: Installed) -> Iterator[str]:
    """The address of a server at a free port, which is stopped afterwards."""
    command = [installed.script("minigpt"), "serve", "--port", "0"]
    with subprocess.Popen(
        command,
        cwd=installed.folder,
        env=installed.variables,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as server:
        assert server.stderr is not None
        log = ""
        for line in server.stderr:
            log += line
            if address := re.search(r"serving plays at (http://\S+)", line):
                break
        assert address, log

        try:
            yield address[1]
        finally:
            server.terminate()
            server.wait(timeout=PATIENCE)


def test_the_studio_opens_and_has_all_of_its_window(installed: Installed, run: str) -> None:
    command = [installed.script("minigpt"), "studio", "--port", "0", "--no-browser"]
    with subprocess.Popen(
        command,
        cwd=installed.folder,
        env=installed.variables,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ) as studio:
        assert studio.stdout is not None
        address = studio.stdout.readline().split()[-1].partition("#")[0]
        try:
            html = fetched(address)
            found = [
                urljoin(address, path)
                for path in re.findall(r'(?:href|src)="(/static/[^"]+)"', html)
            ]
            assert found
            for place in found:  # which grows by what a script imports
                content = fetched(place)
                assert content
                if place.endswith(".js"):
                    imported = re.findall(r'(?:from |import\()"(\.[^"]+)"', content)
                    found += {urljoin(place, path) for path in imported} - set(found)
            for folder in ("web", "studio/window"):
                assert json.loads(fetched(f"{address}static/{folder}/strings.json"))
        finally:
            studio.terminate()
            studio.wait(timeout=PATIENCE)


def fetched(address: str) -> str:
    """What is at an address, which must be there."""
    with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
        return str(answer.read().decode())


def test_the_package_writes_from_python(installed: Installed, run: str) -> None:
    code = f"import minigpt; print(minigpt.load({run!r}).generate('The old', max_new_tokens=5))"
    text = installed.run([installed.script("python"), "-c", code]).stdout
    assert text.startswith("The old")


COLAB = """
from pathlib import Path

def upload():
    Path("uploaded.txt").write_text(STORY)
    return {"uploaded.txt": b""}

def download(name):
    print("downloads", Path(name).name, Path(name).stat().st_size)
"""


def test_the_colab_notebook_goes_from_a_text_to_a_page(installed: Installed) -> None:
    """With seconds for minutes and the wheel for the package, and a small module in the
    place of Colab's own."""
    folder = installed.folder / "notebook"
    (folder / "google/colab").mkdir(parents=True)
    (folder / "google/colab/files.py").write_text(f"STORY = {STORY!r}\n{COLAB}")
    repository = "git+https://github.com/minigpt-text/minigpt-text"
    changes = {
        f'package = "{repository}"': f"package = {str(installed.wheel)!r}",
        "minutes = 3": "minutes = 0.05",
    }

    installed.install("ipykernel", "nbclient")
    installed.run([installed.script("python"), "-m", "pip", "uninstall", "-qy", "minigpt-text"])
    printed = run_notebook(installed, ROOT / "notebooks/colab.ipynb", folder, changes)

    assert "Text: uploaded.txt" in printed
    assert re.search(r"runs.uploaded: validation [\d.]+ bits/byte", printed)
    assert "page.html: " in printed and "<iframe srcdoc=" in printed
    assert re.search(r"downloads page.html \d+\ndownloads uploaded.zip \d+", printed)


def run_notebook(
    installed: Installed, notebook: Path, folder: Path, changes: dict[str, str]
) -> str:
    """Run the cells of a notebook in a folder, with these changes; what they print and show."""
    content = json.loads(notebook.read_text(encoding="utf-8"))
    cells = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    for old, new in changes.items():
        (cell,) = [cell for cell in cells if old in "".join(cell["source"])]
        cell["source"] = "".join(cell["source"]).replace(old, new)

    copy = folder / notebook.name
    copy.write_text(json.dumps(content), encoding="utf-8")
    installed.run([installed.script("jupyter"), "execute", "--inplace", str(copy)])

    done = json.loads(copy.read_text(encoding="utf-8"))
    outputs = [output for cell in done["cells"] for output in cell.get("outputs", [])]
    texts = [
        output.get("text") or output.get("data", {}).get("text/html", "") for output in outputs
    ]
    return "".join("".join(text) for text in texts)


def test_every_command_was_tried(installed: Installed) -> None:
    assert COMMANDS.keys() - {"serve", "studio"} <= installed.tried
