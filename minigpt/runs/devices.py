"""The device to compute on, by its name."""

import contextlib
import dataclasses
import json
import math
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock, Timeout
from safetensors import SafetensorError, safe_open

from .. import UserError
from ..config import (
    GPT_NAME,
    GPTConfig,
    InferenceConfig,
    TextConfig,
    TrainConfig,
    count_parameters,
    from_dict,
)
from ..data.corpus import read_again
from ..data.readers import title
from ..generation.numpy_gpt import NumpyGPT, Weights
from ..generation.writer import Writer
from ..interop.hub import PREFIX, hub_folder
from ..interop.huggingface import is_huggingface_folder, read_folder
from ..interop.safetensors_files import read_weights, write_tensors
from ..tokenizer import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    import torch

    from ..model import GPT


def has_gpu() -> bool:
    """Whether this machine has a GPU of NVIDIA or AMD, found out without torch."""
    return shutil.which("nvidia-smi") is not None or Path("/dev/kfd").exists()


def find_device(name: str = "auto") -> "torch.device":
    """The device called `name`; "auto" takes a GPU where there is one."""
    import torch

    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError):
        raise UserError(f"no device {name!r} on this machine; try --device cpu") from None
    return device
