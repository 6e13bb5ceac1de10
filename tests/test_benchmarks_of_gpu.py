"""What is measured on a GPU, which is lent for minutes: the most important first, nothing twice,
and kept as soon as it is measured. Nothing here needs one.
"""

import argparse
import datetime
import importlib
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

import pytest

pytestmark = pytest.mark.figures

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def benchmark(name: str) -> Any:
    """A program of benchmarks/, imported."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.syspath_prepend(BENCHMARKS)
        return importlib.import_module(name)


results = benchmark("results")
of_gpu = benchmark("results_of_gpu")
pages = benchmark("results_pages")


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> argparse.Namespace:
    """The command line of `make bench-gpu`, with results in a folder of its own."""
    monkeypatch.setattr(pages, "STORED", tmp_path / "results.json")
    monkeypatch.setattr(results, "STORED", tmp_path / "results.json")
    monkeypatch.setattr(pages, "QUOTING", [])
    monkeypatch.setattr(results, "write_pages", lambda sections: None)
    (tmp_path / "copy").mkdir()
    words = ["--measure", "gpu", "--texts", str(tmp_path), "--copy", str(tmp_path / "copy")]
    monkeypatch.setattr("sys.argv", ["results.py", *words, "--gpu", "cpu"])
    return results.arguments()


def test_every_target_is_measured_the_most_important_first(given: argparse.Namespace) -> None:
    names = results.names_to_measure(given)
    assert names == list(of_gpu.ON_A_GPU)
    assert names[:3] == ["gpu-half-a-minute", "gpu-minute", "gpu-124M"]
    assert set(of_gpu.TRAININGS) < set(names)
    minutes = [training.minutes for training in of_gpu.TRAININGS.values()]
    assert sum(minutes) < 9  # of about twelve


def test_the_texts_are_made_once_and_are_the_same_everywhere(given: argparse.Namespace) -> None:
    made = of_gpu.text_file("prose-100", given)
    assert len(made.read_text(encoding="utf-8")) == 100_000
    made.write_text("taken from another machine")
    assert of_gpu.text_file("prose-100", given).read_text() == "taken from another machine"
    with pytest.raises(SystemExit, match=r"shakespeare\.txt is not there"):
        of_gpu.text_file("shakespeare", given)


PROBLEMS = [SystemExit("out of memory"), IndexError("no step"), TimeoutExpired("train.py", 150)]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem).__name__)
def test_what_is_measured_is_kept_at_once_and_what_fails_holds_nothing_up(
    problem: BaseException, given: argparse.Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = list[list[str]]()

    def section(title: str) -> Any:
        return pages.Section(title, "command", {}, machine="card", date="today")

    def one(given: argparse.Namespace) -> Iterator[Any]:
        yield section("One")

    def fails(given: argparse.Namespace) -> Iterator[Any]:
        kept.append([known.title for known in pages.read()])
        raise problem
        yield

    def two(given: argparse.Namespace) -> Iterator[Any]:
        yield section("Two")

    measurements = {"gpu-1": one, "gpu-2": fails, "gpu-3": two}
    monkeypatch.setattr(results, "ON_A_GPU", measurements)
    results.main()
    assert kept == [["One"]]
    assert [known.title for known in pages.read()] == ["One", "Two"]
    copy = given.copy / "results.json"
    assert copy.read_text() == pages.STORED.read_text()


def test_what_another_machine_has_measured_is_taken_over_and_quoted(
    given: argparse.Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = pages.Section("One", "command", {"steps": "100"}, machine="card", date="2026-01-01")
    new = replace(old, figures={"steps": "200"}, date="2026-01-02")
    pages.store([], old)
    page = tmp_path / "page.md"
    page.write_text("It made [100](results.md#one) steps.", encoding="utf-8")
    monkeypatch.setattr(pages, "QUOTING", [page])

    brought = tmp_path / "brought.json"
    brought.write_text(json.dumps([asdict(new)]), encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["results.py", "--take", str(brought)])
    results.main()
    assert pages.read() == [new]
    assert page.read_text(encoding="utf-8") == "It made [200](results.md#one) steps."


def test_what_this_card_has_measured_today_is_left_out(
    given: argparse.Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = of_gpu.TRAININGS["gpu-minute"]
    today = datetime.date.today().isoformat()
    known = pages.Section(training.title, "command", {}, machine=of_gpu.card(given), date=today)
    figures = {"bits per byte": "2.00"}
    monkeypatch.setattr(of_gpu, "train", lambda *_, **__: ("command", figures, ""))

    for section, sections in (
        (known, 0),
        (replace(known, date="2026-01-01"), 1),
        (replace(known, machine="another card"), 1),
    ):
        monkeypatch.setattr(of_gpu, "read", lambda section=section: [section])
        assert len(list(of_gpu.trained("gpu-minute", given))) == sections


def test_settings_that_may_improve_the_plan_are_tried_one_by_one(
    given: argparse.Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was cut off goes on with those that are left."""
    tried = list[str]()

    def train(*_: Any, init: str, **__: Any) -> tuple[str, dict[str, str], str]:
        tried.append(init)
        return "command", {"bits per byte": "2.00"}, ""

    monkeypatch.setattr(of_gpu, "train", train)
    monkeypatch.setattr(of_gpu, "read", list)
    first, second, *_ = of_gpu.more_computation(given)
    assert len(tried) == len(of_gpu.TRIED) and tried[0] == "--init none"
    assert (len(first.figures), len(second.figures)) == (1, 2)

    tried.clear()
    monkeypatch.setattr(of_gpu, "read", lambda: [second])
    assert len(list(of_gpu.more_computation(given))) == len(tried) == len(of_gpu.TRIED) - 2
