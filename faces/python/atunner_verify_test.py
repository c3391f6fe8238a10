"""Known ways in which fusion has broken training: `verify_step` must find each of them, and must
find nothing in the step without it. Steps are traced as `train_step` traces them; the graph is run
by PyTorch, without kernels. `atunner_train_test.py` verifies steps as plans. Exit code 77 where
there is no PyTorch."""

import contextlib
import os
import sys
import unittest
from unittest import mock

try:
    import torch
except ImportError:
    print("skipped: this Python has no PyTorch")
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import atunner
from atunner import _optimizers, _step_function
from atunner._train_step import TrainStep

nn, F = torch.nn, torch.nn.functional
aten = torch.ops.aten


class _Graph:
    """A traced step in place of a plan: inputs that it changes are changed in place."""

    def __init__(self, traced):
        self.traced = traced
        given = [each for each, _ in traced.weights]
        self.names = [each.qualified_name for each in given if each.kind != "tensor_constant"]
        self.constants = [t for each, t in traced.weights if each.kind == "tensor_constant"]

    def run(self, tensors):
        passed = [tensor.detach().clone() for tensor in tensors]
        results = []
        with torch.no_grad():
            values = self.traced.module(*passed, *self.constants)
        for output, value in zip(self.traced.outputs, values):
            if output.kind.endswith("_mutation"):
                tensors[self.names.index(output.qualified_name)].copy_(value)
            else:
                results.append(value)
        return results


def graphs(change=None):
    """TrainStep whose plans are traced graphs, behind `change(traced)`."""

    class Traced(TrainStep):
        def _plan(self, traced, device):
            if change is not None:
                change(traced)
                traced.module.graph.lint()
                traced.module.recompile()
            return _Graph(traced)

    return Traced


def nodes(traced, target):
    return [node for node in traced.module.graph.nodes if str(node.target).startswith(target)]


def result(traced, kind, name):
    """The node that is the result of this kind and name, and the graph's output node."""
    at = next(i for i, o in enumerate(traced.outputs) if o == (kind, name))
    out = next(node for node in traced.module.graph.nodes if node.op == "output")
    return out.args[0][at], out, at


def replace_result(traced, kind, name, node):
    _, out, at = result(traced, kind, name)
    out.args = (tuple(node if i == at else each for i, each in enumerate(out.args[0])),)


def placeholder(traced, name):
    at = [given.qualified_name for given, _ in traced.weights].index(name)
    return [node for node in traced.module.graph.nodes if node.op == "placeholder"][at]


def viewed(node):
    """What is read through transpositions."""
    while node.op == "call_function" and str(node.target).startswith(("aten.t.", "aten.detach")):
        node = node.args[0]
    return node


def mlp():
    return nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 4))


def vectors(*_):
    return torch.randn(6, 5), torch.randint(0, 4, (6,))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.head = nn.Embedding(11, 8), nn.Linear(8, 11, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens):
        return self.head(self.tokens(tokens)).flatten(0, 1)


class Infinite(nn.Module):
    """Its gradients are infinite in every type."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(5, 4)

    def forward(self, x):
        return self.linear(x) * float("inf")


class Largest(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 8)

    def forward(self, x):
        return self.linear(x).amax(-1)


def sgd(model, **given):
    return torch.optim.SGD(model.parameters(), lr=0.1, **given)


def adamw(model, **given):
    return torch.optim.AdamW(model.parameters(), lr=0.1, **given)


SCALING = atunner.LossScaling(init_scale=1024.0)


class KnownFaultsTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)

    def report(self, model, optimizer, batch, loss=F.cross_entropy, change=None, **options):
        return atunner.verify_step(
            model,
            loss,
            optimizer,
            batch,
            steps=2,
            free_run=False,
            make=graphs(change),
            **options,
        )

    def found(self, named, model, optimizer, batch, patch=None, change=None, **options):
        """The step is right, and wrong with the fault: in the tensors whose names begin so."""
        right = self.report(model, optimizer, batch, **options)
        self.assertTrue(right.passed, right.text())
        with patch or contextlib.nullcontext():
            wrong = self.report(model, optimizer, batch, change=change, **options)
        self.assertFalse(wrong.passed, wrong.text())
        names = [each.name for each in wrong.tensors if not each.passed]
        self.assertTrue(all(name.startswith(named) for name in names), names)
        return names

    def test_a_mask_that_is_drawn_anew_in_the_backward_pass(self):
        def change(traced):
            (mask,) = nodes(traced, "aten.ge")
            drawn = mask.args[0]
            last = list(mask.users)[-1]
            with traced.module.graph.inserting_before(last):
                again = traced.module.graph.node_copy(drawn, lambda node: node)
                again.args = (*drawn.args[:3], drawn.args[3] + 1)
                fresh = traced.module.graph.call_function(mask.target, (again, mask.args[1]))
            last.replace_input_with(mask, fresh)

        model = nn.Sequential(nn.Linear(5, 7), nn.Dropout(0.5), nn.Linear(7, 4))
        names = self.found("gradient 0.", model, sgd(model), vectors(), change=change)
        self.assertEqual(len(names), 2)

    def test_a_running_mean_that_stays(self):
        name = "1.running_mean"

        def change(traced):
            replace_result(traced, "buffer_mutation", name, placeholder(traced, name))

        model = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4))
        names = self.found("next ", model, sgd(model), vectors(), change=change)
        self.assertEqual(names, [f"next {name}"])

    def test_an_update_in_place_before_the_backward_pass_reads(self):
        """The gradient of the first layer reads the second one's weight, updated already."""

        def change(traced):
            weight = placeholder(traced, "2.weight")
            update = result(traced, "parameter_mutation", "2.weight")[0]
            (product,) = [n for n in nodes(traced, "aten.mm") if viewed(n.args[1]) is weight]
            product.replace_input_with(product.args[1], update)
            sort(traced.module.graph)

        model = mlp()
        self.found("gradient 0.", model, sgd(model), vectors(), change=change)

    def test_a_micro_batch_that_is_dropped(self):
        model = mlp()

        def parts(tensor, count):
            return [tensor.split(tensor.shape[0] // count)[0]] * count

        patch = mock.patch.object(_step_function, "_parts", parts)
        given = dict(patch=patch, micro_batches=2)
        names = self.found(("loss", "gradient "), model, sgd(model), vectors(), **given)
        self.assertIn("loss", names)

    def test_a_sum_over_micro_batches_in_bfloat16(self):
        def change(traced):
            graph = traced.module.graph
            total = result(traced, "gradient_to_parameter", "0.weight")[0]
            with graph.inserting_after(total):
                low = graph.call_function(
                    aten._to_copy.default, (total,), {"dtype": torch.bfloat16}
                )
            with graph.inserting_after(low):
                wide = graph.call_function(aten._to_copy.default, (low,), {"dtype": torch.float32})
            total.replace_all_uses_with(wide, delete_user_cb=lambda user: user is not low)

        model = mlp()
        given = dict(change=change, micro_batches=2)
        names = self.found("gradient ", model, sgd(model), vectors(), **given)
        self.assertEqual(names, ["gradient 0.weight"])

    def test_a_decay_that_is_applied_twice(self):
        model = mlp()
        once = _optimizers.Rule._gradient

        def twice(self, parameter, gradient, decays):
            return once(self, parameter, once(self, parameter, gradient, decays), decays)

        patch = mock.patch.object(_optimizers.Rule, "_gradient", twice)
        self.found("change of ", model, sgd(model, weight_decay=0.01), vectors(), patch)

    def test_a_decay_behind_the_update(self):
        model = mlp()
        update = _optimizers._Adam.update

        def late(self, parameter, gradient, states, scalars):
            decay = self.group["weight_decay"]
            with mock.patch.dict(self.group, weight_decay=0.0):
                after, kept = update(self, parameter, gradient, states, scalars)
            return after * (1 - scalars[0] * decay), kept

        patch = mock.patch.object(_optimizers._Adam, "update", late)
        self.found("change of ", model, adamw(model, weight_decay=0.5), vectors(), patch)

    def test_tied_weights_with_the_gradient_of_one_use(self):
        def change(traced):
            both = result(traced, "gradient_to_parameter", "tokens.weight")[0]
            both.replace_all_uses_with(both.args[0])

        model = Tied()
        batch = torch.randint(0, 11, (2, 6)), torch.randint(0, 11, (12,))
        names = self.found("gradient ", model, sgd(model), batch, change=change)
        self.assertEqual(names, ["gradient tokens.weight"])

    def test_a_norm_of_each_gradient_instead_of_all(self):
        model = mlp()
        whole = _step_function._clipped

        def each(gradients, limit):
            return [whole([gradient], limit)[0] for gradient in gradients]

        patch = mock.patch.object(_step_function, "_clipped", each)
        self.found("change of ", model, sgd(model), vectors(), patch, clip_norm=0.05)

    def test_clipping_in_front_of_unscaling(self):
        model = mlp()
        whole = _step_function._clipped

        def early(gradients, limit):
            return whole(gradients, limit / SCALING.init_scale)

        patch = mock.patch.object(_step_function, "_clipped", early)
        given = dict(clip_norm=0.05, scaling=SCALING)
        self.found("change of ", model, sgd(model), vectors(), patch, **given)

    def test_a_step_with_infinite_gradients_that_is_taken(self):
        model = Infinite()

        def always(gradients):
            return torch.ones((), dtype=torch.bool)

        patch = mock.patch.object(_step_function, "_all_finite", always)
        batch = torch.randn(6, 5), torch.randn(6, 4)
        given = dict(patch=patch, loss=F.mse_loss, scaling=SCALING)
        self.found(("change of ", "next optimizer."), model, adamw(model), batch, **given)

    def test_momentum_that_begins_with_dampening(self):
        model = mlp()
        steps = mock.patch.object(TrainStep, "_steps_of", lambda *_: 1.0)
        optimizer = sgd(model, momentum=0.9, dampening=0.5)
        self.found(("change of ", "next optimizer."), model, optimizer, vectors(), steps)

    def test_bias_corrections_of_the_first_step_in_all(self):
        model = mlp()
        steps = mock.patch.object(TrainStep, "_steps_of", lambda *_: 0.0)
        self.found("change of ", model, adamw(model), vectors(), steps)

    def test_a_rounding_that_is_removed_in_front_of_a_comparison(self):
        """The gradient of amax divides by the count of elements that equal the largest."""

        def change(traced):
            graph = traced.module.graph
            (same,) = nodes(traced, "aten.eq")
            rounded = next(a for a in same.args if "amax" not in str(a.target))
            with graph.inserting_before(same):
                wide = graph.call_function(
                    aten._to_copy.default, (rounded,), {"dtype": torch.float32}
                )
                exact = graph.call_function(aten.mul.Tensor, (wide, 1.0 + 2.0**-12))
            same.replace_input_with(rounded, exact)

        model = Largest()
        batch = torch.randn(32, 16), torch.randn(32)

        def loss(y, want):
            return ((y.float() - want) ** 2).mean()

        given = dict(change=change, loss=loss, autocast=torch.bfloat16)
        self.found(("gradient ", "change of "), model, sgd(model), batch, **given)


def sort(graph):
    """The nodes behind the placeholders in an order in which each stands behind what it reads."""
    last = [node for node in graph.nodes if node.op == "placeholder"][-1]
    waiting = [node for node in graph.nodes if node.op not in ("placeholder", "output")]
    done = {node for node in graph.nodes if node.op == "placeholder"}
    while waiting:
        node = next(n for n in waiting if done.issuperset(n.all_input_nodes))
        if last.next is not node:
            last.append(node)
        last = node
        done.add(node)
        waiting.remove(node)


class FreeRunTest(unittest.TestCase):
    def test_runs_of_their_own_stay_within_the_spread_of_eager(self):
        torch.manual_seed(5)
        model = mlp()
        given = (model, F.cross_entropy, adamw(model), vectors())
        report = atunner.verify_step(*given, steps=20, make=graphs())
        self.assertTrue(report.passed, report.text())
        self.assertEqual(len(report.free_run.ours), 20)
        self.assertLess(report.free_run.ours[-1], report.free_run.ours[0])

        def change(traced):
            value = result(traced, "parameter_mutation", "0.weight")[0]
            with traced.module.graph.inserting_after(value):
                off = traced.module.graph.call_function(aten.mul.Tensor, (value, 1.001))
            replace_result(traced, "parameter_mutation", "0.weight", off)

        report = atunner.verify_step(*given, steps=20, make=graphs(change))
        self.assertFalse(report.free_run.passed)
        self.assertIn("OUTSIDE", report.text())
        self.assertFalse(report.json()["passed"])


if __name__ == "__main__":
    unittest.main()
