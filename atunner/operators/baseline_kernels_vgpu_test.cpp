// The plain kernels and their float64 twins, run on the virtual GPU, and the references on the CPU,
// against formulas written down here once more in long double, without sharing a line with the
// room.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "atunner/base/random.h"
#include "atunner/compile/shared_compiler_test.h"
#include "atunner/device/profiles.h"
#include "atunner/operators/operator.h"
#include "atunner/verify/launch/task_buffers.h"
#include "atunner/vgpu/virtual_gpu.h"

namespace atunner {
namespace {

using Number = long double;
using Tensor = std::vector<Number>;
using Tensors = std::map<std::string, Tensor>;

size_t At(const KernelSpec& spec, const char* dim) {
  return static_cast<size_t>(spec.dims.at(dim));
}
Number Setting(const KernelSpec& spec, const char* name) {
  return ToDouble(spec.attributes.at(name));
}

Tensor SoftmaxOf(const Tensor& x) {
  Number top = -INFINITY;
  for (Number v : x) top = std::max(top, v);
  Tensor y;
  Number sum = 0;
  for (Number v : x) {
    y.push_back(std::exp(v - top));
    sum += y.back();
  }
  for (Number& v : y) v /= sum;
  return y;
}

/// One row of a matrix.
Tensor RowOf(const Tensor& matrix, size_t row, size_t cols) {
  return {matrix.begin() + static_cast<ptrdiff_t>(row * cols),
          matrix.begin() + static_cast<ptrdiff_t>((row + 1) * cols)};
}

Tensors Softmax(const KernelSpec& spec, const Tensors& in) {
  Tensor y;
  for (size_t r = 0; r < At(spec, "rows"); ++r) {
    const Tensor row = SoftmaxOf(RowOf(in.at("x"), r, At(spec, "cols")));
    y.insert(y.end(), row.begin(), row.end());
  }
  return {{"y", y}};
}

/// The Jacobian y_i (δ_ij - y_j), written out.
Tensors SoftmaxBackward(const KernelSpec& spec, const Tensors& in) {
  const size_t cols = At(spec, "cols");
  Tensor dx;
  for (size_t r = 0; r < At(spec, "rows"); ++r) {
    const Tensor y = RowOf(in.at("y"), r, cols);
    const Tensor dy = RowOf(in.at("dy"), r, cols);
    for (size_t j = 0; j < cols; ++j) {
      Number sum = 0;
      for (size_t i = 0; i < cols; ++i) sum += dy[i] * y[i] * ((i == j ? 1 : 0) - y[j]);
      dx.push_back(sum);
    }
  }
  return {{"dx", dx}};
}

/// (x - mean) / sqrt(E[x²] - mean² + eps): the other formula of the variance.
Tensor Normalised(const Tensor& row, Number eps, Number& deviation) {
  Number sum = 0;
  Number squares = 0;
  for (Number v : row) {
    sum += v;
    squares += v * v;
  }
  const auto n = static_cast<Number>(row.size());
  const Number mean = sum / n;
  deviation = std::sqrt(squares / n - mean * mean + eps);
  Tensor normal;
  for (Number v : row) normal.push_back((v - mean) / deviation);
  return normal;
}

Tensors LayerNorm(const KernelSpec& spec, const Tensors& in) {
  const size_t cols = At(spec, "cols");
  const Number eps = static_cast<float>(Setting(spec, "eps"));
  Tensor y;
  Number deviation = 0;
  for (size_t r = 0; r < At(spec, "rows"); ++r) {
    const Tensor normal = Normalised(RowOf(in.at("x"), r, cols), eps, deviation);
    for (size_t i = 0; i < cols; ++i)
      y.push_back(normal[i] * in.at("weight")[i] + in.at("bias")[i]);
  }
  return {{"y", y}};
}

/// dx by the Jacobian of the normalisation: (δ_ij - 1/n - n_i n_j / n) / deviation.
Tensors LayerNormBackward(const KernelSpec& spec, const Tensors& in) {
  const size_t cols = At(spec, "cols");
  const Number eps = static_cast<float>(Setting(spec, "eps"));
  Tensor dx;
  Tensor dweight(cols);
  Tensor dbias(cols);
  Number deviation = 0;
  for (size_t r = 0; r < At(spec, "rows"); ++r) {
    const Tensor normal = Normalised(RowOf(in.at("x"), r, cols), eps, deviation);
    const Tensor dy = RowOf(in.at("dy"), r, cols);
    for (size_t j = 0; j < cols; ++j) {
      Number sum = 0;
      for (size_t i = 0; i < cols; ++i) {
        const Number jacobian = (i == j ? 1 : 0) -
                                (1 + normal[i] * normal[j]) / static_cast<Number>(cols);
        sum += dy[i] * in.at("weight")[i] * jacobian / deviation;
      }
      dx.push_back(sum);
      dweight[j] += dy[j] * normal[j];
      dbias[j] += dy[j];
    }
  }
  return {{"dx", dx}, {"dweight", dweight}, {"dbias", dbias}};
}

Tensors Matmul(const KernelSpec& spec, const Tensors& in) {
  const size_t k = At(spec, "K");
  const size_t n = At(spec, "N");
  Tensor c;
  for (size_t i = 0; i < At(spec, "M"); ++i) {
    for (size_t j = 0; j < n; ++j) {
      Number sum = 0;
      for (size_t p = 0; p < k; ++p) sum += in.at("a")[i * k + p] * in.at("b")[p * n + j];
      c.push_back(sum);
    }
  }
  return {{"c", c}};
}

/// Scatters every input pixel to the outputs that see it: the loops the other way round.
Tensors Conv2d(const KernelSpec& spec, const Tensors& in) {
  const auto at = [&](const char* name) { return spec.dims.at(name); };
  const auto setting = [&](const char* name) { return static_cast<int64_t>(Setting(spec, name)); };
  Tensor y(static_cast<size_t>(at("N") * at("P") * at("Q") * at("K")));
  for (int64_t n = 0; n < at("N"); ++n)
    for (int64_t h = 0; h < at("H"); ++h)
      for (int64_t w = 0; w < at("W"); ++w)
        for (int64_t r = 0; r < at("R"); ++r)
          for (int64_t s = 0; s < at("S"); ++s) {
            const int64_t down = h + setting("padding") - r * setting("dilation");
            const int64_t right = w + setting("padding") - s * setting("dilation");
            if (down < 0 || right < 0 || down % setting("stride") || right % setting("stride"))
              continue;
            const int64_t p = down / setting("stride");
            const int64_t q = right / setting("stride");
            if (p >= at("P") || q >= at("Q")) continue;
            for (int64_t k = 0; k < at("K"); ++k)
              for (int64_t c = 0; c < at("C"); ++c)
                y[static_cast<size_t>(((n * at("P") + p) * at("Q") + q) * at("K") + k)] +=
                    in.at(
                        "x")[static_cast<size_t>(((n * at("H") + h) * at("W") + w) * at("C") + c)] *
                    in.at(
                        "w")[static_cast<size_t>(((k * at("R") + r) * at("S") + s) * at("C") + c)];
          }
  return {{"y", y}};
}

Tensors Attention(const KernelSpec& spec, const Tensors& in) {
  const size_t length = At(spec, "sequence");
  const size_t dim = At(spec, "dim");
  const Number scale = static_cast<float>(Setting(spec, "scale"));
  Tensor y;
  for (size_t head = 0; head < At(spec, "heads"); ++head) {
    for (size_t row = 0; row < length; ++row) {
      const Tensor q = RowOf(in.at("q"), head * length + row, dim);
      Tensor scores;
      for (size_t key = 0; key < (Truthy(spec.attributes.at("causal")) ? row + 1 : length); ++key) {
        Number score = 0;
        for (size_t d = 0; d < dim; ++d)
          score += q[d] * in.at("k")[(head * length + key) * dim + d];
        scores.push_back(score * scale);
      }
      const Tensor weights = SoftmaxOf(scores);
      for (size_t d = 0; d < dim; ++d) {
        Number sum = 0;
        for (size_t key = 0; key < weights.size(); ++key)
          sum += weights[key] * in.at("v")[(head * length + key) * dim + d];
        y.push_back(sum);
      }
    }
  }
  return {{"y", y}};
}

class BaselineKernels : public testing::Test {
 protected:
  void SetUp() override {
    auto made = MakeSharedCompiler();
    if (!made) GTEST_SKIP() << made.error().ToString();
    compiler_ = *std::move(made);
  }

  /// Runs a plain kernel; with `wide` its outputs are float64.
  std::map<std::string, std::vector<double>> Run(const KernelSpec& spec,
                                                 const RenderedKernel& kernel,
                                                 const TaskBuffers& buffers, bool wide) {
    CompileRequest request{kernel.source, {}, gpu_.arch()};
    for (const LaunchStep& step : kernel.plan.steps) request.entries.push_back(step.entry);
    const CompileOutcome outcome = compiler_->Compile(request).value();
    EXPECT_TRUE(outcome.ok()) << outcome.error;
    if (!outcome.ok()) return {};
    const auto module = gpu_.Load(*outcome.module).value();
    std::map<std::string, std::unique_ptr<Buffer>> outputs;
    for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
      if (!tensor.is_output()) continue;
      const auto bytes = static_cast<uint64_t>(tensor.shape.elements) *
                         (wide ? 8 : SizeOf(tensor.spec->dtype));
      outputs[tensor.spec->name] = gpu_.Allocate(bytes).value();
      EXPECT_TRUE(gpu_.Fill(outputs[tensor.spec->name]->address(), 0xff, bytes));
    }
    const BoundPlan plan = BindPlan(gpu_, kernel.plan, spec, buffers, [&](const std::string& name) {
                             return outputs.contains(name) ? std::optional(outputs[name]->address())
                                                           : std::nullopt;
                           }).value();
    const LaunchOutcome ran = RunPlan(gpu_, *module, plan, {.timeout_seconds = 60, .blocks = {}})
                                  .value();
    EXPECT_TRUE(ran.completed()) << ran.message
                                 << (ran.hazards.empty() ? "" : ran.hazards[0].detail);
    std::map<std::string, std::vector<double>> values;
    for (const auto& [name, memory] : outputs) {
      std::vector<std::byte> raw(memory->bytes());
      EXPECT_TRUE(gpu_.CopyOut(raw, memory->address()));
      const DType dtype = wide ? DType::kFloat64 : buffers.Find(name)->spec->dtype;
      for (size_t i = 0; i < raw.size() / SizeOf(dtype); ++i)
        values[name].push_back(LoadElement(dtype, raw.data(), i));
    }
    return values;
  }

  /// Largest error relative to the element and the rms of all.
  static double Worst(const std::vector<double>& got, const Tensor& want) {
    EXPECT_EQ(got.size(), want.size());
    Number squares = 0;
    for (Number v : want) squares += v * v;
    const Number rms = std::sqrt(squares / static_cast<Number>(want.size()));
    double worst = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      const auto error = static_cast<double>(std::fabs(static_cast<Number>(got[i]) - want[i]) /
                                             (std::fabs(want[i]) + rms));
      if (!(error <= worst)) worst = error;
    }
    return worst;
  }

  /// No `formula`: what the reference on the CPU says is right.
  void Check(const char* name, std::vector<std::vector<int64_t>> shapes,
             Tensors (*formula)(const KernelSpec&, const Tensors&), Attributes attributes = {}) {
    const Operator* op = FindOperator(name);
    for (DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      const KernelSpec spec = op->Instantiate({shapes, dtype, attributes}).value();
      SCOPED_TRACE(std::string(name) + " " + std::to_string(shapes[0][0]) + "… in " +
                   std::string(Name(dtype)));
      const TaskBuffers buffers = TaskBuffers::Allocate(gpu_, spec, spec.dims, 0).value();
      Tensors inputs;
      std::vector<std::vector<double>> in;
      std::vector<std::vector<double>> out;
      Random random(23);
      for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
        if (tensor.is_output()) {
          out.emplace_back(static_cast<size_t>(tensor.shape.elements));
          continue;
        }
        std::vector<std::byte> raw(static_cast<size_t>(tensor.shape.bytes));
        in.emplace_back();
        for (size_t i = 0; i < static_cast<size_t>(tensor.shape.elements); ++i) {
          StoreElement(dtype, raw.data(), i, random.Normal());
          in.back().push_back(LoadElement(dtype, raw.data(), i));
        }
        inputs[tensor.spec->name] = {in.back().begin(), in.back().end()};
        ASSERT_TRUE(gpu_.CopyIn(tensor.address, raw));
      }
      ASSERT_TRUE(op->Reference(spec, spec.dims, in, out));
      Tensors want = formula ? formula(spec, inputs) : Tensors{};
      for (size_t i = 0, output = 0; !formula && i < spec.args.size(); ++i) {
        if (spec.args[i].role == Role::kOutput)
          want[spec.args[i].name] = {out[output].begin(), out[output].end()}, ++output;
      }
      const auto wide = Run(spec, op->OracleKernel(spec), buffers, true);
      const auto plain = Run(spec, op->Naive(spec), buffers, false);
      EXPECT_EQ(Run(spec, op->ErrorBaseline(spec), buffers, false), plain);
      ASSERT_EQ(want.size(), out.size());
      size_t index = 0;
      for (const ArgSpec& arg : spec.args) {
        if (arg.role != Role::kOutput) continue;
        SCOPED_TRACE(arg.name);
        EXPECT_LT(Worst(out[index++], want.at(arg.name)), 1e-12) << "the reference on the CPU";
        EXPECT_LT(Worst(wide.at(arg.name), want.at(arg.name)), 1e-12) << "the float64 kernel";
        EXPECT_LT(Worst(plain.at(arg.name), want.at(arg.name)), 40 * UnitRoundoff(dtype))
            << "the plain kernel";
      }
    }
  }

  vgpu::VirtualGpu gpu_{FindProfile("A100").value(), 2};
  std::unique_ptr<Compiler> compiler_;
};

TEST_F(BaselineKernels, Softmax) {
  Check("softmax", {{1, 1}}, Softmax);
  Check("softmax", {{7, 521}}, Softmax);
}

TEST_F(BaselineKernels, SoftmaxBackward) {
  Check("softmax_backward", {{1, 1}}, SoftmaxBackward);
  Check("softmax_backward", {{5, 257}}, SoftmaxBackward);
}

TEST_F(BaselineKernels, LayerNorm) {
  Check("layernorm", {{3, 2}}, LayerNorm);
  Check("layernorm", {{5, 509}}, LayerNorm, {{"eps", 0.25}});
}

TEST_F(BaselineKernels, LayerNormBackward) {
  Check("layernorm_backward", {{1, 3}}, LayerNormBackward);
  Check("layernorm_backward", {{11, 263}}, LayerNormBackward);
}

TEST_F(BaselineKernels, Matmul) {
  Check("matmul", {{1, 1, 1}}, Matmul);
  Check("matmul", {{19, 23, 29}}, Matmul);
  Check("matmul", {{1, 67, 131}}, Matmul);
  Check("matmul", {{70, 67, 31}}, Matmul);
}

TEST_F(BaselineKernels, Conv2d) {
  Check("conv2d", {{1, 1, 1, 1}, {1, 1, 1}}, Conv2d);
  Check("conv2d", {{2, 7, 11, 3}, {5, 3, 2}}, Conv2d);
  Check("conv2d", {{2, 13, 11, 3}, {5, 3, 5}}, Conv2d,
        {{"stride", int64_t{2}}, {"padding", int64_t{3}}, {"dilation", int64_t{2}}});
}

TEST_F(BaselineKernels, Attention) {
  Check("flash_attention", {{1, 1, 1, 1}}, Attention);
  Check("flash_attention", {{1, 2, 137, 17}}, Attention);
  Check("flash_attention", {{1, 1, 3, 251}}, Attention, {{"scale", -0.1}});
}

TEST_F(BaselineKernels, CausalAttention) {
  Check("flash_attention", {{1, 1, 1, 5}}, Attention, {{"causal", true}});
  Check("flash_attention", {{2, 1, 139, 13}}, Attention, {{"causal", true}});
}

TEST_F(BaselineKernels, OfGraphsWhoseProductsShareWhatTheyLoad) {
  Check("batched_matmul", {{2, 13, 70}, {2, 70, 67}}, nullptr);
  Check("batched_matmul", {{2, 1, 9, 5}, {1, 2, 11, 5}}, nullptr, {{"transpose_b", true}});
  Check("attention_gqa", {{2, 4, 67, 9}, {2, 2, 70, 9}}, nullptr, {{"causal", true}});
  Check("linear", {{65, 33}, {17, 33}}, nullptr);
}

// Up to 32 elements are reduced by one thread, more by a block.
TEST_F(BaselineKernels, OfGraphsThatReduceFewOrMany) {
  for (const int64_t depth : {1, 3, 32, 33}) {
    Check("sum", {{5, depth}}, nullptr);
    Check("prod", {{depth, 3}}, nullptr, {{"axis", int64_t{0}}});
    // places that are all 0 have no error to compare
    if (depth > 1) Check("argmax", {{270, depth}}, nullptr);
  }
  Check("mean", {{300, 7}}, nullptr);
  Check("max_pool", {{2, 3, 9, 7}}, nullptr);
}

TEST_F(BaselineKernels, OfGraphsThatSort) {
  Check("topk", {{7, 300}}, nullptr, {{"k", int64_t{5}}});
  Check("topk", {{3, 5}}, nullptr, {{"k", int64_t{5}}});
  Check("sort", {{3, 70}}, nullptr, {{"descending", true}});
}

// Tensor cores add the products of 8-bit floats with limited alignment: next to a product of 2^15,
// products of 1 in the same group of 256 are lost, and those of other groups are not. Next to
// 1.5 · 1.5 = 2.25, two of the smallest products that are kept add up to one digit of 2.25.
TEST_F(BaselineKernels, SumProductsOf8BitFloatsAsTensorCoresDo) {
  const Operator* op = FindOperator("fp8_linear");
  const KernelSpec spec =
      op->Instantiate({{{8, 512}, {8, 512}}, DType::kFloat32, {{"per_tensor", true}}}).value();
  const TaskBuffers buffers = TaskBuffers::Allocate(gpu_, spec, spec.dims, 0).value();
  const auto fill = [&](const std::function<double(bool of_x, size_t depth)>& value) {
    for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
      if (tensor.is_output()) continue;
      std::vector<std::byte> raw(static_cast<size_t>(tensor.shape.bytes));
      const bool scale = tensor.shape.elements == 1;
      for (size_t i = 0; i < static_cast<size_t>(tensor.shape.elements); ++i)
        StoreElement(tensor.spec->dtype, raw.data(), i,
                     scale ? 1 : value(tensor.spec->name == "x", i % 512));
      ASSERT_TRUE(gpu_.CopyIn(tensor.address, raw));
    }
  };
  fill([](bool of_x, size_t depth) { return depth == 3 ? (of_x ? 256 : 128) : 1; });
  EXPECT_THAT(Run(spec, op->OracleKernel(spec), buffers, true).at("y"), testing::Each(32768 + 511));
  EXPECT_THAT(Run(spec, op->ErrorBaseline(spec), buffers, false).at("y"),
              testing::Each(32768 + 256));
  for (const size_t halves : {1, 2}) {
    fill([&](bool of_x, size_t depth) {
      return depth == 0 ? 1.5 : depth > halves ? 0 : std::ldexp(1, of_x ? -6 : -7);
    });
    EXPECT_THAT(Run(spec, op->ErrorBaseline(spec), buffers, false).at("y"),
                testing::Each(halves == 1 ? 2.25 : 2.25 + std::ldexp(1, -12)));
  }
  for (const double least : {std::ldexp(1, -9), 0.0}) {
    fill([&](bool of_x, size_t depth) {
      if (depth == 0) return of_x ? 256 : least;
      return depth == 1 ? std::ldexp(1, -6) : 0;
    });
    EXPECT_THAT(Run(spec, op->ErrorBaseline(spec), buffers, false).at("y"),
                testing::Each(least > 0 ? 0.5 : std::ldexp(1, -12)));
  }
}

}  // namespace
}  // namespace atunner
