"""The file of a page: what is in it, and what is refused."""

import json
import re
import zipfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import minigpt.page.build as build
from minigpt import UserError
from minigpt.config import TextConfig, TrainConfig
from minigpt.data.source import find_source
from minigpt.page import about
from minigpt.runs.folder import RunConfig
from minigpt.runs.read_model import load_run
from minigpt.tokenizer import make_tokenizer

from ..interop.test_tokenizer_import import content, read
from .conftest import random_found, write_samples

FOLDER = Path(build.__file__).parent


def test_a_tokenizer_that_the_page_cannot_run_is_refused(tmp_path: Path) -> None:
    split = {"type": "Split", "pattern": {"Regex": r"\S+|\s+"}, "behavior": "Isolated"}
    steps = [split | {"invert": False}, content()["pre_tokenizer"] | {"use_regex": False}]
    data = content() | {"pre_tokenizer": {"type": "Sequence", "pretokenizers": steps}}
    with pytest.raises(UserError, match="cannot run this model's tokenizer"):
        build.page_tokenizer(read(tmp_path, data))


def test_nothing_in_a_text_ends_the_script_that_holds_it(tmp_path: Path) -> None:
    tokenizer = make_tokenizer("char", None, ["</script><!--"])
    found = random_found(tokenizer, tmp_path, emb_dim=8, num_layers=1, num_heads=1)
    page = build.build_page(found, "</script><b>")
    assert page.count("</script>") == page.count("<script") == 5


def test_the_page_begins_with_the_token_and_forbids_the_tokens_that_the_package_does(
    tmp_path: Path,
) -> None:
    """The tokenizer knows more bytes than the text has."""
    (tmp_path / "my.txt").write_text("one two\n" * 9)
    text = TextConfig(files=(str(tmp_path / "my.txt"),))
    tokenizer = make_tokenizer("bpe", 260, ["one two"])
    found = random_found(tokenizer, tmp_path, emb_dim=8, num_layers=1, num_heads=1)
    config = RunConfig(found.glass.config, TrainConfig(), find_source(text).origin(text))
    model, _ = build.page_model(replace(found, config=config), "test")

    allowed = set(range(tokenizer.vocab_size)) - set(model["forbidden"])
    written = b"".join(tokenizer.token_bytes(token) for token in allowed)
    assert set(written) == set(b"one two\n")
    assert tokenizer.end_of_text in model["forbidden"]  # there is one document
    assert tokenizer.token_bytes(model["firstToken"]) == b"\n"


def test_the_pages_files_are_small() -> None:
    files = [f for f in FOLDER.rglob("*") if f.suffix in (".js", ".css", ".html")]
    lines = {file.name: len(file.read_text().splitlines()) for file in files}
    assert max(lines.values()) <= 400


def test_every_file_of_the_page_is_in_it() -> None:
    scripts = {*build.modules_of(build.SCRIPT), *build.modules_of(build.WORKER)}
    assert set(FOLDER.rglob("*.js")) <= scripts
    assert set(FOLDER.rglob("*.css")) <= set(build.STYLE)


@pytest.mark.parametrize("script", [build.SCRIPT, build.WORKER], ids=["page", "worker"])
def test_no_name_is_declared_twice_in_a_script(script: Path) -> None:
    """The modules of a script are put one after another, without a room of their own."""
    declaration = re.compile(
        r"^(?:async )?(?:class|const|let|function\*?) (\w+|\{[^}]*\}|\[[^]]*\])", re.MULTILINE
    )
    declared = Counter[str]()
    for match in declaration.finditer(build.bundle(script)):
        declared.update(re.findall(r"\w+", match[1]))
    assert [name for name, count in declared.items() if count > 1] == []


@pytest.mark.page
def test_the_wheel_holds_the_pages_files(tmp_path: Path) -> None:
    from hatchling.builders.wheel import WheelBuilder

    (wheel,) = WheelBuilder(str(FOLDER.parents[1])).build(directory=str(tmp_path))
    folders = (FOLDER, build.WEB)
    names = tuple(folder.relative_to(FOLDER.parents[1]).as_posix() for folder in folders)
    in_wheel = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith(names)}
    found = [file for folder in folders for file in folder.rglob("*")]
    files = [file for file in found if file.is_file() and file.suffix != ".pyc"]
    assert in_wheel == {f.relative_to(FOLDER.parents[1]).as_posix() for f in files}


@pytest.mark.long
def test_the_page_of_the_base_is_small_and_has_openings_that_the_base_wrote(
    real_base: Path,
) -> None:
    page = build.build_page(load_run(real_base), "base")
    assert len(page.encode()) < 11e6
    written = re.search(r'"openings":(\[.*?\]),"history"', page)
    assert written is not None
    openings = json.loads(written[1])
    assert 1 <= len(openings) <= about.OPENINGS
    assert len({opening.split()[0] for opening in openings}) == len(openings)


@pytest.mark.long
def test_the_page_of_the_demo_is_small(tmp_path: Path) -> None:
    """Of 1.07 M parameters, with a history that is too long for a page."""
    demo = random_found(
        make_tokenizer("char", None, [chr(i) for i in range(0x4E00, 0x4E00 + 2047)]),
        tmp_path,
        emb_dim=128,
        num_layers=4,
        num_heads=4,
    )
    figures = dict.fromkeys(
        ("seconds", "done", "train_loss", "val_loss", "tokens_per_second"), 123.456
    )
    bits = {"train_bits_per_byte": 1.2345, "val_bits_per_byte": 1.2345}
    rows = [json.dumps(figures | bits | {"step": step}) for step in range(1000)]
    (tmp_path / "metrics.jsonl").write_text("\n".join(rows))
    sample = "The old king went away, and nobody knew where. " * 20
    write_samples(tmp_path, dict.fromkeys(range(1000), sample))

    assert 1e6 < sum(array.size for array in demo.glass.weights.values()) < 1.3e6
    assert len(build.build_page(demo, "demo").encode()) < 2.5e6
