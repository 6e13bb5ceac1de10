"""Clocks, signals and processes as they are on Windows."""

import importlib.util
import signal
import time

import pytest
import torch
import torch.distributed as dist

from minigpt.training import distributed, interruption

from ..conftest import train_tiny


def test_a_clock_that_stands_still_for_a_moment_is_good_enough(
    workplace: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As time.monotonic does there, for 16 ms, before Python 3.13; here it does for a minute."""
    plain = time.monotonic
    monkeypatch.setattr("time.monotonic", lambda: plain() // 60 * 60)
    train_tiny(steps=None, minutes=1e-5)


@pytest.mark.parametrize(("has_nccl", "expected"), [(True, "cpu:gloo,cuda:nccl"), (False, "gloo")])
def test_gloo_moves_all_tensors_where_there_is_no_nccl(
    has_nccl: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = []
    monkeypatch.setenv("LOCAL_RANK", "0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(dist, "is_nccl_available", lambda: has_nccl)
    monkeypatch.setattr(dist, "rendezvous", lambda *_, **__: iter([(dist.HashStore(), 0, 2)]))
    monkeypatch.setattr(dist, "init_process_group", lambda backend, **_: used.append(backend))
    monkeypatch.setattr("atexit.register", lambda function: None)
    distributed._connect()
    assert used == [expected]


def test_ctrl_break_stops_as_ctrl_c_does_and_no_signal_is_missed_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(signal, "SIGHUP")
    monkeypatch.setattr(signal, "SIGBREAK", signal.SIGUSR1, raising=False)
    there = importlib.util.spec_from_file_location("interruption_there", interruption.__file__)
    assert there is not None and there.loader is not None
    module = importlib.util.module_from_spec(there)
    there.loader.exec_module(module)

    with module.GracefulStop() as stop:
        signal.raise_signal(signal.SIGUSR1)
        assert stop.signal_number == signal.SIGUSR1
