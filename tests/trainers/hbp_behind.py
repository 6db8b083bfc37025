"""A plugin of pytest: puts the adapter that HBP_ADAPTER names behind a trainer's own tests, and lets tests
that ask for GPUs run on the CPU and gloo where HBP_ON_CPU is set. HBP_OUTCOMES is the file that gets a
line a test. It counts the adapter's calls of the library: tests that pass without one prove nothing."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
import types
import typing
from typing import Any

CALLS = multiprocessing.get_context("fork").Value("q", 0)  # of workers, too
COUNTED = ("partition", "plan_step")


def _counted(module: Any, name: str) -> None:
    own = getattr(module, name, None)
    if own is None:
        return

    def call(*args: Any, **kwargs: Any) -> Any:
        with CALLS.get_lock():
            CALLS.value += 1
        return own(*args, **kwargs)

    setattr(module, name, call)


def _empty_class(name: str) -> type:
    if name.startswith("_"):
        raise AttributeError(name)
    return type(name, (), {})


def _on_cpu() -> None:
    if sys.version_info < (3, 12):  # Megatron's training package asks for 3.12, by this name alone
        vars(typing)["override"] = lambda function: function
    import torch

    class Device(type):
        def __instancecheck__(cls, thing: Any) -> bool:
            return isinstance(thing, own_device)

    own_device, own_init = torch.device, torch.distributed.init_process_group

    class device(metaclass=Device):
        def __new__(cls, kind: Any = "cpu", index: Any = None) -> Any:
            return own_device("cpu") if str(kind).startswith(("cuda", "cpu")) else own_device(kind)

    def init_process_group(*args: Any, **kwargs: Any) -> None:
        kwargs.pop("device_id", None)
        own_init(**{**kwargs, "backend": "gloo"})

    own_new, own_barrier = torch.distributed.new_group, torch.distributed.barrier

    def new_group(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("pg_options", None)
        return own_new(*args, **{**kwargs, "backend": "gloo"})

    def barrier(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("device_ids", None)
        return own_barrier(*args, **kwargs)

    class OnCpu(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
            def moved(value: Any) -> Any:
                return (
                    "cpu" if str(value).startswith("cuda") and isinstance(value, (str, own_device)) else value
                )

            kwargs = {name: moved(value) for name, value in (kwargs or {}).items()}
            return function(*map(moved, args), **kwargs)

    OnCpu().__enter__()
    torch.device = device
    torch.distributed.init_process_group = init_process_group
    torch.distributed.new_group = new_group
    torch.distributed.barrier = barrier
    torch.Tensor.cuda = lambda self, *args, **kwargs: self
    torch.cuda.current_device = lambda: "cpu"
    torch.cuda.device_count = lambda: int(os.environ.get("WORLD_SIZE", "1"))
    for name in ("set_device", "synchronize", "empty_cache", "manual_seed", "manual_seed_all"):
        setattr(torch.cuda, name, lambda *args, **kwargs: None)


if os.environ.get("HBP_ON_CPU"):  # before a conftest.py imports the trainer
    _on_cpu()


def pytest_configure(config: Any) -> None:
    for name in filter(None, os.environ.get("HBP_ABSENT", "").split(",")):
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name])["__getattr__"] = _empty_class
    if os.environ.get("HBP_BARE"):
        parent, _, _ = os.environ["HBP_BARE"].rpartition(".")
        module = types.ModuleType(os.environ["HBP_BARE"])
        folder = module.__name__[len(parent) + 1 :]
        module.__path__ = [os.path.join(path, folder) for path in importlib.import_module(parent).__path__]
        sys.modules[module.__name__] = module
    if os.environ.get("HBP_ADAPTER"):
        adapter = importlib.import_module("hbp.integrations." + os.environ["HBP_ADAPTER"])
        shared = [importlib.import_module("hbp.integrations." + name) for name in ("_in_step", "_packs")]
        for module in (adapter, *shared):
            for name in COUNTED:
                _counted(module, name)
        adapter.install()


def pytest_runtest_logreport(report: Any) -> None:
    if os.environ.get("RANK", "0") != "0":
        return
    if report.when == "call" or report.outcome != "passed":
        if report.when != "teardown" or report.outcome == "failed":
            with open(os.environ["HBP_OUTCOMES"], "a") as out:
                out.write(f"{report.outcome}\t{report.nodeid}\n")


def pytest_sessionfinish() -> None:
    if os.environ.get("HBP_ADAPTER") and os.environ.get("RANK", "0") == "0":
        with open(os.environ["HBP_OUTCOMES"] + ".calls", "w") as out:
            out.write(str(CALLS.value))
