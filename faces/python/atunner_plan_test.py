"""Execution plans from Python, with real PyTorch, on the virtual libcuda: no GPU. Run by ctest,
which names what it needs: ATUNNER (the program), ATUNNER_RUNTIME, and ATUNNER_LIBCUDA (the virtual
driver; without it the test uses this machine's GPU). Exit code 77 where there is no PyTorch or no
NVRTC."""

import json
import operator
import os
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock
import warnings
import zipfile

try:
    import torch
except ImportError:
    print("skipped: this Python has no PyTorch")
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import atunner
import atunner_runtime
from atunner import _backend, _fixed_graph, _graphs, _options, _plan_cache, _program

nn = torch.nn
VIRTUAL = "ATUNNER_LIBCUDA" in os.environ
GPU = "A100" if VIRTUAL else "auto"


def has_nvrtc():
    asked = subprocess.run(
        [os.environ["ATUNNER"], "doctor", "--json"], stdout=subprocess.PIPE, text=True
    )
    parts = json.loads(asked.stdout)["parts"]
    return any(part["part"] == "NVRTC" and part["found"] for part in parts)


def mlp():
    return nn.Sequential(nn.Linear(48, 40), nn.GELU(), nn.Linear(40, 24)).eval()


class Convolutions(nn.Module):
    """Two results, and a weight whose memory is not dense."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.norm.running_mean.uniform_(-1, 1)
        self.mix = nn.Parameter(torch.randn(8, 8).t())

    def forward(self, x):
        h = torch.relu(self.norm(self.conv(x)))
        return torch.einsum("nchw,dc->ndhw", h, self.mix).mean((2, 3)), h


class Unknown(nn.Module):
    """aten.digamma is unknown to atunner."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x):
        h = torch.sigmoid(self.first(x)) + 1
        return self.second(torch.digamma(h)) + h


class SimpleOperators:
    """torch.ops with one operator."""

    def __init__(self, attention):
        self.aten = self.scaled_dot_product_attention = self
        self.default = attention


class PlanTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.manual_seed(1)
        cls.folder = tempfile.TemporaryDirectory()
        cls.environment = unittest.mock.patch.dict(
            os.environ,
            HOME=cls.folder.name,
            XDG_CACHE_HOME=os.path.join(cls.folder.name, "cache"),
            XDG_DATA_HOME=os.path.join(cls.folder.name, "data"),
            ATUNNER_VIRTUAL_CUDA_GPU=GPU,
        )
        cls.environment.start()

    @classmethod
    def tearDownClass(cls):
        cls.environment.stop()
        cls.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def optimized(self, name, module, inputs, *flags):
        """The plan of a module, made by the command line."""
        model = atunner.capture(module, inputs, self.path(name + ".pt2"))
        out = self.path(name)
        command = [os.environ["ATUNNER"], "optimize", model, "--target-gpu", GPU]
        command += ["--virtual"] if VIRTUAL else []
        command += ["--first-guess", "--json", "--out", out, *flags]
        made = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        return atunner.load(out), json.loads(made.stdout)

    def check(self, got, want):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)

    def test_a_model_becomes_a_folder_that_needs_nothing_else(self):
        module, x = mlp(), torch.randn(6, 48)
        fast, summary = self.optimized("mlp", module, (x,))
        os.remove(self.path("mlp.pt2"))
        self.assertEqual([i.shape for i in fast.inputs], [(6, 48)])
        self.assertEqual(fast.weight_bytes, summary["weight_bytes"])
        self.assertEqual(summary["externs"], [])
        for x in (x, torch.randn(6, 48), torch.randn(48, 6).t()):
            self.check(fast(x), module(x).detach())
        for wrong, error, text in (
            (torch.randn(5, 48), ValueError, "fixed sizes"),
            (torch.randn(6, 48).double(), TypeError, "float64"),
            ([1.0], TypeError, "no tensor"),
        ):
            with self.assertRaisesRegex(error, text):
                fast(wrong)
        with self.assertRaisesRegex(TypeError, "takes 1 tensors"):
            fast(x, x)
        with self.assertRaises(atunner_runtime.Error):
            atunner.load(self.path("nowhere"))

    def test_several_results_and_strided_weights(self):
        module, x = Convolutions().eval(), torch.randn(2, 4, 8, 8)
        fast, _ = self.optimized("convolutions", module, (x,))
        with torch.no_grad():
            want = module(x)
        got = fast(x)
        self.assertIsInstance(got, tuple)
        for one, other in zip(got, want):
            self.check(one, other)

    def test_unknown_operators_are_left_to_pytorch(self):
        module, x = Unknown().eval(), torch.randn(4, 16)
        fast, summary = self.optimized("unknown", module, (x,))
        self.assertEqual(summary["externs"], ["aten.digamma.default"])
        self.assertEqual(fast.extern_count, 1)
        self.check(fast(x), module(x).detach())
        with unittest.mock.patch.object(
            atunner._plan, "_operator", side_effect=AttributeError("gone")
        ), self.assertRaisesRegex(AttributeError, "gone"):
            fast(x)

    def test_weights_of_exported_programs(self):
        """What PyTorch 2.5 to 2.7 keeps in a pickle; their `torch.export` is not here."""
        from types import SimpleNamespace as Named

        def spec(kind, target):
            return Named(kind=Named(name=kind), target=target)

        specs = [spec("PARAMETER", "w"), spec("BUFFER", "b"), spec("CONSTANT_TENSOR", "c")]
        exported = Named(
            graph_signature=Named(input_specs=specs + [spec("USER_INPUT", None)]),
            state_dict={"w": nn.Parameter(torch.ones(2))},
            constants={"b": torch.zeros(3), "c": torch.ones(1)},
        )
        weights = atunner._capture._exported_weights(exported)
        self.assertEqual(
            [(given.kind, given.qualified_name, tensor.numel()) for given, tensor in weights],
            [("parameter", "w", 2), ("buffer", "b", 3), ("tensor_constant", "c", 1)],
        )
        archive = self.path("old.pt2")
        with zipfile.ZipFile(archive, "w") as entries:
            entries.writestr("serialized_exported_program.json", '{"graph_module": {}}')
        self.assertEqual(atunner._capture._old_program(archive), {"graph_module": {}})

    def test_attention_of_gpus_becomes_the_operator(self):
        """The operators of PyTorch 2 are not here: others play them."""
        forms = torch.library.Library("forms", "DEF")
        arguments = "Tensor query, Tensor key, Tensor value, float dropout_p=0.0"
        forms.define(f"flash({arguments}, bool is_causal=False) -> (Tensor, Tensor)")
        forms.define(
            "whole(Tensor query, Tensor key, Tensor value, Tensor? mask, float p, bool c)"
            " -> Tensor"
        )
        graph = torch.fx.Graph()
        q = graph.placeholder("q")
        flash = graph.call_function(torch.ops.forms.flash.default, (q, q, q, 0.0, True))
        first = graph.call_function(operator.getitem, (flash, 0))
        graph.output((first,))
        operators = SimpleOperators(torch.ops.forms.whole.default)
        with unittest.mock.patch.object(
            _graphs, "_ATTENTION", ("forms.flash.default",)
        ), unittest.mock.patch.object(_graphs.torch, "ops", operators):
            _graphs._join_attention(graph)
        graph.eliminate_dead_code()
        calls = [node for node in graph.nodes if node.op == "call_function"]
        self.assertEqual([str(node.target) for node in calls], ["forms.whole.default"])
        self.assertEqual(calls[0].args, (q, q, q, None, 0.0, True))

    def graph(self, module, x):
        """The module as AOTAutograd hands it over: weights are inputs."""
        from torch.fx.experimental.proxy_tensor import make_fx

        names = [name for name, _ in module.named_parameters()]
        weights = [tensor.detach() for _, tensor in module.named_parameters()]

        def run(x, *tensors):
            from torch.nn.utils.stateless import functional_call

            return [functional_call(module, dict(zip(names, tensors)), (x,)), None]

        with torch.no_grad():
            return make_fx(run)(x, *weights), [x] + weights

    def test_a_graph_is_compiled_once(self):
        module, x = mlp(), torch.randn(6, 48)
        graph, inputs = self.graph(module, x)
        options = {"target_gpu": GPU}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fast = _backend.compile_graph(graph, inputs, options=options)
            self.assertFalse(fast.is_verified)
            for _ in range(2):  # the first call is compared with PyTorch's
                got = fast(*inputs)
                self.check(got[0], module(x).detach())
                self.assertIsNone(got[1])
            first = fast.plan
            self.assertEqual(first.weight_bytes, 0)
            fast.tuner.join()
            self.check(fast(*inputs)[0], module(x).detach())
            self.assertTrue(fast.is_verified)
            self.assertIsNot(fast.plan, first)
            with unittest.mock.patch.object(_plan_cache, "_make_plan") as made:
                again = _backend.compile_graph(graph, inputs, "reduce-overhead", options)
            made.assert_not_called()
            self.check(again(*inputs)[0], module(x).detach())

    def test_a_plan_that_differs_from_pytorch_does_not_serve(self):
        module, x = nn.Sequential(nn.Linear(24, 8), nn.Tanh()).eval(), torch.randn(4, 24)
        graph, inputs = self.graph(module, x)
        fast = _backend.compile_graph(graph, inputs, options={"target_gpu": GPU})
        with unittest.mock.patch.object(_fixed_graph, "_agree", return_value=False):
            with self.assertWarnsRegex(UserWarning, "until its kernels are verified"):
                fast(*inputs)
        with unittest.mock.patch.object(fast.plan, "run") as run:
            self.check(fast(*inputs)[0], module(x).detach())
            run.assert_not_called()
            fast.tuner.join()
            fast(*inputs)
        self.assertTrue(fast.is_verified)
        self.check(fast(*inputs)[0], module(x).detach())

    def test_a_plan_that_cannot_be_verified_does_not_serve(self):
        module, x = nn.Sequential(nn.Linear(16, 8), nn.Tanh()).eval(), torch.randn(4, 16)
        graph, inputs = self.graph(module, x)
        make = _plan_cache._make_plan

        def unchecked_only(command, device):
            if "--unchecked" not in command:
                raise _backend.BackendError("no correct kernel was found")
            make(command, device)

        with unittest.mock.patch.object(_plan_cache, "_make_plan", unchecked_only):
            with self.assertWarnsRegex(UserWarning, "cannot be verified: no correct kernel"):
                fast = _backend.compile_graph(graph, inputs, options={"target_gpu": GPU})
                fast.tuner.join()
        with unittest.mock.patch.object(fast.plan, "run") as run:
            self.check(fast(*inputs)[0], module(x).detach())
            run.assert_not_called()

    def test_a_plan_is_tuned_while_it_serves(self):
        module = nn.Sequential(nn.Linear(20, 12), nn.ReLU()).eval()
        x = torch.randn(4, 20)
        graph, inputs = self.graph(module, x)
        options = {"target_gpu": GPU, "tune": "background", "verify": "first", "budget": 2}
        with unittest.mock.patch.object(_fixed_graph, "_agree", return_value=False):
            fast = _backend.compile_graph(graph, inputs, options=options)
            first = fast.plan
            fast.tuner.join()
            with self.assertWarnsRegex(UserWarning, "differ from the first"):
                fast(*inputs)
            self.assertIs(fast.plan, first)
        with unittest.mock.patch.object(_plan_cache, "_make_plan") as made:
            again = _backend.compile_graph(graph, inputs, options=options)
        made.assert_not_called()
        self.assertIsNone(again.tuner)
        fast._tuned = again.plan
        for _ in range(2):
            self.check(fast(*inputs)[0], module(x).detach())
            self.assertIs(fast.plan, again.plan)

    def test_a_graph_with_symbolic_sizes_has_a_plan_for_each_sizes(self):
        graph = torch.fx.Graph()
        rows, x = graph.placeholder("rows"), graph.placeholder("x")
        doubled = graph.call_function(operator.mul, (rows, 2))
        split = graph.call_function(torch.ops.aten.view.default, (x, [doubled, 4]))
        result = graph.call_function(torch.ops.aten.relu.default, (split,))
        graph.output((result, doubled))
        module = torch.fx.GraphModule(nn.Module(), graph)
        options = {"target_gpu": GPU, "max_sizes": 2}
        fast = _backend.compile_graph(module, [3, torch.randn(24)], options=options)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for rows in (3, 5, 3):
                x = torch.randn(rows * 8)
                got = fast(rows, x)
                self.check(got[0], x.view(rows * 2, 4).relu())
                self.assertEqual(got[1], rows * 2)
        self.assertEqual(len(fast.plans), 2)
        with self.assertWarnsRegex(UserWarning, "max_sizes=2"):
            self.assertEqual(fast(4, torch.randn(32))[1], 8)

    def test_results_have_the_strides_of_pytorch(self):
        graph = torch.fx.Graph()
        x = graph.placeholder("x")
        result = graph.call_function(torch.ops.aten.relu.default, (x,))
        graph.output((result,))
        x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
        result.meta["val"] = x.relu()
        module = torch.fx.GraphModule(nn.Module(), graph)
        options = {"target_gpu": GPU, "fallback": False}
        (got,) = _backend.compile_graph(module, [x], options=options)(x)
        self.assertEqual(got.stride(), x.stride())
        self.check(got, x.relu())

    def test_a_kernel_of_a_file(self):
        here = os.path.dirname(os.path.abspath(__file__))
        path = self.path("saxpy.cu")
        with open(os.path.join(here, "../../examples/kernels/saxpy.cu")) as file:
            text = file.read()
        with open(path, "w") as file:
            file.write(text.replace("1 << 20", "1 << 12"))
        saxpy = atunner.compile_from_file(path, budget="2", target_gpu=GPU)
        self.assertEqual([each.shape for each in saxpy.arguments], [(4096,), (4096,)])
        self.assertEqual(saxpy.artifact.name, "saxpy")
        with unittest.mock.patch.dict(os.environ, ATUNNER="/nowhere"):
            again = atunner.compile_from_file(path, budget="2", target_gpu=GPU)
        self.assertEqual(again.artifact.folder, saxpy.artifact.folder)
        if not VIRTUAL:
            x, y = torch.randn(2, 4096, device="cuda")
            want = 2 * x + y
            saxpy(x, y)
            self.check(y, want)
        with open(path, "w") as file:
            file.write("int main() {}")
        with self.assertRaisesRegex(atunner.BackendError, "kernel"):
            atunner.compile_from_file(path, target_gpu=GPU)

    def test_the_search_of_triton_kernels(self):
        """Without Triton and GPU: times are a formula."""
        space = {"BLOCK": [64, 128, 256, 512, 1024], "num_warps": [1, 2, 4, 8]}

        def judge(config):
            if config["num_warps"] == 8:
                return atunner._triton.TritonTrial(config, None, "out of resources")
            distance = abs(config["BLOCK"] - 512) + abs(config["num_warps"] - 4) * 10
            return atunner._triton.TritonTrial(config, 10.0 + distance, "")

        for budget in (20, 14):
            trials = atunner._triton._search(space, judge, budget, lambda config: True, seed=1)
            self.assertEqual(len(trials), budget)
            self.assertEqual(trials[0].config, {"BLOCK": 64, "num_warps": 1})
            self.assertEqual(len({tuple(trial.config.values()) for trial in trials}), budget)
            best = atunner.TunedTriton(None, (1,), trials)
            self.assertEqual(best.config, {"BLOCK": 512, "num_warps": 4})
        few = atunner._triton._search(space, judge, 99, lambda c: c["BLOCK"] < 256, seed=1)
        self.assertEqual(len(few), 8)
        difference = atunner._triton._difference
        x = torch.tensor([1.0, float("inf"), -4.0])
        self.assertEqual(difference(x, x, None), 0.0)
        self.assertGreater(difference(x + torch.tensor([0.1, 0, 0]), x, None), 1)
        self.assertGreater(difference(torch.zeros(3), x, None), 1)
        self.assertEqual(difference(x.long(), x.long() + 1, None), float("inf"))
        with self.assertRaisesRegex(ImportError, "Triton"), unittest.mock.patch.object(
            atunner._triton.importlib.util, "find_spec", return_value=None
        ):
            atunner.tune_triton(None, space, (), (1,))
        with self.assertRaisesRegex(ValueError, "BLOCK"):
            atunner._triton._check_space({"BLOCK": []}, 3)

    def test_operators(self):
        atunner.ops.set_options(target_gpu=GPU, fallback=False)
        self.addCleanup(atunner.ops.set_options)
        x = torch.randn(5, 24, dtype=torch.float32, requires_grad=True)
        w, b = (torch.randn(24, requires_grad=True) for _ in range(2))
        ops, norm = atunner.ops, nn.functional.layer_norm
        cases = (
            (lambda x, w, b: ops.softmax(x, 0), lambda x, w, b: torch.softmax(x, 0)),
            (ops.layer_norm, lambda x, w, b: norm(x, (24,), w, b)),
            (
                lambda x, w, b: ops.rms_norm(x, w),
                lambda x, w, b: x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w,
            ),
        )
        seed = torch.randn_like(x)
        for ours, theirs in cases:
            exact = [each.detach().double().requires_grad_() for each in (x, w, b)]
            mine = [each.detach().clone().requires_grad_() for each in (x, w, b)]
            got, want = ours(*mine), theirs(*exact)
            self.check(got.double(), want)
            got.backward(seed)
            want.backward(seed.double())
            for one, other in zip(mine, exact):
                if other.grad is not None:
                    self.check(one.grad.double(), other.grad)
        with self.assertRaisesRegex(ValueError, "no option 'bugdet'"):
            ops.set_options(bugdet=3)

    @unittest.skipIf(hasattr(torch, "compile"), "atunner_compile_test.py uses the real one")
    def test_the_backend_of_torch_compile(self):
        """torch.compile is not in PyTorch 1.13: a stand-in hands the graph over."""
        module, x = mlp(), torch.randn(6, 48)
        graph, inputs = self.graph(module, x)
        compilers = {}

        def aot_autograd(**given):
            compilers.update(given)
            return lambda graph, inputs: given["inference_compiler"](graph, inputs)

        common = types.ModuleType("torch._dynamo.backends.common")
        common.aot_autograd = aot_autograd
        names = ("torch._dynamo", "torch._dynamo.backends")
        modules = {name: types.ModuleType(name) for name in names}
        modules["torch._dynamo.backends.common"] = common
        with unittest.mock.patch.dict(sys.modules, modules):
            fast = _backend.backend(graph, inputs, options={"target_gpu": GPU})
            with self.assertRaisesRegex(ValueError, "fastest"):
                _backend.backend(graph, inputs, mode="fastest")
        self.assertTrue(fast._boxed_call)
        self.check(fast(list(inputs))[0], module(x).detach())
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            training = compilers["fw_compiler"](graph, inputs)
        self.assertIn("gradients", str(seen[0].message))
        self.check(training(list(inputs))[0], module(x).detach())

    def test_what_aotautograd_noted_is_taken(self):
        """The graph is not run if all nodes have meta["val"], as from PyTorch 2 on."""
        module, x = mlp(), torch.randn(6, 48)
        graph, inputs = self.graph(module, x)
        run = atunner._program._Shapes(graph)
        with torch.no_grad():
            run.run(*inputs)
        for node, result in run.results.items():
            node.meta["val"] = result
        noted = _graphs._meta_results(graph.graph, inputs)
        want = atunner._program.program_json(graph, [_program.Input("user_input", "")] * 5, inputs)
        with unittest.mock.patch.object(atunner._program, "_Shapes") as shapes:
            got = atunner._program.program_json(
                graph, [_program.Input("user_input", "")] * 5, inputs, returned=noted
            )
        shapes.assert_not_called()
        self.assertEqual(got, want)

    def test_convolutions_are_as_exact_as_pytorch_asks_for(self):
        def precision(on_gpu, **given):
            return _options.conv_precision_of(_options.options_of(None, given), on_gpu)

        before = torch.backends.cudnn.allow_tf32
        self.addCleanup(setattr, torch.backends.cudnn, "allow_tf32", before)
        torch.backends.cudnn.allow_tf32 = True
        self.assertEqual(precision(on_gpu=True), "float32")
        self.assertEqual(precision(on_gpu=True, conv_precision="auto"), "tf32")
        self.assertEqual(precision(on_gpu=False, conv_precision="auto"), "float32")
        torch.backends.cudnn.allow_tf32 = False
        self.assertEqual(precision(on_gpu=True, conv_precision="auto"), "float32")
        self.assertEqual(precision(on_gpu=False, conv_precision="tf32"), "tf32")
        command = _plan_cache.optimize_command("m.json", "plan", GPU, None, True, "tf32")
        self.assertEqual(command[command.index("--conv-precision") + 1], "tf32")

    def test_a_graph_without_plan_is_left_to_pytorch_with_one_warning(self):
        module, x = mlp(), torch.randn(6, 48)
        graph, inputs = self.graph(module, x)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            for _ in range(2):
                fast = _backend.compile_graph(graph, inputs, options={"target_gpu": "TI-99"})
                self.check(fast(*inputs)[0], module(x).detach())
        self.assertEqual(len(seen), 1)
        self.assertIn("TI-99", str(seen[0].message))
        broken = unittest.mock.patch.object(
            _fixed_graph, "write_graph", side_effect=KeyError("bias")
        )
        with broken, self.assertWarnsRegex(UserWarning, "a bug: KeyError: 'bias'"):
            fast = _backend.compile_graph(graph, inputs, options={"target_gpu": GPU})
        self.check(fast(*inputs)[0], module(x).detach())
        options = {"target_gpu": "TI-99", "fallback": False}
        with self.assertRaisesRegex(_backend.BackendError, "TI-99"):
            _backend.compile_graph(graph, inputs, options=options)
        with self.assertRaisesRegex(ValueError, "tune 'never'"):
            _backend.compile_graph(graph, inputs, options={"tune": "never"})
        with self.assertRaisesRegex(ValueError, "no option 'budgt'"):
            _backend.compile_graph(graph, inputs, options={"budgt": "3"})
        with self.assertRaisesRegex(ValueError, "fastest"):
            _backend.compile_graph(graph, inputs, mode="fastest")


if __name__ == "__main__":
    if not has_nvrtc():
        print("skipped: NVRTC is not installed")
        sys.exit(77)
    unittest.main()
