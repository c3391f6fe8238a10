#include "atunner/operators/joint_operator.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "atunner/operators/graph_operator.h"
#include "atunner/operators/operator_list.h"

namespace atunner {
namespace {

using Shapes = std::vector<std::vector<int64_t>>;

/// The shapes [M, K] and [K, N] for a request that gives the three sizes M, N, K as one shape.
Shapes MatricesOf(const OperatorRequest& request) {
  if (request.shapes.size() != 1 || request.shapes[0].size() != 3) return request.shapes;
  const std::vector<int64_t>& sizes = request.shapes[0];
  const auto given = [&](const char* transposed, int64_t rows,
                         int64_t columns) -> std::vector<int64_t> {
    const auto at = request.attributes.find(transposed);
    if (at != request.attributes.end() && Truthy(at->second)) std::swap(rows, columns);
    return {rows, columns};
  };
  return {given("transpose_a", sizes[0], sizes[2]), given("transpose_b", sizes[2], sizes[1])};
}

/// A class, the library's operator of the same meaning, and another name for both.
struct JointName {
  std::string_view name, general, alias;
  /// Converts the class's shapes to those of the library's operator, if they differ
  Shapes (*general_shapes)(const OperatorRequest&) = nullptr;
};
constexpr JointName kJointNames[] = {
    {"softmax", "softmax", ""},
    {"softmax_backward", "softmax_backward", ""},
    {"layernorm", "layer_norm", "layer_norm"},
    {"layernorm_backward", "layer_norm_backward", "layer_norm_backward"},
    {"matmul", "batched_matmul", "", MatricesOf},
    {"conv2d", "", ""},  // has channels last, unlike the library's convolution
    {"flash_attention", "attention_gqa", "attention"},
};

class JointOperator : public Operator {
 public:
  /// `row` is null for a class without a graph.
  JointOperator(const Operator& special, const JointName* row)
      : special_(special),
        general_(row == nullptr || row->general.empty() ? nullptr
                                                        : FindGraphOperator(row->general)),
        general_shapes_(row == nullptr ? nullptr : row->general_shapes) {
    info_ = special.info();
    if (general_ == nullptr) return;
    for (const AttributeInfo& attribute : general_->info().attributes) {
      if (std::ranges::find(info_.attributes, attribute.name, &AttributeInfo::name) ==
          info_.attributes.end())
        more_.push_back(attribute);
    }
    info_.attributes.insert(info_.attributes.end(), more_.begin(), more_.end());
  }
  const OperatorInfo& info() const override { return info_; }
  bool Serves(DType) const override { return true; }  // the two operators refuse types themselves

  // Tasks of the general operator have a graph as their oracle, so this is called for the special
  // one.
  Status Reference(const KernelSpec& spec, const Dims& dims,
                   std::span<const std::vector<double>> inputs,
                   std::span<std::vector<double>> outputs) const override {
    return special_.Reference(spec, dims, inputs, outputs);
  }

 protected:
  RenderedKernel Baseline(const KernelSpec& spec, BaselineForm form) const override {
    return form == BaselineForm::kReference       ? special_.OracleKernel(spec)
           : form == BaselineForm::kErrorBaseline ? special_.ErrorBaseline(spec)
                                                  : special_.Naive(spec);
  }
  Status Describe(const OperatorRequest& request, KernelSpec& spec) const override {
    OperatorRequest wider = request;
    if (general_shapes_ != nullptr) wider.shapes = general_shapes_(request);
    OperatorRequest narrowed = request;
    for (const AttributeInfo& attribute : more_) {
      const auto given = narrowed.attributes.find(attribute.name);
      const bool usual = given == narrowed.attributes.end() ||
                         LooselyEqual(given->second, attribute.fallback);
      if (!usual) return Take(general_->Instantiate(wider), spec);
      narrowed.attributes.erase(attribute.name);
    }
    auto made = special_.Instantiate(narrowed);
    if (made || general_ == nullptr || IsWrongForBoth(narrowed)) return Take(std::move(made), spec);
    auto general = general_->Instantiate(wider);
    return Take(general ? std::move(general) : std::move(made), spec);
  }

 private:
  /// True if the general operator need not be tried after the special one has refused the request:
  /// attributes that are wrong are wrong for both, and a single shape always means the special one.
  bool IsWrongForBoth(const OperatorRequest& request) const {
    if (!special_.Serves(request.dtype)) return false;
    return request.shapes.size() < 2 || !special_.CompleteAttributes(request.attributes);
  }
  static Status Take(Result<KernelSpec> made, KernelSpec& spec) {
    if (!made) return std::unexpected(made.error());
    spec = *std::move(made);
    return {};
  }

  const Operator& special_;
  const Operator* general_;
  Shapes (*general_shapes_)(const OperatorRequest&);
  OperatorInfo info_;
  std::vector<AttributeInfo> more_;  ///< attributes that only the graph takes
};

}  // namespace

const Operator* FindJointOperator(std::string_view name) {
  static const std::vector<std::unique_ptr<JointOperator>> joined = [] {
    std::vector<std::unique_ptr<JointOperator>> all;
    for (const Operator* special : OperatorList()) {
      const auto row = std::ranges::find(kJointNames, special->info().name, &JointName::name);
      all.push_back(
          std::make_unique<JointOperator>(*special, row == std::end(kJointNames) ? nullptr : row));
    }
    return all;
  }();
  const auto row = std::ranges::find(kJointNames, name, &JointName::alias);
  const std::string_view own = row == std::end(kJointNames) || name.empty() ? name : row->name;
  const auto found = std::ranges::find(
      joined, own, [](const auto& each) -> std::string_view { return each->info().name; });
  return found == joined.end() ? nullptr : found->get();
}

}  // namespace atunner
