"""Which device and which precision are taken where nobody named one, on machines that are not here:
what torch says of them is replaced."""

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import minigpt
from minigpt import UserError
from minigpt.devices import check as device_check
from minigpt.devices import choice as devices
from minigpt.devices.check import why_wrong
from minigpt.devices.choice import Gpu, this_gpu
from minigpt.recipe import choose_plan
from minigpt.recipe.machine import Speed
from minigpt.recipe.plan import Planned
from minigpt.recipe.resume import continued_config
from minigpt.runs.folder import CONFIG, read_config
from minigpt.training import distributed, precision
from minigpt.training.checkpoint import read_state
from minigpt.training.precision import choose_precision
from tests.conftest import tiny_settings, train_tiny
from tests.recipe.plans import plan_of
from tests.training.runs import resume

CPU, CUDA, MPS = map(torch.device, ("cpu", "cuda", "mps"))


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    """What was found out of this machine is found out anew, before and after."""
    asked = (this_gpu, why_wrong, distributed._say_once)
    for function in asked:
        function.cache_clear()
    yield
    for function in asked:
        function.cache_clear()


# Whether a device computes rightly


@pytest.mark.parametrize("narrow", [torch.bfloat16, torch.float16])
def test_a_device_that_is_right_passes_in_any_precision(narrow: torch.dtype) -> None:
    assert why_wrong(CPU) is None and why_wrong(CPU, narrow) is None


@pytest.mark.parametrize("name", ["its losses", "its gradients", "its next tokens"])
def test_what_is_wrong_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = device_check._results

    def results(model: Any, ids: Any, device: torch.device, precision: torch.dtype) -> Any:
        found = plain(model, ids, CPU, torch.float32)
        wrong = found[name] + 0.3 * found[name].roll(1, dims=0)
        return found if device == CPU else {**found, name: wrong}

    monkeypatch.setattr(device_check, "_results", results)
    assert str(why_wrong(MPS)).startswith(f"{name} differ by ")


def test_a_device_that_cannot_compute_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_gpu", lambda: torch.device("meta"))
    gpu = this_gpu()
    assert gpu.device is None
    assert str(gpu.problem).startswith("meta is not used, because it computes wrongly here: ")


def test_on_a_cpu_alone_nothing_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_check, "_results", None)
    monkeypatch.setattr(devices, "_gpu", lambda: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert distributed.device_of_rank("auto") == CPU
    assert this_gpu() == (None, None)


@pytest.mark.parametrize(
    ("version", "words"), [(None, "this torch is not for CUDA"), ("13.0", "cannot run CUDA 13.0")]
)
def test_a_gpu_that_torch_does_not_find_is_named_once(
    version: str | None,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(devices, "_gpu", lambda: None)
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/nvidia-smi")
    monkeypatch.setattr(torch.version, "cuda", version)
    assert distributed.device_of_rank("auto") == distributed.device_of_rank("auto") == CPU
    said = capsys.readouterr().err
    assert words in said and said.count("NVIDIA") == 1


def test_a_device_that_was_asked_for_is_used_although_it_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(distributed, "find_device", torch.device)
    monkeypatch.setattr(distributed, "why_wrong", lambda device: "its losses differ by 30%")
    assert distributed.device_of_rank("mps") == MPS
    assert "its losses differ by 30%; --device cpu would not" in capsys.readouterr().err


def test_a_training_on_the_cpu_leaves_a_gpu_alone(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: Any) -> None:
        raise RuntimeError("all CUDA-capable devices are busy")

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_rng_state", busy)
    train_tiny(steps=1, num_evals=1)


@pytest.mark.parametrize("local_rank", ["0", "1"])
def test_each_of_two_processes_refuses_to_share_a_gpu(
    local_rank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_RANK", local_rank)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setattr(distributed, "world_size", lambda: 2)
    monkeypatch.setattr(distributed, "find_device", torch.device)
    monkeypatch.setattr(distributed, "why_wrong", lambda device: None)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(UserError, match="or each on a GPU of its own: torchrun"):
        distributed.device_of_rank("cuda")

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert distributed.device_of_rank("cuda") == torch.device("cuda", int(local_rank))


# Which of two is taken for a training


@pytest.fixture
def on_a_machine_with(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Planned]:
    """Plans a training on a machine with a GPU that is so many times as fast as its CPU."""

    def planned(times: float, **given: Any) -> Planned:
        def measure(device: torch.device, *_: Any) -> Speed:
            return Speed(6e10, 2e-3) if device == CPU else Speed(6e10 * times, 2e-3 / times)

        monkeypatch.setattr(distributed, "this_gpu", lambda: Gpu(CUDA, None))
        monkeypatch.setattr(choose_plan, "measure_speed", measure)
        return plan_of(files=("my.txt",), init="none", precision="float32", **given)

    return planned


SHAPE = {"emb_dim": 64, "num_layers": 2}


@pytest.mark.parametrize(
    "given", [{"minutes": 0.1}, {"steps": 50}, {"steps": 50, **SHAPE}], ids=str
)
def test_the_faster_device_is_taken_and_a_line_says_why(
    given: dict[str, Any], on_a_machine_with: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert on_a_machine_with(20.0, **given).settings["device"] == "cuda"
    assert "training on cuda: for " in capsys.readouterr().err
    assert on_a_machine_with(0.25, **given).settings["device"] == "cpu"
    assert "M parameters the processor is 4.0 times as fast\n" in capsys.readouterr().err


def test_beside_a_gpu_that_is_faster_than_any_processor_none_is_measured(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """So the first step comes earlier."""
    asked = list[torch.device]()

    def measure(device: torch.device, *_: Any) -> Speed:
        asked.append(device)
        return Speed(flops=7e14, start=4e-4, transfer=3e-10, busy=4096)

    monkeypatch.setattr(distributed, "this_gpu", lambda: Gpu(CUDA, None))
    monkeypatch.setattr(choose_plan, "measure_speed", measure)
    plan = plan_of(files=("my.txt",), init="none", precision="float32", minutes=0.5)
    assert plan.settings["device"] == "cuda" and asked == [CUDA]
    assert "training on cuda: for " in capsys.readouterr().err
    assert plan.why_device.endswith(" M parameters no processor is as fast")


def test_the_processor_looks_at_the_text_while_a_gpu_starts_and_not_while_it_is_timed(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the two waits until the other has begun."""
    begun = {"text": threading.Event(), "gpu": threading.Event()}
    done = list[str]()
    measure_text = choose_plan.measure_text

    def look(*arguments: Any, **more: Any) -> Any:
        begun["text"].set()
        assert begun["gpu"].wait(30)
        found = measure_text(*arguments, **more)
        done.append("text")
        return found

    def start(name: str) -> torch.device:
        begun["gpu"].set()
        assert begun["text"].wait(30)
        return CUDA

    def measure(*_: Any) -> Speed:
        done.append("speed")
        return Speed(flops=7e14, start=4e-4)

    monkeypatch.setattr(choose_plan, "has_gpu", lambda: True)
    monkeypatch.setattr(choose_plan, "measure_text", look)
    monkeypatch.setattr(distributed, "device_of_rank", start)
    monkeypatch.setattr(choose_plan, "measure_speed", measure)
    plan = plan_of(files=("my.txt",), init="none", precision="float32", minutes=0.5)
    assert plan.settings["device"] == "cuda" and done == ["text", "speed"]


def test_a_device_that_was_named_is_not_compared(on_a_machine_with: Any) -> None:
    plan = on_a_machine_with(20.0, device="cpu", steps=50, **SHAPE)
    assert plan.settings["device"] == "cpu" and plan.machine.speed is None  # it was not measured


def test_a_run_goes_on_elsewhere_if_its_device_is_not_here(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = train_tiny(steps=1, num_evals=1)
    settings = json.loads((run / CONFIG).read_text())
    settings["training"] |= {"device": "abacus", "precision": "float16"}
    (run / CONFIG).write_text(json.dumps(settings))

    resume(run, steps=2)
    assert "abacus, which it began on, is not here: going on on cpu" in capsys.readouterr().err
    assert read_config(run).training.device == "cpu"
    with pytest.raises(UserError, match="no device 'abacus' on this machine"):
        resume(run, steps=3, device="abacus")


@pytest.mark.parametrize("device", ["abacus", "cuda"])
def test_a_run_that_goes_on_on_another_device_has_the_precision_of_that_one(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    """Unless one is given, and whether or not the device that it began on is here."""
    run = shutil.copytree(tiny_run, tmp_path / "run")
    settings = json.loads((run / CONFIG).read_text())
    settings["training"] |= {"device": device, "precision": "float16"}
    (run / CONFIG).write_text(json.dumps(settings))
    monkeypatch.setattr("minigpt.training.precision.gain_of_bfloat16", lambda: 2.0)
    asked = {} if device == "abacus" else {"device": "cpu"}

    def precision(**given: Any) -> str:
        training = continued_config(run, read_state(run), {"steps": 40, **asked, **given}).training
        assert training.device == "cpu"
        return training.precision

    assert precision() == "bfloat16"
    assert precision(precision="float32") == "float32"

    settings["training"] |= {"device": "cpu"}
    (run / CONFIG).write_text(json.dumps(settings))
    assert precision(device="cpu") == "float16"


# The precision


@pytest.mark.parametrize(
    ("has_bfloat16", "capability", "expected"),
    [
        (True, (8, 0), "bfloat16"),  # A100
        (True, (9, 0), "bfloat16"),  # H100
        (False, (7, 5), "float16"),  # T4
        (False, (7, 0), "float16"),  # V100
        (False, (6, 1), "float32"),  # GTX 1080
    ],
)
@pytest.mark.parametrize("is_right", [True, False])
def test_a_gpu_computes_in_the_fastest_type_that_is_right(
    has_bfloat16: bool,
    capability: tuple[int, int],
    expected: str,
    is_right: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: has_bfloat16)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    problem = None if is_right else "its losses differ by 30%"
    monkeypatch.setattr(precision, "why_wrong", lambda *_: problem)
    assert choose_precision("auto", CUDA) == (expected if is_right else "float32")
    assert is_right or "training in float32, because" in capsys.readouterr().err


def test_on_mps_it_is_float32() -> None:
    assert choose_precision("auto", MPS) == "float32"


@pytest.fixture
def trained(workplace: Path) -> Callable[..., minigpt.Trainer]:
    """Trains a tiny model in a precision, from a scale on."""

    def train(name: Any, scale: float = precision.FIRST_SCALE) -> minigpt.Trainer:
        given = tiny_settings()
        names = ("vocab_size", "context_length", "emb_dim", "num_layers", "num_heads")
        shape = {key: given.pop(key) for key in names}
        dataset = minigpt.prepare("my.txt", vocab_size=300)
        torch.manual_seed(0)
        model = minigpt.GPT(minigpt.GPTConfig(**shape))
        config = minigpt.TrainConfig(**given | {"precision": name})
        trainer = minigpt.Trainer(model, dataset, config)
        trainer.state.loss_scale = scale
        trainer.train()
        return trainer

    return train


def test_in_float16_a_scale_that_is_too_large_is_lowered_and_no_step_is_lost(
    trained: Callable[..., minigpt.Trainer],
) -> None:
    usual = trained("float32")
    assert usual.state.loss_scale == precision.FIRST_SCALE

    lowered = trained("float16", scale=2.0**40)
    assert 1.0 <= lowered.state.loss_scale < 2.0**40 and lowered.state.step == usual.state.step
    assert lowered.state.best_loss == pytest.approx(usual.state.best_loss, abs=0.02)


def test_the_scale_rises_when_nothing_was_too_large_for_long(
    trained: Callable[..., minigpt.Trainer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minigpt.training.step.STEPS_TO_DOUBLE", 3)
    assert trained("float16", scale=2.0).state.loss_scale == 2.0**3  # after 3 and 6 of 8 steps
