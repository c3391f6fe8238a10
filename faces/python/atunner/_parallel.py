"""A training step spread over the GPUs of one node by the settings of a parallel plan.

A *program* is a Python file with these functions:

    model()                 the torch.nn.Module; the same weights in each call
    batch(samples)          the arguments of `loss` behind the model, on the CPU
    loss(model, *batch)     a scalar tensor
    optimizer(parameters)   a torch.optim.Optimizer

and, if it likes, `blocks(model)`, a list of the modules that are sharded, recomputed and compiled
one by one (else the children of the longest ModuleList or Sequential), and `autocast`, a torch
dtype.

*Settings* are what `atunner parallel plan` prints as "settings"; docs/how-to/plan-parallelism.md
lists them.
"""

import contextlib
import importlib.util
import inspect
import os
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

__all__ = ["Program", "Spread", "SettingsError", "spread"]

_KNOWN = {
    "micro_batch_size",
    "gradient_accumulation_steps",
    "DistributedDataParallel",
    "ZeroRedundancyOptimizer",
    "fully_shard",
    "checkpoint_layers",
    "compile",
    "compile_loss",
    "optimizer",
}


class SettingsError(ValueError):
    """Settings that this version of PyTorch, or this module, cannot follow."""


class Program:
    """The functions of a program's file. SettingsError names those that are missing."""

    def __init__(self, path: str):
        spec = importlib.util.spec_from_file_location("atunner_program", path)
        if spec is None or spec.loader is None:
            raise SettingsError(f"{path} is no Python file")
        self.module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)
        names = ("model", "batch", "loss", "optimizer")
        missing = [name for name in names if not callable(getattr(self.module, name, None))]
        if missing:
            raise SettingsError(f"{path} has no function {', '.join(missing)}")
        self.model: Callable[[], torch.nn.Module] = self.module.model
        self.batch: Callable[[int], Tuple[torch.Tensor, ...]] = self.module.batch
        self.loss: Callable[..., torch.Tensor] = self.module.loss
        self.optimizer: Callable[[Any], torch.optim.Optimizer] = self.module.optimizer
        self.autocast: Optional[torch.dtype] = getattr(self.module, "autocast", None)

    def blocks(self, model: torch.nn.Module) -> List[torch.nn.Module]:
        """The modules that are sharded, recomputed and compiled one by one."""
        given = getattr(self.module, "blocks", None)
        if given is not None:
            return list(given(model))
        kinds = (torch.nn.ModuleList, torch.nn.Sequential)
        lists = [list(each) for each in model.modules() if isinstance(each, kinds)]
        return max(lists, key=len, default=[])


class Spread:
    """One rank's part of a training step."""

    def __init__(
        self,
        program: Program,
        model: torch.nn.Module,
        optimizer: Any,
        settings: Dict[str, Any],
        device: str = "cuda",
    ):
        self.program, self.model, self.optimizer = program, model, optimizer
        self.passes = int(settings.get("gradient_accumulation_steps", 1))
        batch = program.batch(int(settings["micro_batch_size"]))
        self.batch = tuple(each.to(device) for each in batch)
        self.samples = int(settings["micro_batch_size"]) * self.passes
        shard, self.device = settings.get("fully_shard") or {}, device
        self.loss, self.called = program.loss, model
        if settings.get("compile_loss"):
            # The model has its own compiled parts: this compiles what follows it.
            self.loss = torch.compile(program.loss)
            self.called = torch._dynamo.disable(_Called(model), recursive=False)
        self.autocast = None if shard.get("param_dtype") else program.autocast

    def forward(self) -> torch.Tensor:
        """The loss of one microbatch."""
        kind = self.autocast
        with contextlib.ExitStack() as contexts:
            if kind is not None:
                contexts.enter_context(torch.autocast(self.device, kind))
            return self.loss(self.called, *self.batch)

    def backward(self, loss: torch.Tensor) -> None:
        (loss / self.passes if self.passes > 1 else loss).backward()

    def update(self) -> None:
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def __call__(self) -> torch.Tensor:
        """One step: all microbatches and the update. Gradients of replicas are all-reduced with the
        last microbatch; sharded ones are reduced with each, so that no GPU holds all of them."""
        replicas = hasattr(self.model, "no_sync")
        for index in range(self.passes):
            quiet = replicas and index + 1 < self.passes
            with self.model.no_sync() if quiet else contextlib.nullcontext():
                loss = self.forward()
                self.backward(loss)
        self.update()
        return loss.detach()


class _Called:
    """Calls a module, and is none itself."""

    def __init__(self, module: torch.nn.Module):
        self.module = module

    def __call__(self, *arguments: Any) -> Any:
        return self.module(*arguments)


def spread(program: Program, settings: Dict[str, Any], device: str = "cuda") -> Spread:
    """Builds the step on this rank's current GPU (or on the CPU), in the default process group.
    Settings without "DistributedDataParallel" and "fully_shard" give a step of this GPU alone.

    SettingsError if a setting is unknown or names a module that the model has not.
    """
    unknown = sorted(set(settings) - _KNOWN)
    if unknown:
        raise SettingsError(f"unknown settings: {', '.join(unknown)}")
    model = _made(program, device)
    blocks = program.blocks(model)
    _checkpoint(model, settings.get("checkpoint_layers", []), program)
    blocks = program.blocks(model)
    compiled = settings.get("compile", "no")
    if compiled not in ("no", "blocks", "model"):
        raise SettingsError(f"compile: {compiled!r} is none of no, blocks, model")
    if compiled == "blocks":
        for block in blocks:
            block.compile()
    wrapped = model
    if settings.get("fully_shard") is not None:
        _shard(model, blocks, settings["fully_shard"])
    elif settings.get("DistributedDataParallel") is not None:
        wrapped = torch.nn.parallel.DistributedDataParallel(
            model,
            [torch.cuda.current_device()] if device == "cuda" else None,
            **settings["DistributedDataParallel"],
        )
    optimizer = _optimizer(program, model, settings)
    if compiled == "model":
        wrapped = torch.compile(wrapped)
    return Spread(program, wrapped, optimizer, settings, device)


def _made(program: Program, device: str) -> torch.nn.Module:
    """The model, its weights drawn on the GPU where PyTorch can: that takes a moment only."""
    place = torch.device(device)
    with place if hasattr(place, "__enter__") else contextlib.nullcontext():
        model = program.model()
    return model.to(device).train()


def _checkpoint(model: torch.nn.Module, names: List[str], program: Program) -> None:
    """Modules that keep only their input: named ones, or all blocks for ["blocks"]."""
    if not names:
        return
    from torch.distributed.algorithms._checkpoint import checkpoint_wrapper as wrappers

    modules = dict(model.named_modules())
    if list(names) == ["blocks"]:
        wanted = {id(block) for block in program.blocks(model)}
        names = [name for name, module in modules.items() if id(module) in wanted]
    for name in names:
        if name not in modules:
            raise SettingsError(f"checkpoint_layers: the model has no module {name!r}")
        parent, _, last = name.rpartition(".")
        wrapped = wrappers.checkpoint_wrapper(
            modules[name], checkpoint_impl=wrappers.CheckpointImpl.NO_REENTRANT
        )
        setattr(modules[parent], last, wrapped)


def _shard(
    model: torch.nn.Module, blocks: List[torch.nn.Module], given: Dict[str, Any]
) -> None:
    """FSDP2: parameters, gradients and optimizer states are divided over the GPUs."""
    try:
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    except ImportError as error:
        raise SettingsError("fully_shard needs PyTorch 2.6 or later") from error
    kind = lambda key: getattr(torch, given[key]) if given.get(key) else None  # noqa: E731
    reshard = given.get("reshard_after_forward", True)
    policy = MixedPrecisionPolicy(
        param_dtype=kind("param_dtype"), reduce_dtype=kind("reduce_dtype")
    )
    options = {"mp_policy": policy, "reshard_after_forward": reshard}
    if given.get("alone"):
        options["mesh"] = _own_mesh()
    group = int(given.get("layers_per_group", 1))
    for first in range(0, len(blocks), group):
        part = blocks[first : first + group]
        fully_shard(part if len(part) > 1 else part[0], **options)
    fully_shard(model, **options)
    ahead = int(given.get("prefetch", 0))
    if ahead == 0 or group > 1:
        return
    for index, block in enumerate(blocks):
        block.set_modules_to_forward_prefetch(blocks[index + 1 : index + 1 + ahead])
        block.set_modules_to_backward_prefetch(blocks[max(0, index - ahead) : index][::-1])


def _own_mesh() -> Any:
    """A mesh of this rank alone: what sharding costs the host, without another GPU."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import DeviceMesh

    groups = [dist.new_group([rank]) for rank in range(dist.get_world_size())]
    return DeviceMesh.from_group(groups[dist.get_rank()], "cuda")


def _optimizer(program: Program, model: torch.nn.Module, settings: Dict[str, Any]) -> Any:
    """The program's optimizer with further options, its states divided over the replicas if the
    settings say so."""
    made = program.optimizer(model.parameters())
    options, zero = settings.get("optimizer"), settings.get("ZeroRedundancyOptimizer")
    if not options and not zero:
        return made
    taken = inspect.signature(type(made).__init__).parameters
    arguments = {key: value for key, value in made.defaults.items() if key in taken}
    if options:
        if options.get("fused"):
            arguments["foreach"] = None
        arguments.update(options)
    if not zero:
        return type(made)(model.parameters(), **arguments)
    from torch.distributed.optim import ZeroRedundancyOptimizer

    return ZeroRedundancyOptimizer(model.parameters(), type(made), **arguments)


def program_of(path: str) -> Program:
    """Reads a program; modules beside it can be imported by it."""
    import sys

    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    return Program(path)
