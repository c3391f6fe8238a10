// softmax and layernorm, forward and backward: the last axis is a row.
#include <algorithm>
#include <cmath>

#include "atunner/operators/operator_list.h"
#include "embed/operators.h"

namespace atunner {
namespace {

using Tensors = std::span<const std::vector<double>>;
using Outputs = std::span<std::vector<double>>;

ArgSpec Matrix(std::string name, Role role, DType dtype) {
  return {.name = std::move(name),
          .role = role,
          .dtype = dtype,
          .shape = {Expr::MustParse("rows"), Expr::MustParse("cols")},
          .value = {},
          .fill = {}};
}
ArgSpec Row(std::string name, Role role, DType dtype) {
  return {.name = std::move(name),
          .role = role,
          .dtype = dtype,
          .shape = {Expr::MustParse("cols")},
          .value = {},
          .fill = {}};
}

LaunchStep RowStep(std::string entry) {
  LaunchStep step;
  step.entry = std::move(entry);
  step.grid = {Expr::MustParse("min(rows, 1048576)"), 1, 1};
  step.block = {256, 1, 1};
  return step;
}

ArgBinding Long(std::string_view text) {
  return ArgBinding::Scalar(DType::kInt64, Expr::MustParse(text));
}
ArgBinding Epsilon() { return ArgBinding::Scalar(DType::kFloat32, Expr::MustParse("eps")); }

/// The base of row operators: one shape of rank 1 or more, folded into [rows, cols].
class RowOperator : public Operator {
 public:
  const OperatorInfo& info() const override { return info_; }

 protected:
  explicit RowOperator(OperatorInfo info) : info_(std::move(info)) {}

  Status Fold(const OperatorRequest& request, KernelSpec& spec) const {
    if (request.shapes.size() != 1 || request.shapes[0].empty())
      return WrongShape("needs one shape, " + std::to_string(request.shapes.size()) + " given");
    int64_t rows = 1;
    const std::vector<int64_t>& shape = request.shapes[0];
    for (size_t i = 0; i + 1 < shape.size(); ++i) {
      if (__builtin_mul_overflow(rows, shape[i], &rows)) return WrongShape("has too many elements");
    }
    spec.dims = {{"rows", rows}, {"cols", shape.back()}};
    return {};
  }
  /// The launch of the baseline kernel.
  virtual LaunchPlan BaselinePlan(const KernelSpec& spec, bool wide) const = 0;
  RenderedKernel Baseline(const KernelSpec& spec, BaselineForm form) const override {
    const bool wide = form == BaselineForm::kReference;
    return BaselineKernel(embed::kRowsCu, BaselinePlan(spec, wide), spec.compute_dtype, wide);
  }

  OperatorInfo info_;
};

constexpr const char* kRowShape =
    "one shape whose last dimension is the row: request.shapes 8,1024,4096";

class Softmax : public RowOperator {
 public:
  Softmax()
      : RowOperator({"softmax",
                     "y = exp(x - max) / sum(exp(x - max)) along the last axis",
                     kRowShape,
                     {}}) {}

  Status Reference(const KernelSpec&, const Dims& dims, Tensors in, Outputs out) const override {
    const auto cols = static_cast<size_t>(dims.at("cols"));
    for (size_t r = 0; r < in[0].size(); r += cols) {
      double top = -INFINITY;
      for (size_t i = r; i < r + cols; ++i)
        top = std::isnan(in[0][i]) || std::isnan(top) ? NAN : std::max(top, in[0][i]);
      double sum = 0;
      for (size_t i = r; i < r + cols; ++i) sum += out[0][i] = std::exp(in[0][i] - top);
      for (size_t i = r; i < r + cols; ++i) out[0][i] /= sum;
    }
    return {};
  }

 protected:
  Status Describe(const OperatorRequest& request, KernelSpec& spec) const override {
    ATUNNER_RETURN_IF_ERROR(Fold(request, spec));
    spec.args = {Matrix("x", Role::kInput, request.dtype),
                 Matrix("y", Role::kOutput, request.dtype)};
    spec.flops = Expr::MustParse("5 * rows * cols");  // subtract, exp, add, compare, divide
    spec.compute_dtype = request.dtype;
    return {};
  }
  LaunchPlan BaselinePlan(const KernelSpec&, bool) const override {
    LaunchStep step = RowStep("softmax");
    step.args = {ArgBinding::Tensor("x"), ArgBinding::Tensor("y"), Long("rows"), Long("cols")};
    return {.steps = {step}};
  }
};

class SoftmaxBackward : public RowOperator {
 public:
  SoftmaxBackward()
      : RowOperator({"softmax_backward",
                     "dx = y · (dy - sum(y · dy)) along the last axis",
                     kRowShape,
                     {}}) {}

  Status Reference(const KernelSpec&, const Dims& dims, Tensors in, Outputs out) const override {
    const auto cols = static_cast<size_t>(dims.at("cols"));
    for (size_t r = 0; r < in[0].size(); r += cols) {
      double dot = 0;
      for (size_t i = r; i < r + cols; ++i) dot += in[0][i] * in[1][i];
      for (size_t i = r; i < r + cols; ++i) out[0][i] = in[0][i] * (in[1][i] - dot);
    }
    return {};
  }

 protected:
  Status Describe(const OperatorRequest& request, KernelSpec& spec) const override {
    ATUNNER_RETURN_IF_ERROR(Fold(request, spec));
    spec.args = {Matrix("y", Role::kInput, request.dtype),
                 Matrix("dy", Role::kInput, request.dtype),
                 Matrix("dx", Role::kOutput, request.dtype)};
    spec.flops = Expr::MustParse("4 * rows * cols");
    return {};
  }
  LaunchPlan BaselinePlan(const KernelSpec&, bool) const override {
    LaunchStep step = RowStep("softmax_backward");
    step.args = {ArgBinding::Tensor("y"), ArgBinding::Tensor("dy"), ArgBinding::Tensor("dx"),
                 Long("rows"), Long("cols")};
    return {.steps = {step}};
  }
};

const std::vector<AttributeInfo> kNormAttributes = {{"eps", 1e-5, "added to the variance"}};

Status CheckEpsilon(const Attributes& attributes) {
  if (ToDouble(attributes.at("eps")) > 0) return {};
  return Invalid("eps must be a positive number", "request.attributes.eps");
}

struct Moments {
  double mean = 0;
  double scale = 0;
};
Moments MomentsOf(const double* row, size_t cols, double eps) {
  double sum = 0;
  for (size_t i = 0; i < cols; ++i) sum += row[i];
  const double mean = sum / static_cast<double>(cols);
  double squares = 0;
  for (size_t i = 0; i < cols; ++i) squares += (row[i] - mean) * (row[i] - mean);
  // The kernels receive eps as float32.
  return {mean, 1.0 / std::sqrt(squares / static_cast<double>(cols) +
                                static_cast<double>(static_cast<float>(eps)))};
}

class LayerNorm : public RowOperator {
 public:
  LayerNorm()
      : RowOperator({"layernorm",
                     "y = (x - mean) / sqrt(var + eps) · weight + bias along the last axis",
                     kRowShape, kNormAttributes}) {}

  Status Reference(const KernelSpec& spec, const Dims& dims, Tensors in,
                   Outputs out) const override {
    const auto cols = static_cast<size_t>(dims.at("cols"));
    const double eps = ToDouble(spec.attributes.at("eps"));
    for (size_t r = 0; r < in[0].size(); r += cols) {
      const Moments m = MomentsOf(&in[0][r], cols, eps);
      for (size_t i = 0; i < cols; ++i)
        out[0][r + i] = (in[0][r + i] - m.mean) * m.scale * in[1][i] + in[2][i];
    }
    return {};
  }

 protected:
  Status CheckValues(const Attributes& attributes) const override {
    return CheckEpsilon(attributes);
  }
  Status Describe(const OperatorRequest& request, KernelSpec& spec) const override {
    ATUNNER_RETURN_IF_ERROR(Fold(request, spec));
    const DType t = request.dtype;
    spec.args = {Matrix("x", Role::kInput, t), Row("weight", Role::kInput, t),
                 Row("bias", Role::kInput, t), Matrix("y", Role::kOutput, t)};
    spec.flops = Expr::MustParse("7 * rows * cols");
    return {};
  }
  LaunchPlan BaselinePlan(const KernelSpec&, bool) const override {
    LaunchStep step = RowStep("layernorm");
    step.args = {ArgBinding::Tensor("x"),
                 ArgBinding::Tensor("weight"),
                 ArgBinding::Tensor("bias"),
                 ArgBinding::Tensor("y"),
                 Epsilon(),
                 Long("rows"),
                 Long("cols")};
    return {.steps = {step}};
  }
};

class LayerNormBackward : public RowOperator {
 public:
  LayerNormBackward()
      : RowOperator({"layernorm_backward",
                     "gradients of layernorm: x, dy, weight → dx, dweight, dbias", kRowShape,
                     kNormAttributes}) {}

  Status Reference(const KernelSpec& spec, const Dims& dims, Tensors in,
                   Outputs out) const override {
    const auto cols = static_cast<size_t>(dims.at("cols"));
    const double eps = ToDouble(spec.attributes.at("eps"));
    const std::vector<double>& x = in[0];
    const std::vector<double>& dy = in[1];
    const std::vector<double>& weight = in[2];
    std::ranges::fill(out[1], 0.0);
    std::ranges::fill(out[2], 0.0);
    for (size_t r = 0; r < x.size(); r += cols) {
      const Moments m = MomentsOf(&x[r], cols, eps);
      double a = 0;
      double b = 0;
      for (size_t i = 0; i < cols; ++i) {
        const double normal = (x[r + i] - m.mean) * m.scale;
        a += dy[r + i] * weight[i];
        b += dy[r + i] * weight[i] * normal;
        out[1][i] += dy[r + i] * normal;
        out[2][i] += dy[r + i];
      }
      for (size_t i = 0; i < cols; ++i) {
        const double normal = (x[r + i] - m.mean) * m.scale;
        out[0][r + i] = m.scale *
                        (dy[r + i] * weight[i] - (a + normal * b) / static_cast<double>(cols));
      }
    }
    return {};
  }

 protected:
  Status CheckValues(const Attributes& attributes) const override {
    return CheckEpsilon(attributes);
  }
  Status Describe(const OperatorRequest& request, KernelSpec& spec) const override {
    ATUNNER_RETURN_IF_ERROR(Fold(request, spec));
    const DType t = request.dtype;
    spec.args = {Matrix("x", Role::kInput, t),     Matrix("dy", Role::kInput, t),
                 Row("weight", Role::kInput, t),   Matrix("dx", Role::kOutput, t),
                 Row("dweight", Role::kOutput, t), Row("dbias", Role::kOutput, t)};
    spec.flops = Expr::MustParse("15 * rows * cols");
    return {};
  }
  LaunchPlan BaselinePlan(const KernelSpec&, bool wide) const override {
    LaunchPlan plan;
    plan.workspaces = {{"stats", Expr::MustParse(wide ? "rows * 16" : "rows * 8")}};
    LaunchStep input = RowStep("layernorm_backward_input");
    input.args = {ArgBinding::Tensor("x"),
                  ArgBinding::Tensor("dy"),
                  ArgBinding::Tensor("weight"),
                  ArgBinding::Tensor("dx"),
                  Epsilon(),
                  Long("rows"),
                  Long("cols")};
    LaunchStep statistics = RowStep("layernorm_statistics");
    statistics.args = {ArgBinding::Tensor("x"), ArgBinding::Workspace("stats"), Epsilon(),
                       Long("rows"), Long("cols")};
    LaunchStep parameters = RowStep("layernorm_backward_parameters");
    parameters.grid = {Expr::MustParse("ceil_div(cols, 8)"), 1, 1};
    parameters.args = {ArgBinding::Tensor("x"),
                       ArgBinding::Tensor("dy"),
                       ArgBinding::Workspace("stats"),
                       ArgBinding::Tensor("dweight"),
                       ArgBinding::Tensor("dbias"),
                       Long("rows"),
                       Long("cols")};
    plan.steps = {input, statistics, parameters};
    return plan;
  }
};

}  // namespace

const Operator& SoftmaxOperator() {
  static const Softmax instance;
  return instance;
}
const Operator& SoftmaxBackwardOperator() {
  static const SoftmaxBackward instance;
  return instance;
}
const Operator& LayerNormOperator() {
  static const LayerNorm instance;
  return instance;
}
const Operator& LayerNormBackwardOperator() {
  static const LayerNormBackward instance;
  return instance;
}

}  // namespace atunner
