"""The base: what it is made of, and that a damaged or missing one is refused in one line."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

import minigpt
from data.base.pack import write_base
from minigpt import UserError
from minigpt.config import SampleConfig
from minigpt.runs.base import bytes_read, read_base
from minigpt.runs.folder import CONFIG, GENERATION, PLAN, TOKENIZER, WEIGHTS
from minigpt.runs.read_model import load_run
from minigpt.runs.weights import read_best
from minigpt.system.eight_bits import restored, rounded

from ..conftest import train_tiny

PACK = Path(__file__).parents[2] / "data/base/pack.py"
FILES = {CONFIG, GENERATION, TOKENIZER, WEIGHTS}


def test_the_base_is_its_run_in_8_bits(tiny_run: Path, tiny_base: Path) -> None:
    stored = load_file(tiny_base / WEIGHTS)
    run = load_run(tiny_run)
    expected = restored(rounded(run.glass.weights))
    found = read_base()

    assert {array.dtype.name for array in stored.values()} == {"int8", "float16"}
    assert found.glass.config == run.glass.config
    assert found.tokenizer.encode("the fox said") == run.tokenizer.encode("the fox said")
    for name, array in found.glass.weights.items():
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, expected[name])
        np.testing.assert_allclose(array, run.glass.weights[name], atol=0.01)


def test_nothing_in_it_tells_of_its_texts_or_their_place(tiny_run: Path, tiny_base: Path) -> None:
    config = read_base().config
    assert config is not None and config.origin.text is None and not config.origin.fingerprint
    assert read_best(tiny_base / WEIGHTS) == read_best(tiny_run / WEIGHTS)

    assert {file.name for file in tiny_base.iterdir()} == FILES
    for file in tiny_base.iterdir():
        content = file.read_bytes()
        assert b"my.txt" not in content and str(tiny_run.parent.parent).encode() not in content


def test_it_says_how_much_text_its_run_has_learned_from(tiny_run: Path, tiny_base: Path) -> None:
    assert bytes_read() == json.loads((tiny_run / PLAN).read_text())["text"]["size"]
    write_base(tiny_run, tiny_base, size_read=7)
    assert bytes_read() == 7

    (tiny_base / CONFIG).write_text("{}")
    assert bytes_read() is None


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_base_that_lacks_a_file_is_refused_with_its_name(tiny_base: Path, name: str) -> None:
    (tiny_base / name).unlink()
    with pytest.raises(UserError, match=rf"^the base is missing: .*{name}; install minigpt again$"):
        read_base()


@pytest.mark.parametrize("name", [GENERATION, TOKENIZER, WEIGHTS])
def test_a_base_of_which_one_bit_has_changed_is_refused(tiny_base: Path, name: str) -> None:
    content = bytearray((tiny_base / name).read_bytes())
    content[-20] ^= 1
    (tiny_base / name).write_bytes(content)
    with pytest.raises(UserError, match=r"^the base in .* is damaged; install minigpt again$"):
        read_base()


def test_a_base_of_whose_config_one_number_has_changed_is_refused(tiny_base: Path) -> None:
    content = json.loads((tiny_base / CONFIG).read_text())
    content["model"]["norm_eps"] *= 10
    (tiny_base / CONFIG).write_text(json.dumps(content))
    with pytest.raises(UserError, match="damaged"):
        read_base()


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"sha256": 3}', "\0" * 900])
def test_a_base_with_a_damaged_config_is_refused(tiny_base: Path, content: str) -> None:
    (tiny_base / CONFIG).write_text(content)
    with pytest.raises(UserError, match="damaged"):
        read_base()


def test_what_is_too_large_or_no_gpt_or_does_not_fit_into_8_bits_is_not_made_a_base(
    tiny_run: Path, tiny_base: Path, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {file: file.read_bytes() for file in tiny_base.iterdir()}
    steep = train_tiny(steps=1, num_evals=1)
    weights = load_run(steep).glass.weights
    changed = {name: np.where(array == array.max(), 1e8, array) for name, array in weights.items()}
    minigpt.system.safetensors_files.save_tensors(changed, steep / WEIGHTS, {})

    with pytest.raises(UserError, match="not finite numbers in 8 bits"):
        write_base(steep, tiny_base)
    faint = {name: np.ones_like(array) for name, array in weights.items()}
    faint["token_embedding.weight"][3] = 1e-6  # the step would be too small for 16 bits
    minigpt.system.safetensors_files.save_tensors(faint, steep / WEIGHTS, {})
    with pytest.raises(UserError, match=r"a row of token_embedding.weight that is too small for 8"):
        write_base(steep, tiny_base)

    (steep / GENERATION).write_text('{"seed": 3}')
    with pytest.raises(UserError, match="cannot set seed"):
        write_base(steep, tiny_base)
    (steep / GENERATION).unlink()
    with pytest.raises(UserError, match=r"does not say how it is sampled: it has no gen[a-z.]*$"):
        write_base(steep, tiny_base)

    with pytest.raises(UserError, match="is not a run"):
        write_base(workplace, tiny_base)
    monkeypatch.setattr("data.base.pack.LARGEST", 1000)
    with pytest.raises(UserError, match="bytes, more than 1,000"):
        write_base(tiny_run, tiny_base)

    assert {file: file.read_bytes() for file in tiny_base.iterdir()} == before


def test_other_files_of_the_folder_stay(tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / "SOURCES.md").write_text("what it has read")
    size = write_base(tiny_run, tmp_path)
    write_base(tiny_run, tmp_path)

    assert {file.name for file in tmp_path.iterdir()} == {*FILES, "SOURCES.md"}
    assert size == sum((tmp_path / name).stat().st_size for name in FILES)
    assert json.loads((tmp_path / CONFIG).read_text())["origin"]["text"] is None


@pytest.mark.long
def test_pack_makes_a_base_of_a_run_or_says_why_not(tiny_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "base"
    command = [sys.executable, PACK, "--out", out]
    done = subprocess.run([*command, tiny_run], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{out}: ") and {file.name for file in out.iterdir()} == FILES

    done = subprocess.run([*command, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == f"error: {tmp_path} is not a run: it has no config.json\n"


def test_it_is_sampled_as_its_run(tiny_run: Path, tiny_base: Path) -> None:
    assert read_base().usual == load_run(tiny_run).usual != SampleConfig()
