"""`atunner.optimize` on the virtual GPU: no GPU. Run by ctest, which names what it needs: ATUNNER
(the program) and ATUNNER_RUNTIME. Exit code 77 where there is no PyTorch or no NVRTC."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

try:
    import torch
except ImportError:
    print("skipped: this Python has no PyTorch")
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import atunner
from atunner import _optimize

ROW_SUM = """
// __global__ void not_this(int n)
__global__ void row_sum(const float* __restrict__ x, float* y, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float s = 0;
  for (int c = 0; c < cols; ++c) s += x[row * cols + c];
  y[row] = s;
}
"""
FEW = {"rounds": 1, "ideas": 2, "implementations": 1, "keep": 0.5, "target_gpu": "A100"}


def has_nvrtc():
    asked = subprocess.run(
        [os.environ["ATUNNER"], "doctor", "--json"], stdout=subprocess.PIPE, text=True
    )
    parts = json.loads(asked.stdout)["parts"]
    return any(part["part"] == "NVRTC" and part["found"] for part in parts)


class Program(unittest.TestCase):
    """What is written around a kernel."""

    def test_launches_the_kernel_on_buffers_of_the_inputs(self):
        x, y = torch.empty(8, 16), torch.empty(8, dtype=torch.float16)
        text = _optimize._program(ROW_SUM, (x, y, 8, 16), ((1, 2), 32), None)
        self.assertIn("cudaMalloc(&x, 128 * sizeof(float));", text)
        self.assertIn("cudaMalloc(&y, 8 * sizeof(__half));", text)
        self.assertIn("row_sum<<<dim3(1, 2), dim3(32)>>>(x, y, 8, 16);", text)
        self.assertTrue(text.startswith("#include <cuda_fp16.h>\n"))

    def test_wrong_inputs_are_named(self):
        x, y = torch.empty(8, 16), torch.empty(8)
        wrong = [
            (ROW_SUM, (x, y, 8), (1, 32), "4 parameters; there are 3"),
            (ROW_SUM, (x.t(), y, 8, 16), (1, 32), "x: the tensor is not contiguous"),
            (ROW_SUM, (x, y, 8, "16"), (1, 32), "neither a tensor nor a number"),
            (ROW_SUM, (x, y, 8, 16), (0, 32), "no size of a grid"),
            (ROW_SUM, (x, y, 8, 16), None, "launches nothing"),
            (ROW_SUM + ROW_SUM, (x, y, 8, 16), (1, 32), "must have one kernel"),
            ("int x;", (), (1, 32), "it has: none"),
        ]
        for code, inputs, launch, message in wrong:
            with self.assertRaisesRegex(ValueError, message):
                atunner.optimize(code, inputs, launch=launch, **FEW)
        with self.assertRaises(TypeError):
            atunner.optimize(3)


class Optimize(unittest.TestCase):
    def setUp(self):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self._kept = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(self._kept)))
        os.environ["XDG_DATA_HOME"] = home.name

    def test_a_kernel_of_code(self):
        x, y = torch.empty(64, 256), torch.empty(64)
        fast = atunner.optimize(ROW_SUM, (x, y, 64, 256), launch=(1, 64), **FEW)
        self.assertEqual(fast.evidence, "predicted")
        self.assertGreater(fast.speedup, 1.5)
        self.assertTrue(fast.proposer.startswith("rewrite:"), fast.proposer)
        self.assertIn(fast.proposer.split(":")[1], fast.idea)
        self.assertIn("row_sum", fast.source)
        self.assertNotEqual(fast.source.split("int main")[0].strip(), ROW_SUM.strip())
        self.assertTrue(os.path.exists(os.path.join(fast.artifact, "kernel.cu")))
        self.assertEqual(fast.lineage[0]["id"], "r0.0")

    def test_a_module(self):
        module = torch.nn.Softmax(-1).eval()
        fast = atunner.optimize(module, (torch.randn(16, 128),), budget="6", **FEW)
        self.assertEqual(fast.evidence, "predicted")
        self.assertGreater(fast.speedup, 1.0)
        self.assertTrue(fast.idea)

    def test_errors_of_the_program_are_told(self):
        with self.assertRaisesRegex(atunner.BackendError, "no_such_gpu"):
            atunner.optimize(torch.nn.Softmax(-1), (torch.randn(4, 8),), target_gpu="no_such_gpu")


if __name__ == "__main__":
    if not has_nvrtc():
        print("skipped: there is no NVRTC")
        sys.exit(77)
    unittest.main()
