"""The Python loader on the virtual libcuda: no GPU, no PyTorch. Run by ctest, which names the
libraries: ATUNNER_RUNTIME, ATUNNER_LIBCUDA (the virtual driver) and MAKE_ARTIFACTS (writes the test
artifacts into a folder)."""

import ctypes
import os
import subprocess
import sys
import tempfile
import threading
import types
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import atunner_runtime
from atunner_runtime import Match, Role, Status

STREAM = 0x57


class Driver:
    """The driver as the test's own program uses it."""

    def __init__(self):
        self.cuda = ctypes.CDLL(os.environ["ATUNNER_LIBCUDA"])
        self.cuda.virtual_cuda_log.restype = ctypes.c_char_p
        self.cuda.cuInit(0)

    def upload(self, values):
        data = (ctypes.c_float * len(values))(*values)
        address = ctypes.c_uint64()
        assert (
            self.cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(ctypes.sizeof(data)))
            == 0
        )
        assert self.cuda.cuMemcpyHtoD_v2(address, data, ctypes.c_size_t(ctypes.sizeof(data))) == 0
        return address.value

    def download(self, address, count):
        data = (ctypes.c_float * count)()
        assert (
            self.cuda.cuMemcpyDtoH_v2(
                data, ctypes.c_uint64(address), ctypes.c_size_t(ctypes.sizeof(data))
            )
            == 0
        )
        return list(data)

    def log(self):
        return self.cuda.virtual_cuda_log().decode()

    def reset(self):
        self.cuda.virtual_cuda_reset_log()


class CudaArray:
    """What CuPy's and Numba's arrays offer."""

    def __init__(self, address, shape, typestr="<f4", strides=None):
        self.__cuda_array_interface__ = {
            "data": (address, False),
            "shape": shape,
            "typestr": typestr,
            "strides": strides,
            "version": 3,
        }


class TorchDevice:
    type = "cuda"

    def __init__(self, index):
        self.index = index


class TorchLike:
    """The part of torch.Tensor that the loader asks for."""

    def __init__(self, address, shape, dtype="torch.float32", contiguous=True, device=0):
        self.address, self.shape, self.dtype, self.contiguous = address, shape, dtype, contiguous
        self.device = TorchDevice(device)

    def data_ptr(self):
        return self.address

    def numel(self):
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def element_size(self):
        return 2 if "16" in self.dtype else 4

    def is_contiguous(self):
        return self.contiguous


class RuntimeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.driver = Driver()
        cls.folder = tempfile.TemporaryDirectory()
        subprocess.run([os.environ["MAKE_ARTIFACTS"], cls.folder.name], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def artifacts(self, *names):
        return atunner_runtime.ArtifactSet(
            *[os.path.join(self.folder.name, name) for name in names]
        )

    def scale(self, n=1000, **more):
        return self.artifacts("scale").choose(dims={"n": n}, **more)

    def tensors(self, n=1000):
        return self.driver.upload([i - 3.0 for i in range(n)]), self.driver.upload([-1.0] * n)

    def check_scaled(self, y, n=1000):
        self.assertEqual(self.driver.download(y, n), [2.5 * (i - 3.0) for i in range(n)])

    def test_describes_what_it_holds(self):
        artifacts = atunner_runtime.ArtifactSet(self.folder.name)  # a folder of artifacts
        self.assertEqual(
            [artifact.name for artifact in artifacts], ["by_table", "scale", "two_step"]
        )
        scale = artifacts[1]
        self.assertEqual(
            (scale.dtype, scale.device, scale.arch), ("float32", "NVIDIA A100-SXM4-80GB", "sm_80")
        )
        self.assertEqual(
            (scale.dims, scale.free_dims, scale.compute_capability), ({"n": 1000}, ["n"], (8, 0))
        )
        self.assertEqual((scale.evidence, scale.time_ns), ("predicted", 2500))
        self.assertRaises(IndexError, lambda: artifacts[3])
        self.assertRegex(atunner_runtime.version(), r"^\d+\.\d+")

    def test_launches_addresses_on_a_stream(self):
        kernel = self.scale()
        self.assertEqual(kernel.match, Match.EXACT)
        self.assertEqual(
            kernel.match_text, "tuned for NVIDIA A100-SXM4-80GB at this size, predicted"
        )
        self.assertEqual(
            [(a.name, a.role, a.shape, a.bytes) for a in kernel.arguments],
            [("x", Role.INPUT, (1000,), 4000), ("y", Role.OUTPUT, (1000,), 4000)],
        )
        x, y = self.tensors()
        self.driver.reset()
        kernel(x, y, stream=STREAM)
        self.assertIn("cuLaunchKernel scale grid=16,1,1 block=64,1,1", self.driver.log())
        self.assertIn("stream=0x57", self.driver.log())
        self.check_scaled(y)

    def test_by_name_and_at_another_size(self):
        kernel = self.scale(n=130)
        self.assertEqual(kernel.match, Match.DEVICE)
        x, y = self.tensors(130)
        kernel(y=y, x=x)
        self.check_scaled(y, 130)

    def test_takes_arrays_and_tensors(self):
        kernel = self.scale()
        x, y = self.tensors()
        kernel(CudaArray(x, (10, 100)), CudaArray(y, (1000,), strides=(4,)))
        self.check_scaled(y)
        y = self.driver.upload([0.0] * 1000)
        kernel(TorchLike(x, (1000,)), TorchLike(y, (10, 100)))
        self.check_scaled(y)

    def test_streams_of_others(self):
        kernel = self.scale()
        x, y = self.tensors()
        for stream in (
            type("TorchStream", (), {"cuda_stream": STREAM})(),
            type("CupyStream", (), {"ptr": STREAM})(),
        ):
            self.driver.reset()
            kernel(x, y, stream=stream)
            self.assertIn("stream=0x57", self.driver.log())

    def test_takes_the_current_stream_of_pytorch(self):
        torch = types.ModuleType("torch")
        torch.Tensor = TorchLike
        torch.cuda = types.SimpleNamespace(
            current_stream=lambda device: types.SimpleNamespace(cuda_stream=0x100 + device.index)
        )
        kernel = self.scale()
        x, y = self.tensors()
        self.driver.reset()
        with unittest.mock.patch.dict(sys.modules, torch=torch):
            kernel(x, TorchLike(y, (1000,)))
        self.assertIn("stream=0x100", self.driver.log())

    def test_names_of_types_are_those_of_artifacts(self):
        for theirs, ours in {
            "torch.float8_e4m3fn": "float8_e4m3",
            "torch.float8_e5m2": "float8_e5m2",
            "torch.bool": "bool",
            "float16": "float16",
        }.items():
            self.assertEqual(atunner_runtime._View(TorchLike(0x1000, (4,), theirs)).dtype, ours)

    def test_refuses_what_does_not_fit(self):
        kernel = self.scale()
        x, y = self.tensors()
        for wrong, error, text in (
            (TorchLike(x, (999,)), ValueError, "has shape"),
            (TorchLike(x, (2000,), "torch.float16"), TypeError, "float16"),
            (TorchLike(x, (1000,), contiguous=False), ValueError, "contiguous"),
            (TorchLike(x, (1000,), device=1), ValueError, "GPU 0"),
            (CudaArray(x, (100, 10), strides=(4, 400)), ValueError, "contiguous"),
            (CudaArray(x, (1000,), "<i4"), TypeError, "int32"),
            ([1.0], TypeError, "no tensor"),
        ):
            with self.assertRaisesRegex(error, text):
                kernel(wrong, y)
        with self.assertRaisesRegex(TypeError, "takes 2 tensors"):
            kernel(x)
        with self.assertRaisesRegex(TypeError, "no argument 'z'"):
            kernel(x=x, z=y)
        with self.assertRaisesRegex(TypeError, "'y' is missing"):
            kernel(x=x)
        with self.assertRaisesRegex(TypeError, "one of the two"):
            kernel(x, y=y)
        with self.assertRaisesRegex(atunner_runtime.Error, "not aligned") as caught:
            kernel(x, y + 4)
        self.assertEqual(caught.exception.status, Status.INVALID)

    def test_workspaces(self):
        kernel = self.artifacts("two_step").choose(dims={"n": 1000})
        self.assertEqual(kernel.workspace_bytes, 256 + 4096)
        x, y = self.tensors()
        self.driver.reset()
        kernel(x, y)
        self.assertIn("cuMemAllocAsync 4352", self.driver.log())
        self.assertEqual(self.driver.download(y, 1000)[100], 97.0 / 2 + 1)
        workspace = self.driver.upload([0.0] * 1088)
        self.driver.reset()
        kernel(x, y, workspace=TorchLike(workspace, (1088,)))
        kernel(x, y, workspace=workspace)
        self.assertNotIn("Async", self.driver.log())
        with self.assertRaisesRegex(atunner_runtime.Error, "4352 are needed"):
            kernel(x, y, workspace=TorchLike(workspace, (1087,)))

    def test_choosing(self):
        artifacts = atunner_runtime.ArtifactSet(self.folder.name)
        with self.assertRaisesRegex(atunner_runtime.Error, "different things"):
            artifacts.choose(dims={"n": 10})
        kernel = artifacts.choose(
            dims={"n": 10}, name="scale", dtype="torch.float32", attributes={"factor": 2.5}
        )
        self.assertEqual(kernel.artifact.name, "scale")
        with self.assertRaisesRegex(atunner_runtime.Error, "factor=2.5") as caught:
            artifacts.choose(dims={"n": 10}, name="scale", attributes={"factor": 3})
        self.assertEqual(caught.exception.status, Status.NOT_FOUND)
        with self.assertRaisesRegex(atunner_runtime.Error, "another size"):
            artifacts.choose(dims={"n": 10}, name="scale", least=Match.EXACT)
        with self.assertRaisesRegex(atunner_runtime.Error, "no GPU 7"):
            artifacts.choose(dims={"n": 10}, name="scale", device=7)
        with self.assertRaisesRegex(atunner_runtime.Error, "nowhere"):
            artifacts.add(os.path.join(self.folder.name, "nowhere"))

    def test_kernels_outlive_their_set_and_unload(self):
        kernel = self.scale()
        x, y = self.tensors()
        kernel(x, y)
        self.check_scaled(y)
        self.driver.reset()
        del kernel
        self.assertIn("cuModuleUnload", self.driver.log())

    def test_threads(self):
        kernel = self.scale()
        x, _ = self.tensors()
        outputs = [self.driver.upload([0.0] * 1000) for _ in range(4)]
        threads = [threading.Thread(target=kernel, args=(x, y)) for y in outputs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for y in outputs:
            self.check_scaled(y)


if __name__ == "__main__":
    unittest.main()
