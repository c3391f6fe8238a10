"""Execution plans from Python, with real PyTorch, on the virtual libcuda: no GPU. Run by ctest,
which names what it needs: ATUNNER (the program), ATUNNER_RUNTIME, and ATUNNER_LIBCUDA (the virtual
driver). Exit code 77 where there is no PyTorch or no NVRTC."""

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
from atunner import _backend

nn = torch.nn
GPU = "A100"


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
        command = [os.environ["ATUNNER"], "optimize", model, "--target-gpu", GPU, "--virtual"]
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
        forms.define("whole(Tensor query, Tensor key, Tensor value, Tensor? mask, float p, bool c)"
                     " -> Tensor")
        graph = torch.fx.Graph()
        q = graph.placeholder("q")
        flash = graph.call_function(torch.ops.forms.flash.default, (q, q, q, 0.0, True))
        first = graph.call_function(operator.getitem, (flash, 0))
        graph.output((first,))
        operators = SimpleOperators(torch.ops.forms.whole.default)
        with unittest.mock.patch.object(
            _backend, "_ATTENTION", ("forms.flash.default",)
        ), unittest.mock.patch.object(_backend.torch, "ops", operators):
            _backend._join_attention(graph)
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
            got = fast(*inputs)
            self.check(got[0], module(x).detach())
            self.assertIsNone(got[1])
            self.assertEqual(fast.plan.weight_bytes, 0)
            with unittest.mock.patch.object(_backend, "_make_plan") as made:
                again = _backend.compile_graph(graph, inputs, "reduce-overhead", options)
            made.assert_not_called()
            self.check(again(*inputs)[0], module(x).detach())

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
        for name in ("fw_compiler", "bw_compiler"):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                training = compilers[name](graph, inputs)
            self.assertTrue(training._boxed_call)
            self.check(training(list(inputs))[0], module(x).detach())
        batch_norm = torch.ops.aten.native_batch_norm.default
        self.assertIn(batch_norm, compilers["decompositions"])

    def test_what_aotautograd_noted_is_taken(self):
        """The graph is not run if all nodes have meta["val"], as from PyTorch 2 on."""
        module, x = mlp(), torch.randn(6, 48)
        graph, inputs = self.graph(module, x)
        run = atunner._program._Shapes(graph)
        with torch.no_grad():
            run.run(*inputs)
        for node, result in run.results.items():
            node.meta["val"] = result
        noted = _backend._meta_results(graph.graph, inputs)
        want = atunner._program.program_json(graph, [_backend.Input("user_input", "")] * 5, inputs)
        with unittest.mock.patch.object(atunner._program, "_Shapes") as shapes:
            got = atunner._program.program_json(
                graph, [_backend.Input("user_input", "")] * 5, inputs, returned=noted
            )
        shapes.assert_not_called()
        self.assertEqual(got, want)

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
        with self.assertRaisesRegex(ValueError, "no option 'budgt'"):
            _backend.compile_graph(graph, inputs, options={"budgt": "3"})
        with self.assertRaisesRegex(ValueError, "fastest"):
            _backend.compile_graph(graph, inputs, mode="fastest")


if __name__ == "__main__":
    if not has_nvrtc():
        print("skipped: NVRTC is not installed")
        sys.exit(77)
    unittest.main()
