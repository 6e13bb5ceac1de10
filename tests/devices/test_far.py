"""All that moves tensors, on a device that is not there: nothing is left on the CPU by mistake,
nothing needs float64, and Apple's GPU knows each operation.

A process of its own does it, see session.py.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torchgen
import yaml
from torch.utils import backend_registration

from tests.conftest import some_text
from tests.data.chats.made import some_chat
from tests.forks import Forks

pytestmark = pytest.mark.systems

ROOT = Path(__file__).parents[2]
KERNELS = Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml"
ANY_DEVICE = "CompositeImplicitAutograd", "CompositeExplicitAutograd"


@pytest.fixture(scope="module")
def found(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the session on the device has found out."""
    if not hasattr(backend_registration, "_setup_privateuseone_for_python_backend"):
        pytest.skip("this torch has another way to make a device known")

    folder = tmp_path_factory.mktemp("far")
    (folder / "my.txt").write_text(some_text())
    (folder / "chat.txt").write_text(some_chat(200))
    places = {"PYTHONPATH": str(ROOT), "MINIGPT_CACHE": str(folder / "cache")}
    process = forks.start(
        ["-m", "tests.devices.session"],
        cwd=folder,
        env={**os.environ, **places},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    out, err = process.communicate()
    assert process.returncode == 0, err
    return json.loads(out)


def test_a_training_on_a_device_ends_as_on_the_cpu(found: dict[str, Any]) -> None:
    assert found["losses"]["far"] == pytest.approx(found["losses"]["cpu"], abs=1e-5)
    assert found["difference"] < 1e-4  # of the logits of the weights that were kept


def test_the_speed_of_a_device_is_measured_by_steps_of_a_training(found: dict[str, Any]) -> None:
    assert found["flops"] > 0.0


def test_a_step_waits_for_nothing_on_the_device(found: dict[str, Any]) -> None:
    """So that a GPU can be given the next one meanwhile, or record it."""
    waited = found["waited"]
    assert waited["usual"] == []
    assert set(waited["looking"]) == {"aten.index.Tensor", "aten.index_put.default"}
    assert waited["fetched"] == ["aten._to_copy.default"]


def test_apples_gpu_has_a_kernel_for_each_operation(found: dict[str, Any]) -> None:
    entries = yaml.load(KERNELS.read_text(), yaml.CSafeLoader)
    functions = {entry["func"].partition("(")[0]: entry for entry in entries}

    def runs_on_mps(name: str) -> bool:
        entry = functions[name.removeprefix("aten.").removesuffix(".default")]
        delegate = entry.get("structured_delegate")
        kernels = functions[delegate if delegate else entry["func"].partition("(")[0]]
        devices = ", ".join(kernels.get("dispatch", {"CompositeImplicitAutograd": ""})).split(", ")
        return any(name in devices for name in ("MPS", *ANY_DEVICE))

    assert len(found["seen"]) > 70
    assert [name for name in found["seen"] if not runs_on_mps(name)] == []


def test_the_device_refuses_what_a_gpu_refuses(found: dict[str, Any]) -> None:
    refused = found["refused"]
    assert refused.pop("none") == ""
    assert {name: said for name, said in refused.items() if "far" not in said} == {}


def test_a_wrong_kernel_is_found_before_the_device_is_taken(found: dict[str, Any]) -> None:
    right, wrong = found["checked"]
    assert right is None and " differ by " in wrong
