#include "atunner/operators/joint_operator.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "atunner/operators/graph_operator.h"
#include "atunner/operators/operator_list.h"

namespace atunner {
namespace {

class JointOperator : public Operator {
 public:
  JointOperator(const Operator& special, const Operator* general) : special_(special), general_(general) {
    info_ = special.info();
    if (general == nullptr) return;
    for (const AttributeInfo& attribute : general->info().attributes) {
      if (std::ranges::find(info_.attributes, attribute.name, &AttributeInfo::name) == info_.attributes.end())
        more_.push_back(attribute);
    }
    info_.attributes.insert(info_.attributes.end(), more_.begin(), more_.end());
  }
  const OperatorInfo& info() const override { return info_; }

  // Only the special operator's tasks name this one as their oracle: the others carry their graph.
  Status Reference(const KernelSpec& spec, const Dims& dims, std::span<const std::vector<double>> inputs,
                   std::span<std::vector<double>> outputs) const override {
    return special_.Reference(spec, dims, inputs, outputs);
  }

 protected:
  bool Serves(DType) const override { return true; }  // the two say what they do not
  RenderedKernel Plain(const KernelSpec& spec, PlainForm form) const override {
    return form == PlainForm::kReference   ? special_.OracleKernel(spec)
           : form == PlainForm::kYardstick ? special_.Yardstick(spec)
                                           : special_.Naive(spec);
  }
  Status Describe(const OperatorRequest& request, KernelSpec& spec) const override {
    OperatorRequest narrowed = request;
    for (const AttributeInfo& attribute : more_) {
      const auto given = narrowed.attributes.find(attribute.name);
      const bool usual = given == narrowed.attributes.end() || LooselyEqual(given->second, attribute.fallback);
      if (!usual) return Take(general_->Instantiate(request), spec);
      narrowed.attributes.erase(attribute.name);
    }
    auto made = special_.Instantiate(narrowed);
    if (made || general_ == nullptr || WrongForBoth(request, made.error())) return Take(std::move(made), spec);
    OperatorRequest wider = request;
    if (info_.name == "matmul" && request.shapes.size() == 1 && request.shapes[0].size() == 3) {
      const std::vector<int64_t>& sizes = request.shapes[0];  // M, N, K: no batch of matrices
      wider.shapes = {{sizes[0], sizes[2]}, {sizes[2], sizes[1]}};
    }
    auto general = general_->Instantiate(wider);
    return Take(general ? std::move(general) : std::move(made), spec);
  }

 private:
  /// Settings are; and of shapes only more than the special one takes mean the general one.
  static bool WrongForBoth(const OperatorRequest& request, const Error& error) {
    return error.where.starts_with("--attr") || (error.where.starts_with("--input-shape") && request.shapes.size() < 2);
  }
  static Status Take(Result<KernelSpec> made, KernelSpec& spec) {
    if (!made) return std::unexpected(made.error());
    spec = *std::move(made);
    return {};
  }

  const Operator& special_;
  const Operator* general_;
  OperatorInfo info_;
  std::vector<AttributeInfo> more_;  ///< that only the graph takes
};

/// Classes, the library's operator of the same meaning, and by what name they are also known.
struct JointName {
  std::string_view name, general, alias;
};
constexpr JointName kJointNames[] = {
    {"softmax", "softmax", ""},
    {"softmax_backward", "softmax_backward", ""},
    {"layernorm", "layer_norm", "layer_norm"},
    {"layernorm_backward", "layer_norm_backward", "layer_norm_backward"},
    {"matmul", "batched_matmul", ""},
    {"conv2d", "", ""},  // its images have their channels last
    {"flash_attention", "attention_gqa", "attention"},
};

}  // namespace

const Operator* FindJointOperator(std::string_view name) {
  static const std::vector<std::unique_ptr<JointOperator>> joined = [] {
    std::vector<std::unique_ptr<JointOperator>> all;
    for (const Operator* special : OperatorList()) {
      const auto row = std::ranges::find(kJointNames, special->info().name, &JointName::name);
      const Operator* general =
          row == std::end(kJointNames) || row->general.empty() ? nullptr : FindGraphOperator(row->general);
      all.push_back(std::make_unique<JointOperator>(*special, general));
    }
    return all;
  }();
  const auto row = std::ranges::find(kJointNames, name, &JointName::alias);
  const std::string_view own = row == std::end(kJointNames) || name.empty() ? name : row->name;
  const auto found =
      std::ranges::find(joined, own, [](const auto& each) -> std::string_view { return each->info().name; });
  return found == joined.end() ? nullptr : found->get();
}

}  // namespace atunner
