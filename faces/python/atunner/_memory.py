"""Serves PyTorch's GPU memory from libatunner_memory.so (docs/how-to/plan-memory.md)."""

import ctypes
import os
from typing import NamedTuple, Optional

import torch

__all__ = ["ServingError", "MemoryStats", "ServedMemory", "serve_memory"]

_LIBRARY = "libatunner_memory.so"


class ServingError(RuntimeError):
    """The allocator cannot be used."""


class MemoryStats(NamedTuple):
    """Bytes of one GPU in this process; numbers of events since its first allocation."""

    live: int  # in tensors
    peak_live: int
    reserved: int  # physical memory
    peak_reserved: int
    allocations: int
    moved_pages: int  # pages that got another address
    moves: int  # allocations for which that happened
    synchronizations: int  # waits for the whole GPU


class ServedMemory:
    """The allocator of this process."""

    def __init__(self, path: str):
        self.path, self._library = path, ctypes.CDLL(path)
        record = ctypes.cast(self._library.atunner_record_stream, ctypes.c_void_p).value
        self._allocator = torch.cuda.memory.CUDAPluggableAllocator(
            path, "atunner_alloc", "atunner_free"
        )
        inner = self._allocator.allocator()
        if hasattr(inner, "set_record_stream_fn"):
            inner.set_record_stream_fn(record)
        torch.cuda.memory.change_current_allocator(self._allocator)

    def stats(self, device: Optional[int] = None) -> MemoryStats:
        values = (ctypes.c_int64 * 8)()
        self._library.atunner_memory_stats(self._number(device), values)
        return MemoryStats(*values)

    def reset_peaks(self, device: Optional[int] = None) -> None:
        self._library.atunner_memory_reset_peaks(self._number(device))

    def empty(self, device: Optional[int] = None) -> None:
        """Waits for the GPU and gives it the memory that is free."""
        self._library.atunner_memory_empty(self._number(device))

    def begin_trace(self) -> None:
        """Records allocations of GPUs that are used from now on."""
        self._library.atunner_memory_begin_trace()

    def write_trace(self, path: str, device: Optional[int] = None) -> None:
        """Writes what was recorded, for `atunner memory plan`."""
        if self._library.atunner_memory_write_trace(self._number(device), os.fsencode(path)) != 0:
            raise ServingError(f"{path} cannot be written, or the GPU was not used")

    @staticmethod
    def _number(device: Optional[int]) -> int:
        return torch.cuda.current_device() if device is None else device


def serve_memory(library: Optional[str] = None) -> ServedMemory:
    """Makes `library` (else $ATUNNER_MEMORY, else libatunner_memory.so beside this package) the
    allocator of PyTorch's GPU memory. It must be called before the process uses a GPU.

    torch.cuda's own statistics and CUDA graphs' memory pools are not there with such an allocator:
    `stats` of the result has the figures. ServingError if it is too late, or there is no library.
    """
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), _LIBRARY)
    path = library or os.environ.get("ATUNNER_MEMORY") or beside
    if not os.path.exists(path):
        raise ServingError(f"{path} is not there; `atunner memory serve --out FOLDER` writes it")
    if torch.cuda.is_initialized():
        raise ServingError("a GPU is in use already: call serve_memory before the first tensor")
    return ServedMemory(os.path.abspath(path))
