#include "atunner/verify/budget/perturbed_run.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>

#include "atunner/base/random.h"

namespace atunner {
namespace {

using graph::StepRounding;

/// Versions of a value: two with different random roundings, and the baseline's own, which
/// data-dependent decisions read.
constexpr size_t kFirstRounding = 0;
constexpr size_t kSecondRounding = 1;
constexpr size_t kUnperturbed = 2;
constexpr size_t kVersions = 3;

DeviceAddress AddressIn(const KernelArg& arg) {
  DeviceAddress address = 0;
  std::memcpy(&address, arg.data(), sizeof address);
  return address;
}

/// Products and partial sums have more digits than 16-bit operands: a 16-bit value may be moved as
/// a result, but not as a term of a sum.
bool IsTerm(DType stored) { return stored == DType::kFloat32 || stored == DType::kFloat64; }
bool CanMove(DType stored) {
  return IsTerm(stored) || stored == DType::kFloat16 || stored == DType::kBFloat16;
}

class Run {
 public:
  Run(const PerturbedTask& task, uint64_t seed) : task_(task), seed_(seed) {}

  /// Each version gets its own workspaces; all share the tensors.
  Status Bind(const RangeOf& tensors) {
    const AddressOf address = [&](const std::string& name) -> std::optional<DeviceAddress> {
      const auto range = tensors(name);
      if (!range) return std::nullopt;
      bytes_[range->address] = range->bytes;
      return range->address;
    };
    keeps_unperturbed_ = task_.decisions != DecisionSource::kOwn && DecidesByValues();
    for (size_t version = 0; version < (keeps_unperturbed_ ? kVersions : kUnperturbed); ++version) {
      ATUNNER_TRY(plans_[version],
                  BindPlan(task_.device, task_.plan, task_.spec, task_.buffers, address));
      for (const auto& workspace : plans_[version].workspaces)
        bytes_[workspace->address()] = workspace->bytes();
    }
    return {};
  }

  Status Step(size_t step) {
    if (keeps_unperturbed_)
      ATUNNER_RETURN_IF_ERROR(Launch(step, plans_[kUnperturbed].steps[step].args));
    const StepRounding& rounding = task_.steps[step];
    const ArgBinding& result = task_.plan.steps[step].args[rounding.operands.size()];
    const bool kept = InWorkspace(result.kind);
    // The first rounding is written last, so that outputs hold it.
    for (const size_t version : {kSecondRounding, kFirstRounding}) {
      if (version == kSecondRounding && !(kept && IsComputedTwice(result.name))) continue;
      std::vector<std::unique_ptr<Buffer>> copies;
      ATUNNER_TRY(const std::vector<KernelArg> args, ArgsOf(step, version, copies));
      ATUNNER_RETURN_IF_ERROR(Launch(step, args));
      if (!kept || !rounding.rounds || !CanMove(rounding.stored)) continue;
      const DeviceAddress to = AddressIn(args[rounding.operands.size()]);
      if (task_.decisions == DecisionSource::kBaseline) {
        ATUNNER_RETURN_IF_ERROR(Move(to, rounding.stored, Seed(step, 128 + version)));
      } else {
        ATUNNER_RETURN_IF_ERROR(task_.kernels.Shift(
            to, rounding.stored, bytes_.at(to) / SizeOf(rounding.stored), Seed(step, 128)));
      }
    }
    return {};
  }

 private:
  /// True if any step decides by a computed value.
  bool DecidesByValues() const {
    for (size_t step = 0; step < task_.steps.size(); ++step) {
      for (size_t i = 0; i < task_.steps[step].operands.size(); ++i) {
        const bool computed = InWorkspace(task_.plan.steps[step].args[i].kind);
        if (computed && task_.steps[step].operands[i].reading == StepRounding::Reading::kAsIs)
          return true;
      }
    }
    return false;
  }

  bool IsComputedTwice(const std::string& workspace) const {
    return task_.decisions == DecisionSource::kBaseline && Readers(workspace) > 1;
  }

  /// Number of steps that read a workspace.
  int64_t Readers(const std::string& workspace) const {
    int64_t readers = 0;
    for (size_t step = 0; step < task_.steps.size(); ++step) {
      const auto& args = task_.plan.steps[step].args;
      const auto end = args.begin() + static_cast<int64_t>(task_.steps[step].operands.size());
      readers += std::any_of(args.begin(), end, [&](const ArgBinding& arg) {
        return InWorkspace(arg.kind) && arg.name == workspace;
      });
    }
    return readers;
  }

  uint64_t Seed(size_t step, size_t what) const { return Mix64(seed_ ^ Mix64(step * 256 + what)); }

  /// Arguments of a step. Both roundings read the same operands and round them differently.
  Result<std::vector<KernelArg>> ArgsOf(size_t step, size_t version,
                                        std::vector<std::unique_ptr<Buffer>>& copies) {
    std::vector<KernelArg> args = plans_[version].steps[step].args;
    const StepRounding& rounding = task_.steps[step];
    for (size_t i = 0; i < rounding.operands.size(); ++i) {
      const auto& [reading, stored] = rounding.operands[i];
      const ArgBinding& binding = task_.plan.steps[step].args[i];
      const bool twice = InWorkspace(binding.kind) && IsComputedTwice(binding.name);
      const bool as_is = keeps_unperturbed_ && reading == StepRounding::Reading::kAsIs;
      const size_t either = twice ? Seed(step, i) % 2 : kFirstRounding;
      const size_t source = as_is ? kUnperturbed : either;
      args[i] = plans_[source].steps[step].args[i];
      if (reading != StepRounding::Reading::kTerms || !IsTerm(stored)) continue;
      const uint64_t bytes = bytes_.at(AddressIn(args[i]));
      ATUNNER_TRY(std::unique_ptr<Buffer> copy, task_.device.Allocate(bytes));
      ATUNNER_RETURN_IF_ERROR(task_.device.CopyWithin(copy->address(), AddressIn(args[i]), bytes));
      args[i] = KernelArg::Address(copy->address());
      bytes_[copy->address()] = bytes;
      ATUNNER_RETURN_IF_ERROR(Move(copy->address(), stored, Seed(step, 32 * (version + 1) + i)));
      copies.push_back(std::move(copy));
    }
    return args;
  }

  Status Move(DeviceAddress address, DType stored, uint64_t seed) {
    return task_.kernels.Nudge(address, stored, bytes_.at(address) / SizeOf(stored), seed);
  }

  Status Launch(size_t step, const std::vector<KernelArg>& args) {
    const BoundStep& bound = plans_[kFirstRounding].steps[step];
    ATUNNER_TRY(
        const LaunchOutcome outcome,
        task_.device.Launch(task_.module, bound.entry, bound.shape, args,
                            {.check_hazards = false, .timeout_seconds = 600, .blocks = {}}));
    if (!outcome.completed())
      return Fail(ErrorCode::kInternal, "the plain kernel failed: " + outcome.message);
    return {};
  }

  const PerturbedTask& task_;
  uint64_t seed_;
  bool keeps_unperturbed_ = false;
  std::array<BoundPlan, kVersions> plans_;
  std::map<DeviceAddress, uint64_t> bytes_;
};

}  // namespace

Status RunPerturbed(const PerturbedTask& task, const RangeOf& tensors, uint64_t seed) {
  Run run(task, seed);
  ATUNNER_RETURN_IF_ERROR(run.Bind(tensors));
  for (size_t step = 0; step < task.steps.size(); ++step) ATUNNER_RETURN_IF_ERROR(run.Step(step));
  return {};
}

}  // namespace atunner
