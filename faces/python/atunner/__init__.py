"""atunner for PyTorch: models become plans of tuned kernels.

    import atunner
    atunner.capture(model.eval(), (x,), "model.pt2")

and then

    atunner graph model.pt2
    atunner optimize model.pt2 --target-gpu H200 --out plan/

and then

    fast = atunner.load("plan/")
    y = fast(x)

or, with PyTorch 2.1 and later, all at once:

    fast = torch.compile(model, backend="atunner")
"""

from . import ops
from ._backend import BackendError, backend, compile_graph
from ._capture import CaptureError, capture
from ._file import compile_from_file
from ._optimize import Optimized, optimize
from ._plan import Plan, load
from ._random import drawing
from ._step import capture_step
from ._triton import TunedTriton, tune_triton
from ._step_function import LossScaling, StepOptions
from ._train_step import TrainStep, train_step
from ._verify_step import StepReport, TensorError, verify_step

__all__ = [
    "BackendError",
    "CaptureError",
    "LossScaling",
    "Optimized",
    "Plan",
    "StepOptions",
    "StepReport",
    "TensorError",
    "TrainStep",
    "TunedTriton",
    "backend",
    "capture",
    "capture_step",
    "compile_from_file",
    "compile_graph",
    "drawing",
    "load",
    "ops",
    "optimize",
    "train_step",
    "tune_triton",
    "verify_step",
]
