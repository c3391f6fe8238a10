"""atunner for PyTorch: writes models in the form that `atunner optimize` and `atunner graph` read.

    import atunner
    atunner.capture(model.eval(), (x,), "model.pt2")

and then

    atunner graph model.pt2
    atunner optimize model.pt2 --target-gpu H200
"""

from ._capture import CaptureError, capture
from ._step import capture_step

__all__ = ["CaptureError", "capture", "capture_step"]
