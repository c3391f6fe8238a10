#include "atunner/model/plan/execution_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "atunner/model/plan/placement.h"

namespace atunner {
namespace {

using Kind = PlanBuffer::Kind;

/// A buffer of more bytes fits into no GPU, and sums of sizes cannot overflow below it.
constexpr uint64_t kMostBytes = uint64_t{1} << 48;
/// Tensors in kernels are accessed with up to 16 bytes at once.
constexpr uint64_t kWeightAlignment = 16;

/// nullopt for an extent below 1 and for more than kMostBytes.
std::optional<uint64_t> BytesOf(const PlanBuffer& buffer) {
  uint64_t bytes = SizeOf(buffer.dtype);
  for (const int64_t extent : buffer.extents) {
    if (extent < 1 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes) ||
        bytes > kMostBytes)
      return std::nullopt;
  }
  return bytes;
}

/// The steps from the first to the last in which each buffer is used; nullopt for unused ones.
std::vector<std::optional<std::pair<size_t, size_t>>> UsesOf(const ExecutionPlan& plan) {
  std::vector<std::optional<std::pair<size_t, size_t>>> uses(plan.buffers.size());
  const auto use = [&](size_t buffer, size_t step) {
    if (!uses[buffer]) uses[buffer] = {step, step};
    uses[buffer]->second = step;
  };
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    for (const PlanTensor& tensor : plan.steps[i].reads) use(tensor.buffer, i);
    for (const PlanTensor& tensor : plan.steps[i].writes) use(tensor.buffer, i);
    for (const size_t scratch : plan.steps[i].scratch) use(scratch, i);
  }
  return uses;
}

/// Follows the steps and knows which buffers have values.
class Checker {
 public:
  explicit Checker(const ExecutionPlan& plan) : plan_(plan) {}

  Status Check() {
    if (plan_.workspace_bytes > kMostBytes || plan_.weight_bytes > kMostBytes)
      return Invalid("the plan's memory is too large");
    for (const PlanBuffer& buffer : plan_.buffers) ATUNNER_RETURN_IF_ERROR(CheckBuffer(buffer));
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      Status checked = CheckStep(plan_.steps[i]);
      if (!checked) {
        checked.error().where = fmt::format("step {}", i);
        return checked;
      }
    }
    for (const size_t output : plan_.BuffersOf(Kind::kOutput)) {
      if (!written_[output])
        return Invalid("no step writes the output '" + plan_.buffers[output].name + "'");
    }
    return CheckOverlaps();
  }

 private:
  Status CheckBuffer(const PlanBuffer& buffer) {
    const std::string called = "the buffer '" + buffer.name + "'";
    if (buffer.name.empty()) return Invalid("a buffer has no name");
    if (!names_.insert(buffer.name).second) return Invalid("two buffers are called " + buffer.name);
    const auto bytes = BytesOf(buffer);
    if (!bytes) return Invalid(called + " has a size that is not possible");
    if (buffer.kind == Kind::kWeight &&
        !Fits(buffer.offset, *bytes, plan_.weight_bytes, kWeightAlignment))
      return Invalid(called + " is not in the file of weights, or not aligned");
    if (buffer.kind == Kind::kIntermediate &&
        !Fits(buffer.offset, *bytes, plan_.workspace_bytes, kPlanAlignment))
      return Invalid(called + " is not in the workspace, or not aligned");
    written_.push_back(buffer.kind == Kind::kInput || buffer.kind == Kind::kWeight);
    return {};
  }

  static bool Fits(uint64_t offset, uint64_t bytes, uint64_t all, uint64_t alignment) {
    return offset % alignment == 0 && offset <= all && bytes <= all - offset;
  }

  Status CheckStep(const PlanStep& step) {
    for (const PlanTensor& tensor : step.reads) ATUNNER_RETURN_IF_ERROR(CheckRead(tensor));
    ATUNNER_RETURN_IF_ERROR(CheckKind(step));
    for (const size_t scratch : step.scratch) {
      if (scratch >= plan_.buffers.size() || plan_.buffers[scratch].kind != Kind::kIntermediate)
        return Invalid("the scratch memory is no intermediate");
    }
    std::set<size_t> written;
    for (const PlanTensor& tensor : step.writes) {
      ATUNNER_RETURN_IF_ERROR(CheckWrite(tensor, step.kind));
      if (!written.insert(tensor.buffer).second)
        return Invalid("'" + plan_.buffers[tensor.buffer].name + "' is written twice");
    }
    return {};
  }

  Status CheckRead(const PlanTensor& tensor) const {
    if (tensor.buffer >= plan_.buffers.size()) return Invalid("it reads an unknown buffer");
    if (!written_[tensor.buffer])
      return Invalid("it reads '" + plan_.buffers[tensor.buffer].name +
                     "', which no step before it has written");
    return {};
  }

  Status CheckWrite(const PlanTensor& tensor, PlanStep::Kind kind) {
    if (tensor.buffer >= plan_.buffers.size()) return Invalid("it writes an unknown buffer");
    const PlanBuffer& buffer = plan_.buffers[tensor.buffer];
    const bool given = buffer.kind == Kind::kInput || buffer.kind == Kind::kWeight;
    if (given && kind == PlanStep::Kind::kExtern)
      return Invalid("it writes '" + buffer.name + "', which only copies and launches may do");
    written_[tensor.buffer] = true;
    return {};
  }

  Status CheckKind(const PlanStep& step) const {
    if (step.kind == PlanStep::Kind::kLaunch && step.kernel >= plan_.kernels.size())
      return Invalid(fmt::format("there is no kernel {}", step.kernel));
    if (step.kind == PlanStep::Kind::kExtern && step.target.empty())
      return Invalid("the operator has no name");
    if (step.scratch.size() > (step.kind == PlanStep::Kind::kLaunch ? 1 : 0))
      return Invalid("it has too much scratch memory");
    if (step.kind != PlanStep::Kind::kCopy) return {};
    if (step.reads.size() != 1 || step.writes.size() != 1 ||
        step.writes[0].buffer >= plan_.buffers.size())
      return Invalid("a copy has one source and one destination");
    if (plan_.buffers[step.reads[0].buffer].Bytes() != plan_.buffers[step.writes[0].buffer].Bytes())
      return Invalid("a copy's source and destination differ in size");
    return {};
  }

  /// Intermediates by the step in which they begin; those that live are kept by their offsets.
  Status CheckOverlaps() const {
    const auto uses = UsesOf(plan_);
    std::vector<std::vector<size_t>> begin(plan_.steps.size()), end(plan_.steps.size());
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      if (plan_.buffers[i].kind != Kind::kIntermediate) continue;
      if (!uses[i]) return Invalid("no step uses '" + plan_.buffers[i].name + "'");
      begin[uses[i]->first].push_back(i);
      end[uses[i]->second].push_back(i);
    }
    std::map<uint64_t, size_t> live;
    for (size_t step = 0; step < plan_.steps.size(); ++step) {
      for (const size_t buffer : begin[step]) ATUNNER_RETURN_IF_ERROR(AddLive(live, buffer));
      for (const size_t buffer : end[step]) live.erase(plan_.buffers[buffer].offset);
    }
    return {};
  }

  Status AddLive(std::map<uint64_t, size_t>& live, size_t buffer) const {
    const PlanBuffer& added = plan_.buffers[buffer];
    const auto after = live.lower_bound(added.offset);
    const auto refuse = [&](size_t other) {
      return Invalid("'" + added.name + "' and '" + plan_.buffers[other].name +
                     "' live at the same time and overlap");
    };
    if (after != live.end() && after->first - added.offset < added.Bytes())
      return refuse(after->second);
    if (after != live.begin()) {
      const auto before = std::prev(after);
      if (added.offset - before->first < plan_.buffers[before->second].Bytes())
        return refuse(before->second);
    }
    live.emplace(added.offset, buffer);
    return {};
  }

  const ExecutionPlan& plan_;
  std::set<std::string_view> names_;
  std::vector<bool> written_;
};

}  // namespace

uint64_t PlanBuffer::Bytes() const { return BytesOf(*this).value_or(0); }

std::string_view Name(PlanBuffer::Kind kind) {
  static constexpr std::string_view kNames[] = {"input", "weight", "intermediate", "output"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view Name(PlanStep::Kind kind) {
  static constexpr std::string_view kNames[] = {"launch", "copy", "extern"};
  return kNames[static_cast<size_t>(kind)];
}

std::vector<size_t> ExecutionPlan::BuffersOf(PlanBuffer::Kind kind) const {
  std::vector<size_t> found;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].kind == kind) found.push_back(i);
  }
  return found;
}

Status PlaceIntermediates(ExecutionPlan& plan) {
  const auto uses = UsesOf(plan);
  const std::vector<size_t> intermediates = plan.BuffersOf(Kind::kIntermediate);
  std::vector<BufferLifetime> lifetimes;
  for (const size_t i : intermediates) {
    if (!uses[i]) return Invalid("no step uses the intermediate '" + plan.buffers[i].name + "'");
    lifetimes.push_back({plan.buffers[i].Bytes(), uses[i]->first, uses[i]->second});
  }
  const Placement placement = PlaceBuffers(lifetimes, kPlanAlignment);
  for (size_t i = 0; i < intermediates.size(); ++i)
    plan.buffers[intermediates[i]].offset = placement.offsets[i];
  plan.workspace_bytes = placement.bytes;
  return {};
}

Status CheckPlan(const ExecutionPlan& plan) { return Checker(plan).Check(); }

}  // namespace atunner
