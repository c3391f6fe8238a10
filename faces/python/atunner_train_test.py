"""Training steps as plans, with real PyTorch, on the virtual libcuda: no GPU. Run by ctest, which
names what it needs, as for atunner_plan_test.py. Exit code 77 where there is no PyTorch or no
NVRTC.

atunner_verify_test.py has the ways in which fusion has broken training elsewhere; here are steps as
plans. `test_small_models_over_many_steps` takes minutes; ATUNNER_TRAIN_STEPS is its count."""

import copy
import json
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

try:
    import torch
except ImportError:
    print("skipped: this Python has no PyTorch")
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import atunner
from atunner_plan_test import GPU, has_nvrtc

nn, F = torch.nn, torch.nn.functional


def mlp():
    return nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Dropout(0.25), nn.Linear(7, 4))


def batch():
    return torch.randn(6, 5), torch.randint(0, 4, (6,))


class Layer(nn.Module):
    """A layer of GPT (masked, norms in front) or of BERT (norms behind), with tokens and a head."""

    def __init__(self, masked, width=8, tokens=11, length=4):
        super().__init__()
        self.masked, self.tokens = masked, nn.Embedding(tokens, width)
        self.norm, self.last = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.head = nn.Linear(width, tokens, bias=False)
        if masked:
            self.head.weight = self.tokens.weight
        self.register_buffer("hidden", torch.ones(length, length).tril() == 0)

    def attention(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if self.masked:
            scores = scores.masked_fill(self.hidden, float("-inf"))
        return self.out(F.softmax(scores, dim=-1) @ v)

    def forward(self, tokens):
        x = self.tokens(tokens)
        if self.masked:
            x = x + self.attention(self.norm(x))
            x = x + self.down(F.gelu(self.up(self.last(x))))
        else:
            x = self.norm(x + self.attention(x))
            x = self.last(x + self.down(F.gelu(self.up(x))))
        return self.head(x).flatten(0, 1)


class Residual(nn.Module):
    """A block of ResNet with a stem and a head."""

    def __init__(self, channels=4):
        super().__init__()
        convolution = lambda n: nn.Conv2d(n, channels, 3, padding=1, bias=False)  # noqa: E731
        self.stem, self.a, self.b = convolution(3), convolution(channels), convolution(channels)
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(3))
        self.head = nn.Linear(channels, 4)

    def forward(self, x):
        x = F.relu(self.norms[0](self.stem(x)))
        y = F.relu(self.norms[1](self.a(x)))
        return self.head(F.relu(self.norms[2](self.b(y)) + x).mean((2, 3)))


def small_models():
    """name, model, optimizer, batch"""
    for masked in (True, False):
        model = Layer(masked)
        tokens = torch.randint(0, 11, (2, 4)), torch.randint(0, 11, (8,))
        yield "gpt" if masked else "bert", model, torch.optim.AdamW(model.parameters()), tokens
    model = Residual()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    yield "resnet", model, optimizer, (torch.randn(4, 3, 6, 6), torch.randint(0, 4, (4,)))


class TrainStepTest(unittest.TestCase):
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

    def step(self, model, optimizer, **options):
        return atunner.train_step(
            model, F.cross_entropy, optimizer, compile_options={"target_gpu": GPU}, **options
        )

    def close(self, ours, theirs):
        for (name, one), (_, other) in zip(ours.named_parameters(), theirs.named_parameters()):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6, msg=name)

    def test_three_steps_are_pytorchs(self):
        """Dropout's masks differ from step to step, a schedule changes the rate, and the gradients
        are clipped. Afterwards PyTorch goes on from where the plan ended."""
        ours = mlp()
        theirs = copy.deepcopy(ours)
        optimizers = [torch.optim.AdamW(m.parameters(), lr=0.01) for m in (ours, theirs)]
        step = self.step(ours, optimizers[0], clip_norm=0.1, seed=7, keep_gradients=True)
        for i in range(3):
            for optimizer in optimizers:
                optimizer.param_groups[0]["lr"] = 0.01 * (i + 1)
            given = batch()
            value = step(*given)
            optimizers[1].zero_grad()
            with atunner.drawing(torch.tensor(7), torch.tensor(i)):
                want = F.cross_entropy(theirs(given[0]), given[1])
            want.backward()
            torch.testing.assert_close(value, want.detach())
            for one, other in zip(ours.parameters(), theirs.parameters()):
                torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-6)
            nn.utils.clip_grad_norm_(theirs.parameters(), 0.1)
            optimizers[1].step()
            self.close(ours, theirs)
        self.assertEqual(len(step._compiled), 1)
        self.assertEqual(next(iter(step._compiled.values())).plan.extern_count, 0)
        for model, optimizer in zip((ours, theirs), optimizers):
            for parameter in model.parameters():
                parameter.grad = torch.ones_like(parameter)
            optimizer.step()
        self.close(ours, theirs)

    def test_steps_that_are_not_finite_change_nothing(self):
        ours = nn.Sequential(nn.Linear(5, 4))
        theirs = copy.deepcopy(ours)
        optimizers = [
            torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9, dampening=0.5)
            for m in (ours, theirs)
        ]
        scaling = atunner.LossScaling(init_scale=8.0, growth_interval=2)
        step = self.step(ours, optimizers[0], scaling=scaling, micro_batches=2)
        scales = []
        for bad in (False, True, False, False):
            x, labels = batch()
            x = x * float("inf") if bad else x
            step(x, labels)
            scales.append(step.scale)
            if not bad:
                optimizers[1].zero_grad()
                F.cross_entropy(theirs(x), labels).backward()
                optimizers[1].step()
            self.close(ours, theirs)
        self.assertEqual(scales, [8.0, 4.0, 4.0, 8.0])

    def test_convolutions_with_batch_norm(self):
        """Running statistics and their count change, too."""
        layers = [nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)]
        ours = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        theirs = copy.deepcopy(ours)
        optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (ours, theirs)]
        step = self.step(ours, optimizers[0])
        for _ in range(2):
            x, labels = torch.randn(6, 3, 8, 8), torch.randint(0, 4, (6,))
            value = step(x, labels)
            optimizers[1].zero_grad()
            want = F.cross_entropy(theirs(x), labels)
            want.backward()
            optimizers[1].step()
            torch.testing.assert_close(value, want.detach())
            self.close(ours, theirs)
            for one, other in zip(ours.buffers(), theirs.buffers()):
                torch.testing.assert_close(one, other)

    def test_roundings_in_front_of_comparisons_stay(self):
        """The gradient of amax divides by the count of elements that equal the largest. If the
        product is compared before it is rounded to bfloat16, none does, and gradients are
        infinite."""

        class Largest(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(16, 8)

            def forward(self, x):
                return self.linear(x).amax(-1)

        ours = Largest()
        theirs = copy.deepcopy(ours)
        optimizer = torch.optim.SGD(ours.parameters(), lr=0.1)
        step = atunner.train_step(
            ours,
            lambda y, want: ((y.float() - want) ** 2).mean(),
            optimizer,
            compile_options={"target_gpu": GPU},
            keep_gradients=True,
            autocast=torch.bfloat16,
        )
        x, want = torch.randn(32, 16), torch.randn(32)
        step(x, want)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = theirs(x)
        ((y.float() - want) ** 2).mean().backward()
        for one, other in zip(ours.parameters(), theirs.parameters()):
            self.assertTrue(bool(one.grad.isfinite().all()))
            torch.testing.assert_close(one.grad.float(), other.grad, rtol=0.05, atol=0.02)

    def test_attention_of_16_bits_is_one_kernel_and_its_gradient_another(self):
        """The plan keeps no scores; gradients are those of float32 up to roundings. GPUs of Hopper
        have a kernel for the gradient."""
        hopper = unittest.mock.patch.dict(os.environ, ATUNNER_VIRTUAL_CUDA_GPU="H200")
        hopper.start()
        self.addCleanup(hopper.stop)

        class Attends(nn.Module):
            def __init__(self):
                super().__init__()
                self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 4)

            def forward(self, x):
                parts = self.qkv(x).reshape(2, 24, 3, 2, 16).permute(2, 0, 3, 1, 4)
                y = F.scaled_dot_product_attention(*parts.unbind(0), is_causal=True)
                return self.out(y.transpose(1, 2).reshape(2, 24, 32)).mean(1)

        def by_definition(q, k, v, is_causal):
            scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
            hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            return scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v

        ours = Attends()
        theirs = copy.deepcopy(ours)
        ours.bfloat16()
        x, labels = torch.randn(2, 24, 32), torch.randint(0, 4, (2,))
        name = "scaled_dot_product_attention"
        with unittest.mock.patch.object(F, name, by_definition, create=True):
            step = atunner.train_step(
                ours,
                lambda y, want: F.cross_entropy(y.float(), want),
                torch.optim.SGD(ours.parameters(), lr=0.1),
                compile_options={"target_gpu": "H200"},
                keep_gradients=True,
            )
            value = step(x.bfloat16(), labels)
            want = F.cross_entropy(theirs(x), labels)
        want.backward()
        folders = os.listdir(os.path.join(self.plan_folder(), "kernels"))
        families = sorted(each.split("-")[1] for each in folders if "attention" in each)
        self.assertEqual(families, ["attention", "attention_backward"])
        torch.testing.assert_close(value, want.detach(), rtol=0.02, atol=0.02)
        for one, other in zip(ours.parameters(), theirs.parameters()):
            torch.testing.assert_close(one.grad.float(), other.grad, rtol=0.05, atol=0.01)

    def test_labels_of_a_wide_head_of_16_bits(self):
        """Its width is no multiple of 8, and some labels are ignored."""
        ours = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1030))
        theirs = copy.deepcopy(ours)
        ours.bfloat16()
        x, labels = torch.randn(12, 16), torch.randint(0, 1030, (12,))
        labels[3:5] = -100
        step = atunner.train_step(
            ours,
            F.cross_entropy,
            torch.optim.SGD(ours.parameters(), lr=0.1),
            compile_options={"target_gpu": GPU},
            keep_gradients=True,
        )
        value = step(x.bfloat16(), labels)
        want = F.cross_entropy(theirs(x), labels)
        want.backward()
        torch.testing.assert_close(value.float(), want.detach(), rtol=0.02, atol=0.02)
        for one, other in zip(ours.parameters(), theirs.parameters()):
            torch.testing.assert_close(one.grad.float(), other.grad, rtol=0.05, atol=0.004)

    def plan_folder(self):
        """Of the plan that was made last."""
        plans = os.path.join(self.folder.name, "cache", "atunner", "plans")
        return max((os.path.join(plans, each) for each in os.listdir(plans)), key=os.path.getmtime)

    def test_a_users_file_is_predicted_by_batch(self):
        file = os.path.join(self.folder.name, "train.py")
        with open(file, "w") as out:
            out.write(
                "import torch\n"
                "def make_step(batch=4):\n"
                "    model = torch.nn.Linear(8, 3)\n"
                "    optimizer = torch.optim.Adam(model.parameters())\n"
                "    given = torch.randn(batch, 8), torch.zeros(batch).long()\n"
                "    return model, torch.nn.functional.cross_entropy, optimizer, given\n"
                "def wrong():\n"
                "    return torch.nn.Linear(8, 3), 1, 2, 3, {'clip': 1.0}\n"
            )
        python = {"ATUNNER_PYTHON": sys.executable, "PYTHONPATH": os.path.dirname(__file__)}
        command = [os.environ["ATUNNER"], "predict", "--target-gpu", "H200", "--json"]
        with unittest.mock.patch.dict(os.environ, python):
            made = subprocess.run(
                command + ["--training-graph", file, "--batch", "4,16"],
                stdout=subprocess.PIPE,
                text=True,
            )
            failed = subprocess.run(
                command + ["--training-graph", file + ":wrong"],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        rows = json.loads(made.stdout)["batches"]
        self.assertEqual([row["batch"] for row in rows], [4, 16])
        memory = [row["memory"]["peak_bytes"] for row in rows]
        self.assertLess(memory[0], memory[1])
        self.assertEqual(failed.returncode, 2)
        for text in ("the loss is no function", "none of torch.optim", "no tuple", "clip"):
            self.assertIn(text, failed.stderr + failed.stdout)

    def test_small_models_over_many_steps(self):
        steps = int(os.environ.get("ATUNNER_TRAIN_STEPS", "200"))
        for name, model, optimizer, given in small_models():
            with self.subTest(name):
                report = atunner.verify_step(
                    model,
                    F.cross_entropy,
                    optimizer,
                    given,
                    steps=steps,
                    compile_options={"target_gpu": GPU},
                )
                self.assertTrue(report.passed, report.text())
                self.assertEqual(report.externs, 0)

    def test_a_users_file_is_verified(self):
        file = os.path.join(self.folder.name, "verified.py")
        with open(file, "w") as out:
            out.write(
                "import torch\n"
                "def make_step():\n"
                "    model = torch.nn.Linear(5, 4)\n"
                "    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)\n"
                "    given = torch.randn(6, 5), torch.randint(0, 4, (6,))\n"
                "    return model, torch.nn.functional.cross_entropy, optimizer, given\n"
            )
        command = [os.environ["ATUNNER"], "verify", "--training", file, "--target-gpu", GPU]
        python = {"ATUNNER_PYTHON": sys.executable, "PYTHONPATH": os.path.dirname(__file__)}
        with unittest.mock.patch.dict(os.environ, python):
            made = subprocess.run(
                command + ["--steps", "3", "--json"], stdout=subprocess.PIPE, text=True
            )
            failed = subprocess.run(command + ["out"], stderr=subprocess.PIPE, text=True)
        self.assertEqual(made.returncode, 0, made.stdout)
        report = json.loads(made.stdout)
        self.assertTrue(report["passed"])
        self.assertEqual(report["steps"], 3)
        self.assertIn("gradient weight", [each["name"] for each in report["tensors"]])
        self.assertEqual(failed.returncode, 2)
        self.assertIn("either a folder or a training step", failed.stderr)

    def test_what_cannot_be_traced_is_said(self):
        model = mlp()
        for optimizer, text in (
            (torch.optim.Rprop(model.parameters()), "Rprop is not traced"),
            (torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0), "none of the model's"),
        ):
            with self.assertRaisesRegex(atunner.CaptureError, text):
                self.step(model, optimizer)(*batch())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with self.assertRaisesRegex(atunner.CaptureError, "4 equal parts"):
            self.step(model, optimizer, micro_batches=4)(*batch())
        noisy = nn.Sequential(nn.Linear(5, 4), nn.RReLU())
        optimizer = torch.optim.SGD(noisy.parameters(), lr=0.1)
        with self.assertRaisesRegex(atunner.CaptureError, "rrelu_with_noise"):
            self.step(noisy, optimizer)(*batch())


if __name__ == "__main__":
    if not has_nvrtc():
        print("skipped: NVRTC is not installed")
        sys.exit(77)
    unittest.main()
