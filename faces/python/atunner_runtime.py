"""Launches kernels that atunner tuned, from Python: ctypes over libatunner_runtime, no other
dependency.

    import torch, atunner_runtime

    artifacts = atunner_runtime.ArtifactSet("best/")        # folders of `atunner optimize --out`,
    or folders of them
    x = torch.randn(8, 1024, 4096, device="cuda")
    y = torch.empty_like(x)
    softmax = artifacts.choose(dims={"rows": 8 * 1024, "cols": 4096}, device=x.device.index)
    print(softmax.match.name, "-", softmax.match_text)      # EXACT - tuned for NVIDIA H200 at this
    size, measured
    softmax(x, y)                                           # on PyTorch's current stream
    torch.testing.assert_close(y, torch.softmax(x, -1))

A tensor is anything with PyTorch's `data_ptr()` or with `__cuda_array_interface__` (CuPy, Numba),
whose type, size and contiguity are checked; or a device address as an int, which is taken as it is.
Choose once per problem, outside the hot path: choosing loads the kernel.

The library is $ATUNNER_RUNTIME, else libatunner_runtime.so beside this file, where `cmake
--install` puts it, or where the system's loader finds it. The CUDA driver is $ATUNNER_LIBCUDA, else
libcuda.so.1.
"""

import ctypes
import enum
import os
import sys
import weakref

__all__ = [
    "ArtifactSet",
    "Kernel",
    "Artifact",
    "Argument",
    "Match",
    "Role",
    "Status",
    "Error",
    "CURRENT_CONTEXT",
    "version",
]

#: In place of a GPU's number: the calling thread's current CUDA context.
CURRENT_CONTEXT = -1

_ABI_VERSION = 1


class Match(enum.IntEnum):
    """How well an artifact fits a device and a problem, worst to best."""

    NONE = 0  #: cannot run
    COMPATIBLE = 1  #: runs, but was tuned for another architecture
    ARCHITECTURE = 2  #: tuned for another GPU of the same compute capability
    DEVICE = 3  #: tuned for this GPU, at another problem size
    EXACT = 4  #: tuned for this GPU and this problem size


class Role(enum.IntEnum):
    INPUT = 0
    OUTPUT = 1
    INOUT = 2


class Status(enum.IntEnum):
    OK = 0
    INVALID = 1  #: a wrong argument or a damaged artifact
    NOT_FOUND = 2  #: no such file, or no artifact serves the problem on this device
    UNAVAILABLE = 3  #: no driver, no memory, launch error
    UNSUPPORTED = 4
    INTERNAL = 5


class Error(RuntimeError):
    """A call that failed. `status` says how, the text says what, where and what to do."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class Artifact:
    """An artifact of a set: name, dtype, folder, device, arch, compiler, run, compute_capability,
    evidence ("measured" or "predicted"), time_ns at the size it was tuned for, dims (a dict),
    free_dims (names of dims that may differ).
    """

    def __init__(self, info):
        for field in ("name", "dtype", "folder", "device", "arch", "compiler", "run"):
            setattr(self, field, _text(getattr(info, field)))
        self.compute_capability = (info.cc_major, info.cc_minor)
        self.evidence = "measured" if info.evidence == 1 else "predicted"
        self.time_ns = info.time_ns
        self.dims = {
            name: int(extent)
            for name, extent in (pair.split("=") for pair in _text(info.dims).split())
        }
        self.free_dims = _text(info.free_dims).split()

    def __repr__(self):
        time = f"{self.evidence} {self.time_ns:.0f} ns"
        return f"<Artifact {self.name} {self.dtype} {self.dims} on {self.device}, {time}>"


class Argument:
    """A tensor to pass: name, dtype ("float32"), role, shape, bytes."""

    def __init__(self, raw):
        self.name = _text(raw.name)
        self.dtype = _text(raw.dtype)
        self.role = Role(raw.role)
        self.shape = tuple(raw.extents[i] for i in range(raw.rank))
        self.bytes = raw.bytes

    def __repr__(self):
        return f"<Argument {self.name} {self.role.name} {self.dtype} {list(self.shape)}>"


class ArtifactSet:
    """Artifacts to choose among. May be used by several threads once everything was added."""

    def __init__(self, *folders, libcuda=None):
        handle = ctypes.c_void_p()
        _check(_library().atunner_set_create(_bytes(libcuda), ctypes.byref(handle)))
        self._handle = handle
        self._finalizer = weakref.finalize(self, _library().atunner_set_destroy, handle)
        for folder in folders:
            self.add(folder)

    def add(self, folder):
        """Adds an artifact folder, or every artifact in a folder of them; all or nothing."""
        _check(_library().atunner_set_add(self._handle, os.fsencode(folder)))

    def __len__(self):
        return _library().atunner_set_size(self._handle)

    def __getitem__(self, index):
        if not 0 <= index < len(self):
            raise IndexError(index)
        info = _ArtifactInfo(struct_size=ctypes.sizeof(_ArtifactInfo))
        _check(_library().atunner_set_info(self._handle, index, ctypes.byref(info)))
        return Artifact(info)

    def choose(self, dims, name=None, dtype=None, attributes=None, device=0, least=Match.NONE):
        """The best match, loaded: a Kernel. `name` and `dtype` may be left out where the set holds
        one only; attributes must be given where the artifacts differ in one. `device` is a GPU's
        number, whose primary context (that of the CUDA runtime and PyTorch) is used, or
        CURRENT_CONTEXT. `least` refuses worse matches. Raises Error.
        """
        dims = list(dims.items())
        attributes = list((attributes or {}).items())
        raw_dims = (_Dim * len(dims))(*[(_bytes(key), int(value)) for key, value in dims])
        raw_attributes = (_Attribute * len(attributes))(
            *[(_bytes(key), _bytes(str(value))) for key, value in attributes]
        )
        dtype = _name_of(dtype) if dtype is not None else None
        problem = _Problem(
            ctypes.sizeof(_Problem),
            _bytes(name),
            _bytes(dtype),
            raw_dims,
            len(dims),
            raw_attributes,
            len(attributes),
            int(least),
        )
        handle = ctypes.c_void_p()
        _check(
            _library().atunner_choose(
                self._handle, ctypes.byref(problem), device, ctypes.byref(handle)
            )
        )
        return Kernel(handle, self, device)


class Kernel:
    """One artifact, loaded on a device for one problem size. Several threads may launch it. Made by
    ArtifactSet.choose."""

    def __init__(self, handle, artifacts, device):
        self._handle = handle
        self._finalizer = weakref.finalize(self, _library().atunner_kernel_destroy, handle)
        self.device = device
        self.match = Match(_library().atunner_kernel_match(handle))
        self.match_text = _text(_library().atunner_kernel_match_text(handle))
        self.artifact = artifacts[_library().atunner_kernel_artifact(handle)]
        #: Scratch memory of one launch in bytes.
        self.workspace_bytes = _library().atunner_kernel_workspace_bytes(handle)
        #: Tensors to pass, in order.
        self.arguments = [
            self._argument(i) for i in range(_library().atunner_kernel_argument_count(handle))
        ]

    def _argument(self, index):
        raw = _Argument(struct_size=ctypes.sizeof(_Argument))
        _check(_library().atunner_kernel_argument(self._handle, index, ctypes.byref(raw)))
        return Argument(raw)

    def __repr__(self):
        return f"<Kernel {self.artifact.name}: {self.match_text}>"

    def __call__(self, *tensors, stream=None, workspace=None, **named):
        """Puts the kernel into a stream and returns. Tensors come in the order of `arguments`, or
        all by name.

        `stream`: a torch.cuda.Stream, a CuPy stream, or a CUstream as an int; None is PyTorch's
        current stream when a tensor is PyTorch's, else the default stream. As with every
        asynchronous launch, tensors must live until the stream has passed the kernel (PyTorch's
        allocator sees to it on the current stream). `workspace`: a tensor (or address) of at least
        workspace_bytes at a multiple of 256; None takes scratch memory from the driver's pool."""
        tensors = self._in_order(tensors, named)
        addresses = [
            self._address(argument, tensor) for argument, tensor in zip(self.arguments, tensors)
        ]
        launch = _LaunchInfo(struct_size=ctypes.sizeof(_LaunchInfo))
        launch.stream = _stream_of(stream, tensors)
        launch.tensors = (ctypes.c_uint64 * len(addresses))(*addresses)
        launch.tensor_count = len(addresses)
        if workspace is not None:
            launch.workspace, launch.workspace_bytes = _span(workspace, self.workspace_bytes)
        _check(_library().atunner_launch(self._handle, ctypes.byref(launch)))

    def _in_order(self, tensors, named):
        if named and tensors:
            raise TypeError("tensors are given in order and by name; use one of the two")
        names = [argument.name for argument in self.arguments]
        unknown = [name for name in named if name not in names]
        if unknown:
            raise TypeError(
                f"the kernel has no argument '{unknown[0]}'; it takes {', '.join(names)}"
            )
        missing = [name for name in names if name not in named]
        if named and missing:
            raise TypeError(f"argument '{missing[0]}' is missing")
        if not named and len(tensors) != len(names):
            raise TypeError(
                f"the kernel takes {len(names)} tensors ({', '.join(names)}), {len(tensors)} are "
                "given"
            )
        return [named[name] for name in names] if named else list(tensors)

    def _address(self, argument, tensor):
        """The device address of a tensor that fits the argument."""
        if isinstance(tensor, int):
            return tensor
        view = _View(tensor)
        where = f"argument '{argument.name}'"
        if view.dtype != argument.dtype:
            raise TypeError(f"{where} is {argument.dtype}, the tensor is {view.dtype}")
        if view.bytes != argument.bytes:
            raise ValueError(
                f"{where} has shape {list(argument.shape)}, the tensor {list(view.shape)}"
            )
        if not view.contiguous:
            raise ValueError(f"{where} must be contiguous; call .contiguous() on the tensor")
        if (
            view.device is not None
            and self.device != CURRENT_CONTEXT
            and view.device != self.device
        ):
            raise ValueError(
                f"{where} must be on GPU {self.device}, the tensor is on {view.device}"
            )
        return view.address


def version():
    """Of the library."""
    return _text(_library().atunner_version())


# ---- Tensors and streams of others ----

_TYPESTR = {
    "<f4": "float32",
    "<f8": "float64",
    "<f2": "float16",
    "|i1": "int8",
    "|u1": "uint8",
    "<i4": "int32",
    "<i8": "int64",
    "|b1": "bool",
}


def _name_of(dtype):
    """As artifacts name it: of torch.float16 and "float16". PyTorch says that its float8_e4m3 has
    no infinities, as none here has."""
    name = str(dtype).rpartition(".")[2]
    return "float8_e4m3" if name == "float8_e4m3fn" else name


class _View:
    """What must be known of a tensor. `device` is None where the tensor does not say."""

    def __init__(self, tensor):
        if hasattr(tensor, "data_ptr"):  # before the interface below: that one lacks bfloat16
            self._read_torch(tensor)
        elif hasattr(tensor, "__cuda_array_interface__"):
            self._read_interface(tensor.__cuda_array_interface__)
        else:
            raise TypeError(f"a {type(tensor).__name__} is no tensor on a GPU and no address")

    def _read_torch(self, tensor):
        self.address = tensor.data_ptr()
        self.dtype = _name_of(tensor.dtype)
        self.shape = tuple(tensor.shape)
        self.bytes = tensor.numel() * tensor.element_size()
        self.contiguous = tensor.is_contiguous()
        self.device = tensor.device.index if tensor.device.type == "cuda" else str(tensor.device)

    def _read_interface(self, interface):
        self.address = interface["data"][0]
        typestr = interface["typestr"]
        self.dtype = _TYPESTR.get(typestr, typestr)
        self.shape = tuple(interface["shape"])
        size = int(typestr[2:])
        dense = []
        self.bytes = size
        for extent in reversed(self.shape):
            dense.insert(0, self.bytes)
            self.bytes *= extent
        strides = interface.get("strides")
        self.contiguous = strides is None or all(
            extent == 1 or given == wanted
            for extent, given, wanted in zip(self.shape, strides, dense)
        )
        self.device = None


def _span(tensor, default_bytes):
    """Address and bytes of scratch memory."""
    if isinstance(tensor, int):
        return tensor, default_bytes
    view = _View(tensor)
    return view.address, view.bytes


def _stream_of(stream, tensors):
    if stream is None:
        torch = sys.modules.get("torch")  # whoever passes its tensors has imported it
        for tensor in tensors:
            if torch is not None and isinstance(tensor, torch.Tensor):
                return torch.cuda.current_stream(tensor.device).cuda_stream
        return None
    for attribute in ("cuda_stream", "ptr"):  # PyTorch, CuPy
        if hasattr(stream, attribute):
            return getattr(stream, attribute)
    return int(stream)


# ---- The C interface: atunner.h ----


class _ArtifactInfo(ctypes.Structure):
    _fields_ = (
        [("struct_size", ctypes.c_size_t)]
        + [
            (name, ctypes.c_char_p)
            for name in ("name", "dtype", "folder", "device", "arch", "compiler", "run")
        ]
        + [
            ("cc_major", ctypes.c_int),
            ("cc_minor", ctypes.c_int),
            ("evidence", ctypes.c_int),
            ("time_ns", ctypes.c_double),
            ("dims", ctypes.c_char_p),
            ("free_dims", ctypes.c_char_p),
        ]
    )


class _Dim(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_int64)]


class _Attribute(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class _Problem(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("dims", ctypes.POINTER(_Dim)),
        ("dim_count", ctypes.c_size_t),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("attribute_count", ctypes.c_size_t),
        ("least", ctypes.c_int),
    ]


class _Argument(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("role", ctypes.c_int),
        ("rank", ctypes.c_size_t),
        ("extents", ctypes.POINTER(ctypes.c_int64)),
        ("bytes", ctypes.c_uint64),
    ]


class _LaunchInfo(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("stream", ctypes.c_void_p),
        ("tensors", ctypes.POINTER(ctypes.c_uint64)),
        ("tensor_count", ctypes.c_size_t),
        ("named", ctypes.c_void_p),
        ("named_count", ctypes.c_size_t),
        ("workspace", ctypes.c_uint64),
        ("workspace_bytes", ctypes.c_uint64),
    ]


_SIGNATURES = {
    "atunner_abi_version": (ctypes.c_uint32, []),
    "atunner_version": (ctypes.c_char_p, []),
    "atunner_last_error": (ctypes.c_char_p, []),
    "atunner_set_create": (ctypes.c_int, [ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)]),
    "atunner_set_destroy": (None, [ctypes.c_void_p]),
    "atunner_set_add": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]),
    "atunner_set_size": (ctypes.c_size_t, [ctypes.c_void_p]),
    "atunner_set_info": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(_ArtifactInfo)],
    ),
    "atunner_choose": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.POINTER(_Problem), ctypes.c_int, ctypes.POINTER(ctypes.c_void_p)],
    ),
    "atunner_kernel_destroy": (None, [ctypes.c_void_p]),
    "atunner_kernel_match": (ctypes.c_int, [ctypes.c_void_p]),
    "atunner_kernel_match_text": (ctypes.c_char_p, [ctypes.c_void_p]),
    "atunner_kernel_artifact": (ctypes.c_size_t, [ctypes.c_void_p]),
    "atunner_kernel_argument_count": (ctypes.c_size_t, [ctypes.c_void_p]),
    "atunner_kernel_argument": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(_Argument)],
    ),
    "atunner_kernel_workspace_bytes": (ctypes.c_uint64, [ctypes.c_void_p]),
    "atunner_launch": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(_LaunchInfo)]),
}


def _candidates():
    if os.environ.get("ATUNNER_RUNTIME"):
        return [os.environ["ATUNNER_RUNTIME"]]
    here = os.path.dirname(os.path.abspath(__file__))
    prefix = os.path.join(here, "..", "..", "..")  # installed in <prefix>/share/atunner/python
    folders = [here] + [
        os.path.join(prefix, lib)
        for lib in ("lib", "lib64", os.path.join("lib", "x86_64-linux-gnu"))
    ]
    present = [os.path.join(folder, "libatunner_runtime.so.1") for folder in folders]
    present += [os.path.join(here, "libatunner_runtime.so")]
    return [path for path in present if os.path.exists(path)] + ["libatunner_runtime.so.1"]


def _open():
    problems = []
    for path in _candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError as problem:
            problems.append(str(problem))
            continue
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        if library.atunner_abi_version() < _ABI_VERSION:
            raise ImportError(f"{path} is too old for this module")
        return library
    raise ImportError(
        "libatunner_runtime was not found ("
        + "; ".join(problems)
        + "); name it with ATUNNER_RUNTIME"
    )


def _library(opened=[]):
    """Opened at the first use."""
    if not opened:
        opened.append(_open())
    return opened[0]


def _check(status):
    if status != Status.OK:
        raise Error(Status(status), _text(_library().atunner_last_error()))


def _bytes(text):
    return None if text is None else os.fsencode(text)


def _text(raw):
    return os.fsdecode(raw)
