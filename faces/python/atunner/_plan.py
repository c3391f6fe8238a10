"""Runs execution plans with PyTorch's tensors: ctypes over libatunner_runtime."""

import ctypes
import functools
import json
import operator
import os
import weakref
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import torch

import atunner_runtime as _runtime

__all__ = ["Plan", "load"]

_PathLike = Union[str, "os.PathLike[str]"]

#: Every address that a kernel gets is a multiple of this (ATUNNER_ALIGNMENT of atunner.h).
_ALIGNMENT = 16
_ABI_VERSION = 2


class _ExternTensor(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("rank", ctypes.c_size_t),
        ("extents", ctypes.POINTER(ctypes.c_int64)),
        ("bytes", ctypes.c_uint64),
        ("address", ctypes.c_uint64),
    ]


class _ExternCall(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("target", ctypes.c_char_p),
        ("arguments", ctypes.c_char_p),
        ("inputs", ctypes.POINTER(_ExternTensor)),
        ("input_count", ctypes.c_size_t),
        ("outputs", ctypes.POINTER(_ExternTensor)),
        ("output_count", ctypes.c_size_t),
        ("stream", ctypes.c_void_p),
        ("on_host", ctypes.c_int),
    ]


_RunExtern = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_ExternCall))


class _RunInfo(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("stream", ctypes.c_void_p),
        ("inputs", ctypes.POINTER(ctypes.c_uint64)),
        ("input_count", ctypes.c_size_t),
        ("outputs", ctypes.POINTER(ctypes.c_uint64)),
        ("output_count", ctypes.c_size_t),
        ("workspace", ctypes.c_uint64),
        ("workspace_bytes", ctypes.c_uint64),
        ("on_host", ctypes.c_int),
        ("replay", ctypes.c_int),
        ("run_extern", _RunExtern),
        ("user", ctypes.c_void_p),
    ]


_Argument = _runtime._Argument
_PLAN = ctypes.c_void_p
_SIGNATURES: Dict[str, Tuple[Any, List[Any]]] = {
    "atunner_plan_load": (
        ctypes.c_int,
        [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(_PLAN)],
    ),
    "atunner_plan_free": (None, [_PLAN]),
    "atunner_plan_input_count": (ctypes.c_size_t, [_PLAN]),
    "atunner_plan_output_count": (ctypes.c_size_t, [_PLAN]),
    "atunner_plan_input": (
        ctypes.c_int,
        [_PLAN, ctypes.c_size_t, ctypes.POINTER(_Argument)],
    ),
    "atunner_plan_output": (
        ctypes.c_int,
        [_PLAN, ctypes.c_size_t, ctypes.POINTER(_Argument)],
    ),
    "atunner_plan_workspace_bytes": (ctypes.c_uint64, [_PLAN]),
    "atunner_plan_weight_bytes": (ctypes.c_uint64, [_PLAN]),
    "atunner_plan_extern_count": (ctypes.c_size_t, [_PLAN]),
    "atunner_plan_run": (ctypes.c_int, [_PLAN, ctypes.POINTER(_RunInfo)]),
}


def _library(ready: List[Any] = []) -> Any:
    """libatunner_runtime with the functions of plans, opened at the first use."""
    if not ready:
        library = _runtime._library()
        if library.atunner_abi_version() < _ABI_VERSION:
            raise ImportError("libatunner_runtime is too old: it has no execution plans")
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        ready.append(library)
    return ready[0]


def _dtype(name: str) -> torch.dtype:
    return getattr(torch, "float8_e4m3fn" if name == "float8_e4m3" else name)


class _DeviceBytes:
    """Memory of a GPU, as PyTorch takes it over without a copy."""

    def __init__(self, address: int, count: int) -> None:
        self.__cuda_array_interface__ = {
            "data": (address, False),
            "shape": (count,),
            "typestr": "|u1",
            "strides": None,
            "version": 3,
        }


def _tensor_at(raw: _ExternTensor, on_host: bool, device: int) -> torch.Tensor:
    """The memory of an operator's operand as a tensor."""
    if on_host:
        memory = (ctypes.c_char * raw.bytes).from_address(raw.address)
        flat = torch.frombuffer(memory, dtype=torch.uint8)
    else:
        flat = torch.as_tensor(_DeviceBytes(raw.address, raw.bytes), device=f"cuda:{device}")
    shape = [raw.extents[i] for i in range(raw.rank)]
    return flat.view(_dtype(raw.dtype.decode())).view(shape)


def _scalar_type(number: int) -> Optional[torch.dtype]:
    from ._program import SCALAR_TYPES

    return next((dtype for dtype, value in SCALAR_TYPES.items() if value == number), None)


def _decoded(arg: Dict[str, Any], tensors: Dict[str, torch.Tensor]) -> Any:
    """An argument of a program's node as a Python value."""
    ((kind, value),) = arg.items()
    if kind == "as_none":
        return None
    if kind == "as_tensor":
        return tensors[value["name"]]
    if kind in ("as_tensors", "as_optional_tensors"):
        return [_decoded(each, tensors) for each in value]
    if kind == "as_scalar_type":
        return _scalar_type(value)
    if kind == "as_float":
        return float(value)
    if kind == "as_floats":
        return [float(each) for each in value]
    return value


def _operator(target: str) -> Any:
    """torch.ops.aten.cumsum.default of "aten.cumsum.default"."""
    found: Any = torch.ops
    for part in target.split("."):
        found = getattr(found, part)
    return found


def _call_operator(call: _ExternCall, device: int) -> None:
    """Runs an operator that atunner does not know, and puts its results into their memory."""
    on_host = bool(call.on_host)
    inputs = [call.inputs[i] for i in range(call.input_count)]
    outputs = [call.outputs[i] for i in range(call.output_count)]
    tensors = {raw.name.decode(): _tensor_at(raw, on_host, device) for raw in inputs}
    called = _operator(call.target.decode())
    given = {
        each["name"]: _decoded(each["arg"], tensors) for each in json.loads(call.arguments.decode())
    }
    args, kwargs, positional = [], {}, True
    for place in called._schema.arguments:
        positional = positional and not place.kwarg_only and place.name in given
        if positional:
            args.append(given[place.name])
        elif place.name in given:
            kwargs[place.name] = given[place.name]
    with torch.no_grad():
        results = called(*args, **kwargs)
    if isinstance(results, torch.Tensor):
        results = [results]
    for raw, result in zip(outputs, results):
        _tensor_at(raw, on_host, device).copy_(result)


class Plan:
    """A model that `atunner optimize MODEL --out FOLDER` made, loaded on a GPU.

    Call it with the model's tensors. They may be on the plan's GPU, or on the CPU: then they are
    copied, and so are the results.
    """

    def __init__(
        self,
        folder: _PathLike,
        device: int = 0,
        libcuda: Optional[str] = None,
        replay: bool = False,
    ) -> None:
        library = _library()
        handle = _PLAN()
        _runtime._check(
            library.atunner_plan_load(
                os.fsencode(folder),
                None if libcuda is None else os.fsencode(libcuda),
                device,
                ctypes.byref(handle),
            )
        )
        self._handle = handle
        self._finalizer = weakref.finalize(self, library.atunner_plan_free, handle)
        self.device = device
        self.replay = replay
        self._workspaces: Dict[int, torch.Tensor] = {}  # by stream
        #: Tensors to pass, in order: name, dtype, shape, bytes. Role INOUT: the model changes it.
        self.inputs = self._described(library.atunner_plan_input, "input")
        #: Tensors that a call returns, in order.
        self.outputs = self._described(library.atunner_plan_output, "output")
        self._made = [(output.shape, _dtype(output.dtype)) for output in self.outputs]
        #: Numbers of the inputs that the model changes.
        self.changed = [
            i for i, given in enumerate(self.inputs) if given.role == _runtime.Role.INOUT
        ]
        self.workspace_bytes: int = library.atunner_plan_workspace_bytes(handle)
        self.weight_bytes: int = library.atunner_plan_weight_bytes(handle)
        #: How many operators PyTorch runs in each call.
        self.extern_count: int = library.atunner_plan_extern_count(handle)

    def _described(self, describe: Callable[..., int], side: str) -> List[Any]:
        count = getattr(_library(), f"atunner_plan_{side}_count")(self._handle)
        found = []
        for index in range(count):
            raw = _Argument(struct_size=ctypes.sizeof(_Argument))
            _runtime._check(describe(self._handle, index, ctypes.byref(raw)))
            found.append(_runtime.Argument(raw))
        return found

    def __repr__(self) -> str:
        return f"<Plan {self.inputs} -> {self.outputs}>"

    def __call__(self, *tensors: torch.Tensor) -> Union[torch.Tensor, Tuple[torch.Tensor, ...]]:
        """The model's results: one tensor, or a tuple of several. On a GPU the run is put into
        PyTorch's current stream, as PyTorch's own operators are."""
        results = self.run(tensors)
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, tensors: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        """The results as a list."""
        tensors = self.with_numbers(tensors)
        on_host = self._check(tensors)
        passed = [self._dense(tensor, on_host) for tensor in tensors]
        results = self._results(on_host)
        self._run([tensor.data_ptr() for tensor in passed], results, on_host)
        self._give_back(tensors, passed)
        return results

    def run_guarded(
        self, tensors: Sequence[torch.Tensor], strided: Sequence[int], on_host: bool
    ) -> List[torch.Tensor]:
        """As run(), for a caller that has made sure that number, types, shapes and places of the
        tensors are the plan's, as the guards of torch.compile do. `strided` are the numbers of
        inputs that are not dense."""
        passed = list(tensors)
        for i in strided:
            passed[i] = self._dense(passed[i], on_host)
        addresses = [tensor.data_ptr() for tensor in passed]
        if functools.reduce(operator.or_, addresses, 0) % _ALIGNMENT != 0:
            passed = [self._dense(tensor, on_host) for tensor in passed]
            addresses = [tensor.data_ptr() for tensor in passed]
        results = self._results(on_host)
        self._run(addresses, results, on_host)
        self._give_back(tensors, passed)
        return results

    def _results(self, on_host: bool) -> List[torch.Tensor]:
        place = torch.device("cpu") if on_host else torch.device("cuda", self.device)
        return [torch.empty(shape, dtype=dtype, device=place) for shape, dtype in self._made]

    def _give_back(self, tensors: Sequence[torch.Tensor], passed: Sequence[torch.Tensor]) -> None:
        """Copies what the model changed into tensors that were copied."""
        for i in self.changed:
            if passed[i] is not tensors[i]:
                tensors[i].copy_(passed[i])

    def with_numbers(self, tensors: Sequence[Any]) -> List[Any]:
        """PyTorch lets numbers be on the CPU beside tensors on a GPU: these are copied."""
        found = [tensor for tensor in tensors if isinstance(tensor, torch.Tensor)]
        if not any(tensor.is_cuda for tensor in found):
            return list(tensors)
        return [
            each.to(torch.device("cuda", self.device))
            if isinstance(each, torch.Tensor) and each.dim() == 0
            else each
            for each in tensors
        ]

    def _check(self, tensors: Sequence[torch.Tensor]) -> bool:
        """True for tensors of the CPU."""
        names = ", ".join(argument.name for argument in self.inputs)
        if len(tensors) != len(self.inputs):
            raise TypeError(
                f"the model takes {len(self.inputs)} tensors ({names}), {len(tensors)} are given"
            )
        for argument, tensor in zip(self.inputs, tensors):
            where = f"input '{argument.name}'"
            if not isinstance(tensor, torch.Tensor):
                raise TypeError(f"{where} is a {type(tensor).__name__}, no tensor")
            if tensor.dtype != _dtype(argument.dtype):
                raise TypeError(f"{where} is {argument.dtype}, the tensor is {tensor.dtype}")
            if tuple(tensor.shape) != argument.shape:
                raise ValueError(
                    f"{where} has shape {list(argument.shape)}, the tensor {list(tensor.shape)}; "
                    "a plan is made for fixed sizes"
                )
        places = {tensor.device.type for tensor in tensors}
        if places <= {"cpu"}:
            return True
        wrong = [t.device for t in tensors if t.device != torch.device("cuda", self.device)]
        if wrong:
            raise ValueError(f"tensors must be on GPU {self.device}, one is on {wrong[0]}")
        return False

    @staticmethod
    def _dense(tensor: torch.Tensor, on_host: bool) -> torch.Tensor:
        """The tensor itself if its memory can be passed, else a copy."""
        if tensor.is_contiguous() and (on_host or tensor.data_ptr() % _ALIGNMENT == 0):
            return tensor
        return tensor.detach().clone(memory_format=torch.contiguous_format)

    def _run(self, addresses: List[int], results: List[torch.Tensor], on_host: bool) -> None:
        info = _RunInfo(struct_size=ctypes.sizeof(_RunInfo))
        info.inputs = (ctypes.c_uint64 * len(addresses))(*addresses)
        info.input_count = len(addresses)
        info.outputs = (ctypes.c_uint64 * len(results))(*[t.data_ptr() for t in results])
        info.output_count = len(results)
        info.on_host = int(on_host)
        if not on_host:
            device = torch.device("cuda", self.device)
            info.stream = torch.cuda.current_stream(device).cuda_stream
            info.replay = int(self.replay)
            if self.workspace_bytes > 0:
                workspace = self._workspace(info.stream or 0, device)
                info.workspace = workspace.data_ptr()
                info.workspace_bytes = self.workspace_bytes
        problems: List[BaseException] = []
        if self.extern_count > 0:
            info.run_extern = self._extern_runner(problems)
        status = _library().atunner_plan_run(self._handle, ctypes.byref(info))
        if problems:
            raise problems[0]
        _runtime._check(status)

    def _workspace(self, stream: int, device: torch.device) -> torch.Tensor:
        """Memory for intermediates. Replays need the same again; other runs take it from PyTorch's
        allocator, which reuses it in the order of the stream."""
        if not self.replay:
            return torch.empty(self.workspace_bytes, dtype=torch.uint8, device=device)
        if stream not in self._workspaces:
            self._workspaces[stream] = torch.empty(
                self.workspace_bytes, dtype=torch.uint8, device=device
            )
        return self._workspaces[stream]

    def _extern_runner(self, problems: List[BaseException]) -> Any:
        def run(_: Any, call: Any) -> int:
            try:
                _call_operator(call.contents, self.device)
            except BaseException as problem:  # no exception may pass through C
                problems.append(problem)
                return 1
            return 0

        return _RunExtern(run)


def load(
    folder: _PathLike, device: int = 0, libcuda: Optional[str] = None, replay: bool = False
) -> Plan:
    """Loads a plan: `fast = atunner.load("plan/"); y = fast(x)`.

    `device` is the number of a GPU, whose primary context is used, as by PyTorch. The library is
    found as `atunner_runtime` finds it; the CUDA driver is `libcuda`, else $ATUNNER_LIBCUDA, else
    libcuda.so.1. With `replay` runs whose tensors have the addresses of an earlier run are replayed
    as a CUDA graph, with one launch for the whole model; the workspace stays allocated. Raises
    atunner_runtime.Error.
    """
    return Plan(folder, device, libcuda, replay)
