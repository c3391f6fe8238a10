"""torch.compile(backend="atunner") on a GPU, with PyTorch 2.5 or later. Needs ATUNNER (the program)
and ATUNNER_RUNTIME. Exit code 77 where there is no such PyTorch or no GPU.

    python3 atunner_compile_test.py                     # all
    python3 atunner_compile_test.py CompileTest.test_softmax
"""

import contextlib
import copy
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
import warnings

try:
    import torch
except ImportError:
    print("skipped: this Python has no PyTorch")
    sys.exit(77)
if not hasattr(torch, "compile") or not torch.cuda.is_available():
    print("skipped: torch.compile and a GPU are needed")
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import atunner
from atunner import _backend

try:
    import triton
    from triton import language as tl
except ImportError:
    triton = None

nn = torch.nn
functional = torch.nn.functional


class Attention(nn.Module):
    def __init__(self, width=64, heads=4):
        super().__init__()
        self.heads = heads
        self.packed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        split = self.packed(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(split[0], split[1], split[2])
        return x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Counter(nn.Module):
    """Changes a buffer, and its input."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(8))

    def forward(self, x):
        self.calls.add_(1)
        x.mul_(2)
        y = x + self.calls
        y[:, 0] = 7
        return y.relu_()


class Broken(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(32, 32), nn.Linear(32, 32)

    def forward(self, x):
        h = torch.tanh(self.first(x))
        print("between the graphs")
        return self.second(h)


if triton is not None:

    @triton.jit
    def scaled_sum(x, y, out, count, BLOCK: tl.constexpr, WRONG: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = at < count
        total = tl.load(x + at, inside) * 3 + tl.load(y + at, inside)
        if WRONG and BLOCK > 256:
            total += 1
        tl.store(out + at, total, inside)


def mlp(width=64):
    return nn.Sequential(nn.Linear(width, 128), nn.GELU(), nn.Linear(128, width))


def ready(module):
    return module.cuda().eval()


def double(module, *inputs):
    """What a module computes in float64, on the CPU."""
    exact = copy.deepcopy(module).double().cpu()
    return exact(*[x.double().cpu() if x.is_floating_point() else x.cpu() for x in inputs])


class CompileTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        os.environ.setdefault("XDG_CACHE_HOME", os.path.join(cls.folder.name, "cache"))
        os.environ.setdefault("XDG_DATA_HOME", os.path.join(cls.folder.name, "data"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        torch.manual_seed(1)
        torch._dynamo.reset()
        _backend._warned.clear()
        self.left = []
        self.plans = []
        compiled = _backend.compile_graph

        def spied(*args, **kwargs):
            found = compiled(*args, **kwargs)
            self.plans.append(found)
            return found

        _backend.compile_graph = spied
        self.addCleanup(setattr, _backend, "compile_graph", compiled)

    @contextlib.contextmanager
    def watched(self, ours=True):
        """Inference; with `ours` nothing may be left to PyTorch."""
        with torch.no_grad(), warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            yield
        self.left = [str(each.message) for each in seen if "atunner" in str(each.message)]
        if ours:
            self.assertEqual(self.left, [])
            self.assertGreater(len(self.plans), 0, "the backend was not asked")

    def near(self, got, want, tolerance=2e-4):
        self.assertEqual(tuple(got.shape), tuple(want.shape))
        error = (got.double().cpu() - want.double().cpu()).abs().max().item()
        scale = max(1.0, want.double().abs().max().item())
        self.assertLessEqual(error / scale, tolerance)

    def compiled(self, module, *inputs, tolerance=2e-4, **given):
        fast = torch.compile(module, backend="atunner", **given)
        with self.watched():
            got = [fast(*inputs), fast(*inputs)]
            want = double(module, *inputs)
        for each in got:
            self.near(each, want, tolerance)
        return fast, got[1]

    def test_mlp(self):
        self.compiled(ready(mlp()), torch.randn(32, 64, device="cuda"))

    def test_conv_bn_relu(self):
        net = nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
        net[1].running_mean.uniform_(-1, 1)
        net[1].running_var.uniform_(0.5, 2)
        self.compiled(ready(net), torch.randn(4, 8, 16, 16, device="cuda"), tolerance=2e-3)

    def test_layer_norm_gelu(self):
        net = nn.Sequential(nn.LayerNorm(96), nn.GELU(), nn.Linear(96, 32), nn.LayerNorm(32))
        self.compiled(ready(net), torch.randn(16, 96, device="cuda"))

    def test_attention(self):
        self.compiled(ready(Attention()), torch.randn(2, 32, 64, device="cuda"))

    def test_attention_of_bfloat16(self):
        net = ready(Attention()).bfloat16()
        x = torch.randn(2, 32, 64, device="cuda", dtype=torch.bfloat16)
        self.compiled(net, x, tolerance=3e-2)

    def test_softmax(self):
        self.compiled(nn.Softmax(-1), torch.randn(64, 1000, device="cuda"))

    def test_embedding(self):
        net = ready(nn.Sequential(nn.Embedding(100, 64), mlp()))
        self.compiled(net, torch.randint(0, 100, (4, 16), device="cuda"))

    def test_inputs_and_buffers_are_changed(self):
        one, other = ready(Counter()), ready(Counter())
        x = torch.randn(4, 8, device="cuda")
        mine, theirs = x.clone(), x.clone()
        fast = torch.compile(one, backend="atunner")
        with self.watched():
            for _ in range(3):
                got, want = fast(mine), other(theirs)
                self.near(got, want)
        self.near(mine, theirs)
        self.near(one.calls, other.calls)

    def test_views_are_returned(self):
        def views(x):
            y = x * 2 + 1
            return y.t(), x[1:], y.view(-1), x

        x = torch.randn(6, 10, device="cuda")
        fast = torch.compile(views, backend="atunner")
        with self.watched():
            got = fast(x)
        for one, other in zip(got, views(x)):
            self.near(one, other)
            self.assertEqual(one.stride(), other.stride())
        self.assertEqual(got[1].data_ptr(), x[1:].data_ptr())
        self.assertIs(got[3], x)

    def test_channels_last(self):
        net = nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU())
        net = ready(net).to(memory_format=torch.channels_last)
        x = torch.randn(2, 8, 12, 12, device="cuda").to(memory_format=torch.channels_last)
        _, got = self.compiled(net, x, tolerance=2e-3)
        with torch.no_grad():
            self.assertEqual(got.stride(), net(x).stride())

    def test_bfloat16_autocast(self):
        net, x = ready(mlp()), torch.randn(32, 64, device="cuda")
        fast = torch.compile(net, backend="atunner")
        with self.watched(), torch.autocast("cuda", torch.bfloat16):
            got = fast(x)
        self.assertEqual(got.dtype, torch.bfloat16)
        self.near(got, double(net, x), 3e-2)

    def test_two_batch_sizes(self):
        net = ready(mlp())
        fast = torch.compile(net, backend="atunner")
        with self.watched():
            for batch in (8, 24, 5, 24, 8):
                x = torch.randn(batch, 64, device="cuda")
                self.near(fast(x), double(net, x))

    def test_dynamic_sizes(self):
        net = ready(Attention())
        fast = torch.compile(net, backend="atunner", dynamic=True)
        with self.watched():
            for batch, length in ((2, 32), (3, 16), (2, 32)):
                x = torch.randn(batch, length, 64, device="cuda")
                self.near(fast(x), double(net, x))

    def test_a_graph_break(self):
        net, x = ready(Broken()), torch.randn(8, 32, device="cuda")
        fast, printed = torch.compile(net, backend="atunner"), io.StringIO()
        with self.watched(), contextlib.redirect_stdout(printed):
            got = fast(x)
        self.assertEqual(len(self.plans), 2)
        self.assertIn("between", printed.getvalue())
        with contextlib.redirect_stdout(printed):
            self.near(got, double(net, x))

    def test_unknown_operators_are_left_to_pytorch(self):
        def unknown(x):
            return torch.digamma(torch.sigmoid(x) + 1) * 2 + x

        x = torch.randn(16, 16, device="cuda")
        fast = torch.compile(unknown, backend="atunner")
        with self.watched():
            got = fast(x)
        self.near(got, unknown(x.double()))
        self.assertEqual(self.plans[0].plan.extern_count, 1)

    def test_gradients_are_left_to_pytorch(self):
        net, x = ready(mlp()), torch.randn(8, 64, device="cuda")
        fast = torch.compile(net, backend="atunner")
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            fast(x).sum().backward()
        self.assertIn("no_grad", " ".join(str(each.message) for each in seen))
        self.assertIsNotNone(net[0].weight.grad)

    def test_max_autotune(self):
        x = torch.randn(8, 64, device="cuda")
        self.compiled(ready(nn.Linear(64, 32)), x, options={"mode": "max-autotune", "budget": "4"})

    def test_mode_of_torch_compile(self):
        self.compiled(nn.ReLU(), torch.randn(64, 64, device="cuda"), mode="reduce-overhead")

    def test_calls_are_quick(self):
        net = ready(nn.Sequential(*[mlp() for _ in range(6)]))
        x = torch.randn(32, 64, device="cuda")
        times = {}
        for name, mode in (("eager", None), ("default", "default"), ("replay", "reduce-overhead")):
            run = net if mode is None else torch.compile(net, backend="atunner", mode=mode)
            with torch.no_grad():
                for _ in range(20):
                    run(x)
                torch.cuda.synchronize()
                began = time.perf_counter()
                for _ in range(200):
                    run(x)
                torch.cuda.synchronize()
                times[name] = (time.perf_counter() - began) / 200 * 1e6
                if name != "eager":
                    graph, tensors = self.plans[-1], [x]
                    tensors = [x] + list(net.parameters())
                    if sorted(tuple(t.shape) for t in tensors) == sorted(
                        given.shape for given in graph.plan.inputs
                    ):
                        pool = {}
                        for tensor in tensors:
                            pool.setdefault(tuple(tensor.shape), []).append(tensor)
                        ordered = [pool[given.shape].pop(0) for given in graph.plan.inputs]
                        began = time.perf_counter()
                        for _ in range(200):
                            graph(*ordered)
                        issued = time.perf_counter() - began
                        torch.cuda.synchronize()
                        spent = time.perf_counter() - began
                        times[name + ", plan alone"] = spent / 200 * 1e6
                        times[name + ", plan issued"] = issued / 200 * 1e6
        print("us per call of 12 Linear, 6 GELU:", {k: round(v, 1) for k, v in times.items()})

    def test_operators(self):
        x = torch.randn(64, 256, device="cuda", requires_grad=True)
        w, b = (torch.randn(256, device="cuda", requires_grad=True) for _ in range(2))
        ops = atunner.ops
        cases = (
            (lambda x, w, b: ops.softmax(x, -1), lambda x, w, b: torch.softmax(x, -1)),
            (ops.layer_norm, lambda x, w, b: functional.layer_norm(x, (256,), w, b)),
            (
                lambda x, w, b: ops.rms_norm(x, w),
                lambda x, w, b: x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w,
            ),
        )
        for ours, theirs in cases:
            exact = [each.detach().double().requires_grad_() for each in (x, w, b)]
            mine = [each.detach().clone().requires_grad_() for each in (x, w, b)]
            seed = torch.randn_like(x)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                got, want = ours(*mine), theirs(*exact)
            self.near(got, want)
            got.backward(seed)
            want.backward(seed.double())
            for one, other in zip(mine, exact):
                if other.grad is not None:
                    self.near(one.grad, other.grad)
        torch.library.opcheck(torch.ops.atunner.softmax.default, (x, 1))
        torch.library.opcheck(torch.ops.atunner.layer_norm.default, (x, w, b, 1e-5))
        fast = torch.compile(lambda x: ops.softmax(x, -1) + 1, fullgraph=True, backend="aot_eager")
        self.near(fast(x.detach()), torch.softmax(x.detach().double(), -1) + 1)

    @unittest.skipIf(triton is None, "Triton is not installed")
    def test_triton_kernels(self):
        count = 1 << 20
        x, y = torch.randn(2, count, device="cuda")
        out = torch.zeros(count, device="cuda")
        space = {
            "BLOCK": [64, 256, 1024, 4096],
            "num_warps": [4, 1, 8],
            "num_stages": [1, 2],
            "WRONG": [0, 1],
        }
        tuned = atunner.tune_triton(
            scaled_sum,
            space,
            (x, y, out, count),
            lambda config: (triton.cdiv(count, config["BLOCK"]),),
        )
        print(tuned)
        self.assertEqual(len(tuned.trials), 48)
        self.assertEqual(float(out.abs().max()), 0.0, "the arguments were changed")
        for trial in tuned.trials:
            wrong = trial.config["WRONG"] and trial.config["BLOCK"] > 256
            self.assertEqual(trial.time_us is None, bool(wrong), trial)
        self.assertLessEqual(tuned.time_us, tuned.first_us)
        tuned(x, y, out, count)
        self.near(out, x.double() * 3 + y.double())
        with self.assertRaisesRegex(RuntimeError, "first configuration"):
            atunner.tune_triton(scaled_sum, {"BLOCK": [3]}, (x, y, out, count), (1,))

    def test_tuning_in_the_background(self):
        net, x = ready(nn.Linear(64, 48)), torch.randn(16, 64, device="cuda")
        options = {"tune": "background", "verify": "first", "budget": "5"}
        fast = torch.compile(net, backend="atunner", options=options)
        with self.watched():
            self.near(fast(x), double(net, x))
            graph = self.plans[0]
            first = graph.plan
            graph.tuner.join()
            self.near(fast(x), double(net, x))
            self.assertIsNot(graph.plan, first)
            self.near(fast(x), double(net, x))

    def test_first_guesses_serve_before_they_are_verified(self):
        net, x = ready(nn.Linear(64, 24)), torch.randn(16, 64, device="cuda")
        fast = torch.compile(net, backend="atunner")
        with self.watched():
            for _ in range(2):
                self.near(fast(x), double(net, x))
            graph = self.plans[0]
            graph.tuner.join()
            self.near(fast(x), double(net, x))
            self.assertTrue(graph.is_verified)

    def test_the_command_line_reads_exported_programs(self):
        net, x = ready(mlp()), torch.randn(8, 64, device="cuda")
        path = os.path.join(self.folder.name, "exported.pt2")
        torch.export.save(torch.export.export(net, (x,)), path)
        for command in (
            ["graph", path, "--json"],
            ["optimize", path, "--first-guess", "--json", "--out", path[:-4]],
        ):
            ended = subprocess.run(
                [os.environ["ATUNNER"], *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            self.assertEqual(ended.returncode, 0, ended.stderr.decode())
            json.loads(ended.stdout)
        with torch.no_grad():
            self.near(atunner.load(path[:-4])(x), double(net, x))

    def test_a_second_process_compiles_nothing(self):
        script = (
            "import sys, time, torch, atunner\n"
            "from atunner import _backend\n"
            "net = torch.nn.Sequential(torch.nn.Linear(64, 40), torch.nn.GELU()).cuda().eval()\n"
            "x = torch.randn(16, 64, device='cuda')\n"
            "inner, spent = _backend.compile_graph, []\n"
            "def timed(*args, **kwargs):\n"
            "    began = time.perf_counter()\n"
            "    found = inner(*args, **kwargs)\n"
            "    spent.append(time.perf_counter() - began)\n"
            "    return found\n"
            "_backend.compile_graph = timed\n"
            "with torch.no_grad():\n"
            "    options = {'verify': 'first'}\n"
            "    y = torch.compile(net, backend='atunner', options=options)(x)\n"
            "    torch.testing.assert_close(y, net(x), rtol=1e-3, atol=1e-3)\n"
            "print('compile_graph took', *spent)\n"
        )
        spent = []
        for program in (os.environ["ATUNNER"], "/nowhere/atunner"):
            ended = subprocess.run(
                [sys.executable, "-W", "error:atunner", "-c", script],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=os.path.dirname(os.path.abspath(__file__)),
                env={**os.environ, "ATUNNER": program},
            )
            self.assertEqual(ended.returncode, 0, ended.stderr[-3000:])
            spent.append(float(ended.stdout.split()[-1]))
        print("seconds in compile_graph, first and second process:", spent)
        self.assertLess(spent[1], spent[0])


if __name__ == "__main__":
    unittest.main(verbosity=2)
