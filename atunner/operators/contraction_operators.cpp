// matmul, conv2d and attention.
#include <algorithm>
#include <cmath>

#include "atunner/operators/operator_list.h"
#include "embed/operators.h"

namespace atunner {
namespace {

using Tensors = std::span<const std::vector<double>>;
using Outputs = std::span<std::vector<double>>;

ArgSpec Tensor(std::string name, Role role, DType dtype, std::initializer_list<const char*> shape) {
  ArgSpec arg{
      .name = std::move(name), .role = role, .dtype = dtype, .shape = {}, .value = {}, .fill = {}};
  for (const char* extent : shape) arg.shape.push_back(Expr::MustParse(extent));
  return arg;
}
ArgBinding Long(std::string_view text) {
  return ArgBinding::Scalar(DType::kInt64, Expr::MustParse(text));
}
ArgBinding Int(std::string_view text) {
  return ArgBinding::Scalar(DType::kInt32, Expr::MustParse(text));
}

class ContractionOperator : public Operator {
 public:
  const OperatorInfo& info() const override { return info_; }

 protected:
  explicit ContractionOperator(OperatorInfo info) : info_(std::move(info)) {}
  /// The launch of the baseline kernel. `tile` is the number of results per thread in each
  /// direction that the kernel tiles.
  virtual LaunchPlan BaselinePlan(const std::string& tile) const = 0;
  /// The naive kernel computes one result per thread. The other forms are not timed, so that they
  /// may be faster.
  RenderedKernel Baseline(const KernelSpec& spec, BaselineForm form) const override {
    const std::string tile = form == BaselineForm::kNaive ? "1" : "4";
    return BaselineKernel("#define TILE " + tile + "\n" + std::string(embed::kContractionsCu),
                          BaselinePlan(tile), spec.compute_dtype, form == BaselineForm::kReference);
  }
  OperatorInfo info_;
};

class Matmul : public ContractionOperator {
 public:
  Matmul()
      : ContractionOperator({"matmul",
                             "c[M, N] = a[M, K] · b[K, N], row-major",
                             "M,N,K: request.shapes 4096,4096,4096",
                             {}}) {}

  Status Reference(const KernelSpec&, const Dims& dims, Tensors in, Outputs out) const override {
    const auto m = static_cast<size_t>(dims.at("M"));
    const auto n = static_cast<size_t>(dims.at("N"));
    const auto k = static_cast<size_t>(dims.at("K"));
    std::ranges::fill(out[0], 0.0);
    for (size_t i = 0; i < m; ++i) {
      for (size_t p = 0; p < k; ++p) {
        const double a = in[0][i * k + p];
        for (size_t j = 0; j < n; ++j) out[0][i * n + j] += a * in[1][p * n + j];
      }
    }
    return {};
  }

 protected:
  Status Describe(const OperatorRequest& request, KernelSpec& spec) const override {
    const auto& shapes = request.shapes;
    if (shapes.size() == 1 && shapes[0].size() == 3) {
      spec.dims = {{"M", shapes[0][0]}, {"N", shapes[0][1]}, {"K", shapes[0][2]}};
    } else if (shapes.size() == 2 && shapes[0].size() == 2 && shapes[1].size() == 2 &&
               shapes[0][1] == shapes[1][0]) {
      spec.dims = {{"M", shapes[0][0]}, {"N", shapes[1][1]}, {"K", shapes[0][1]}};
    } else {
      return WrongShape("needs three numbers M,N,K, or two shapes M,K and K,N");
    }
    const DType t = request.dtype;
    spec.args = {Tensor("a", Role::kInput, t, {"M", "K"}), Tensor("b", Role::kInput, t, {"K", "N"}),
                 Tensor("c", Role::kOutput, t, {"M", "N"})};
    spec.flops = Expr::MustParse("2 * M * N * K");
    spec.tensor_cores = t != DType::kFloat32;
    return {};
  }
  LaunchPlan BaselinePlan(const std::string& tile) const override {
    LaunchStep step;
    step.entry = "matmul";
    step.grid = {Expr::MustParse("ceil_div(N, 16 * " + tile + ")"),
                 Expr::MustParse("ceil_div(M, 16 * " + tile + ")"), 1};
    step.block = {16, 16, 1};
    step.args = {ArgBinding::Tensor("a"),
                 ArgBinding::Tensor("b"),
                 ArgBinding::Tensor("c"),
                 Long("M"),
                 Long("N"),
                 Long("K")};
    return {.steps = {step}};
  }
};

class Conv2d : public ContractionOperator {
 public:
  Conv2d()
      : ContractionOperator(
            {"conv2d",
             "y[N,P,Q,K] = conv(x[N,H,W,C], w[K,R,S,C]), channels last",
             "N,H,W,C and K,R,S: request.shapes 64,56,56,64 64,3,3",
             {{"stride", int64_t{1}, "step of the filter"},
              {"padding", int64_t{0}, "zeros on each side"},
              {"dilation", int64_t{1}, "distance between the elements of the filter"}}}) {}

  Status Reference(const KernelSpec& spec, const Dims& dims, Tensors in,
                   Outputs out) const override {
    const auto at = [&](const char* name) { return dims.at(name); };
    const auto attribute = [&](const char* name) {
      return static_cast<int64_t>(ToDouble(spec.attributes.at(name)));
    };
    const int64_t stride = attribute("stride");
    const int64_t padding = attribute("padding");
    const int64_t dilation = attribute("dilation");
    size_t index = 0;
    for (int64_t n = 0; n < at("N"); ++n) {
      for (int64_t p = 0; p < at("P"); ++p) {
        for (int64_t q = 0; q < at("Q"); ++q) {
          for (int64_t k = 0; k < at("K"); ++k)
            out[0][index++] = Tap(in, dims, n, p * stride - padding, q * stride - padding, k,
                                  dilation);
        }
      }
    }
    return {};
  }

 protected:
  Status CheckValues(const Attributes& attributes) const override {
    const auto least = [&](const char* name) { return ToDouble(attributes.at(name)); };
    if (least("stride") >= 1 && least("dilation") >= 1 && least("padding") >= 0) return {};
    return Invalid("stride and dilation must be at least 1, padding at least 0",
                   "request.attributes of conv2d");
  }
  static double Tap(Tensors in, const Dims& dims, int64_t n, int64_t h0, int64_t w0, int64_t k,
                    int64_t dilation) {
    const int64_t h = dims.at("H");
    const int64_t w = dims.at("W");
    const int64_t c = dims.at("C");
    const int64_t rows = dims.at("R");
    const int64_t columns = dims.at("S");
    double sum = 0;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t s = 0; s < columns; ++s) {
        const int64_t hi = h0 + r * dilation;
        const int64_t wi = w0 + s * dilation;
        if (hi < 0 || hi >= h || wi < 0 || wi >= w) continue;
        const double* x = &in[0][static_cast<size_t>(((n * h + hi) * w + wi) * c)];
        const double* f = &in[1][static_cast<size_t>(((k * rows + r) * columns + s) * c)];
        for (int64_t i = 0; i < c; ++i) sum += x[i] * f[i];
      }
    }
    return sum;
  }

  Status Describe(const OperatorRequest& request, KernelSpec& spec) const override {
    if (request.shapes.size() != 2 || request.shapes[0].size() != 4 ||
        request.shapes[1].size() != 3)
      return WrongShape("needs two shapes");
    const auto& x = request.shapes[0];
    const auto& f = request.shapes[1];
    const auto attribute = [&](const char* name) {
      return static_cast<int64_t>(ToDouble(spec.attributes.at(name)));
    };
    const int64_t stride = attribute("stride");
    const int64_t padding = attribute("padding");
    const int64_t dilation = attribute("dilation");
    const auto extent = [&](int64_t in, int64_t taps) {
      return (in + 2 * padding - dilation * (taps - 1) - 1) / stride + 1;
    };
    const int64_t p = extent(x[1], f[1]);
    const int64_t q = extent(x[2], f[2]);
    if (x[1] + 2 * padding < dilation * (f[1] - 1) + 1 ||
        x[2] + 2 * padding < dilation * (f[2] - 1) + 1)
      return WrongShape("the filter is larger than the padded image");
    spec.dims = {{"N", x[0]}, {"H", x[1]}, {"W", x[2]}, {"C", x[3]}, {"K", f[0]},
                 {"R", f[1]}, {"S", f[2]}, {"P", p},    {"Q", q}};
    const DType t = request.dtype;
    spec.args = {Tensor("x", Role::kInput, t, {"N", "H", "W", "C"}),
                 Tensor("w", Role::kInput, t, {"K", "R", "S", "C"}),
                 Tensor("y", Role::kOutput, t, {"N", "P", "Q", "K"})};
    spec.flops = Expr::MustParse("2 * N * P * Q * K * R * S * C");
    spec.tensor_cores = t != DType::kFloat32;
    return {};
  }
  LaunchPlan BaselinePlan(const std::string& tile) const override {
    LaunchStep step;
    step.entry = "conv2d";
    step.grid = {
        Expr::MustParse("min(ceil_div(N * P * Q * ceil_div(K, " + tile + "), 256), 1048576)"), 1,
        1};
    step.block = {256, 1, 1};
    step.args = {ArgBinding::Tensor("x"), ArgBinding::Tensor("w"), ArgBinding::Tensor("y"),
                 Long("N")};
    for (const char* name :
         {"H", "W", "C", "K", "R", "S", "P", "Q", "stride", "padding", "dilation"})
      step.args.push_back(Int(name));
    return {.steps = {step}};
  }
};

class Attention : public ContractionOperator {
 public:
  Attention()
      : ContractionOperator({"flash_attention",
                             "y = softmax(q · kᵀ · scale) · v for [batch, heads, sequence, dim]",
                             "BATCH,HEADS,SEQUENCE,DIM: request.shapes 4,16,4096,128",
                             {{"causal", false, "a query sees no later keys"},
                              {"scale", 0.0, "0 = 1 / sqrt(dim)"}}}) {}

  Status Reference(const KernelSpec& spec, const Dims& dims, Tensors in,
                   Outputs out) const override {
    const auto heads = static_cast<size_t>(dims.at("heads"));
    const auto length = static_cast<size_t>(dims.at("sequence"));
    const auto dim = static_cast<size_t>(dims.at("dim"));
    const bool causal = Truthy(spec.attributes.at("causal"));
    const double scale = static_cast<float>(ToDouble(spec.attributes.at("scale")));
    std::vector<double> weights;
    for (size_t head = 0; head < heads; ++head) {
      const double* k = &in[1][head * length * dim];
      const double* v = &in[2][head * length * dim];
      for (size_t row = 0; row < length; ++row) {
        const size_t at = (head * length + row) * dim;
        weights.resize(causal ? row + 1 : length);
        SetWeights(&in[0][at], k, dim, scale, weights);
        std::fill_n(&out[0][at], dim, 0.0);
        for (size_t key = 0; key < weights.size(); ++key) {
          for (size_t d = 0; d < dim; ++d) out[0][at + d] += weights[key] * v[key * dim + d];
        }
      }
    }
    return {};
  }

 protected:
  /// The softmax of the scores of one query for the first weights.size() keys.
  static void SetWeights(const double* q, const double* k, size_t dim, double scale,
                         std::vector<double>& weights) {
    double top = -INFINITY;
    for (size_t key = 0; key < weights.size(); ++key) {
      double score = 0;
      for (size_t d = 0; d < dim; ++d) score += q[d] * k[key * dim + d];
      weights[key] = score * scale;
      top = std::isnan(weights[key]) || std::isnan(top) ? NAN : std::max(top, weights[key]);
    }
    double total = 0;
    for (double& weight : weights) total += weight = std::exp(weight - top);
    for (double& weight : weights) weight /= total;
  }
  Status Describe(const OperatorRequest& request, KernelSpec& spec) const override {
    if (request.shapes.size() != 1 || request.shapes[0].size() != 4)
      return WrongShape("needs four numbers");
    const auto& s = request.shapes[0];
    int64_t heads = 0;
    if (__builtin_mul_overflow(s[0], s[1], &heads) || heads > 65535)
      return WrongShape("batch times heads must be at most 65535");
    if (s[3] > 256) return WrongShape("dim must be at most 256");
    spec.dims = {{"heads", heads}, {"sequence", s[2]}, {"dim", s[3]}};
    Value& scale = spec.attributes["scale"];
    if (ToDouble(scale) == 0) scale = 1.0 / std::sqrt(static_cast<double>(s[3]));
    const DType t = request.dtype;
    for (const char* name : {"q", "k", "v"})
      spec.args.push_back(Tensor(name, Role::kInput, t, {"heads", "sequence", "dim"}));
    spec.args.push_back(Tensor("y", Role::kOutput, t, {"heads", "sequence", "dim"}));
    spec.flops = Expr::MustParse("4 * heads * sequence * sequence * dim // (2 if causal else 1)");
    spec.tensor_cores = t != DType::kFloat32;
    return {};
  }
  LaunchPlan BaselinePlan(const std::string& tile) const override {
    LaunchStep step;
    step.entry = "attention";
    step.grid = {Expr::MustParse("ceil_div(sequence, " + tile + ")"), Expr::MustParse("heads"), 1};
    step.block = {128, 1, 1};
    step.args = {ArgBinding::Tensor("q"),
                 ArgBinding::Tensor("k"),
                 ArgBinding::Tensor("v"),
                 ArgBinding::Tensor("y"),
                 Long("heads"),
                 Int("sequence"),
                 Int("dim"),
                 ArgBinding::Scalar(DType::kFloat32, Expr::MustParse("scale")),
                 Int("1 if causal else 0")};
    return {.steps = {step}};
  }
};

}  // namespace

RenderedKernel BaselineKernel(std::string_view source, LaunchPlan plan, DType dtype, bool wide) {
  RenderedKernel kernel;
  const std::string type(CudaName(dtype));
  kernel.source.name = wide ? "reference.cu" : "naive.cu";
  kernel.source.text = std::string("#define T ") + type + "\n#define ACC " +
                       (wide ? "double" : "float") + "\n#define OUT " + (wide ? "double" : type) +
                       "\n#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n" +
                       std::string(embed::kPreludeCuh) + std::string(source);
  kernel.plan = std::move(plan);
  return kernel;
}

const Operator& MatmulOperator() {
  static const Matmul instance;
  return instance;
}
const Operator& Conv2dOperator() {
  static const Conv2d instance;
  return instance;
}
const Operator& AttentionOperator() {
  static const Attention instance;
  return instance;
}

std::vector<const Operator*> OperatorList() {
  return {&SoftmaxOperator(),           &SoftmaxBackwardOperator(), &LayerNormOperator(),
          &LayerNormBackwardOperator(), &MatmulOperator(),          &Conv2dOperator(),
          &AttentionOperator()};
}

}  // namespace atunner
