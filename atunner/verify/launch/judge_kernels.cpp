#include "atunner/verify/launch/judge_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "atunner/base/random.h"
#include "atunner/verify/inputs/host_fill.h"
#include "atunner/verify/inputs/input_values.h"
#include "embed/judge_kernels.h"
#include "kernels/judge/judge_arguments.h"

namespace atunner {
namespace {

constexpr uint32_t kCompareBlock = 128;
constexpr uint32_t kCompareGrid = 1024;
constexpr uint32_t kFillBlock = 256;
constexpr double kMostHostFills = 0.25;  // share of the free memory
/// Bytes of a tensor that the virtual GPU draws once for all candidates, and of all such tensors.
constexpr uint64_t kMostDrawnOnce = uint64_t{2} << 20;
constexpr uint64_t kMostDrawnBytes = uint64_t{256} << 20;

/// Partial sums of this many ranges fit into the scratch memory.
constexpr size_t kRangesAtOnce = kCompareGrid * sizeof(judge::Partial) /
                                 (JudgeKernels::kFingerprintBlocks * sizeof(uint64_t));

/// A relative error that no rounding of the result explains: 4 u, at least 1/256.
double BeyondRounding(DType dtype) {
  return IsFloat(dtype) ? std::max(4 * UnitRoundoff(dtype), 0x1p-8) : 0;
}

template <class T>
KernelArg Arg(T value) {
  return KernelArg::Value(std::as_bytes(std::span(&value, 1)));
}

judge::Poison ArgumentOf(const Poison& poison) {
  return {.key = poison.key, .flipped = poison.flipped, .unused = 0};
}

CompareStats StatsOf(const judge::Partial& part) {
  CompareStats stats;
  stats.squared_difference = part.squared_difference;
  stats.squared_reference = part.squared_reference;
  stats.sum_reference = part.sum_reference;
  stats.squared_reference_second_half = part.squared_reference_second_half;
  stats.fourth_difference = part.fourth_difference;
  stats.along_reference = part.along_reference;
  stats.squared_along = part.squared_along;
  stats.worst = part.worst;
  stats.finite = part.finite;
  stats.unwritten = part.unwritten;
  stats.lost_nan = part.lost_nan;
  stats.new_nonfinite = part.new_nonfinite;
  stats.beyond = part.beyond;
  stats.inexact = part.unsure;
  stats.lost_digits = part.lost;
  stats.undetermined = part.undetermined;
  stats.first_bad = part.first_bad;
  return stats;
}

/// Adds up what the blocks of a comparison found.
CompareStats Sum(std::span<const judge::Partial> partials) {
  CompareStats stats;
  for (const judge::Partial& part : partials) stats.AddPart(StatsOf(part));
  return stats;
}

}  // namespace

double CompareStats::RelativeNorm() const {
  if (squared_reference == 0 && squared_difference == 0) return 0.0;
  // Squares overflow long before float64 does; what is kept of an error must be a number.
  const double unit = squared_reference > 0 ? squared_reference
                                            : static_cast<double>(finite) * scale * scale;
  const double ratio = std::sqrt(squared_difference / unit);
  return std::isfinite(ratio) ? ratio : 1e300;
}

double CompareStats::Bias() const {
  return squared_reference > 0 ? along_reference / squared_reference : 0.0;
}

double CompareStats::BiasSamplingError() const {
  return squared_reference > 0 ? std::sqrt(squared_along) / squared_reference : 0.0;
}

double CompareStats::ErringElements() const {
  return fourth_difference > 0 ? squared_difference * squared_difference / fourth_difference : 0.0;
}

void CompareStats::TakeLarger(const CompareStats& other, double times) {
  along_reference = std::max(std::fabs(along_reference), times * std::fabs(other.along_reference));
  inexact = std::max(inexact, static_cast<uint64_t>(times * static_cast<double>(other.inexact)));
  squared_difference = std::max(squared_difference, times * times * other.squared_difference);
  worst = std::max(worst, times * other.worst);
}

void CompareStats::AddPart(const CompareStats& part) {
  squared_difference += part.squared_difference;
  squared_reference += part.squared_reference;
  sum_reference += part.sum_reference;
  squared_reference_second_half += part.squared_reference_second_half;
  fourth_difference += part.fourth_difference;
  along_reference += part.along_reference;
  squared_along += part.squared_along;
  worst = std::max(worst, part.worst);
  finite += part.finite;
  unwritten += part.unwritten;
  lost_nan += part.lost_nan;
  new_nonfinite += part.new_nonfinite;
  beyond += part.beyond;
  inexact += part.inexact;
  lost_digits += part.lost_digits;
  undetermined += part.undetermined;
  first_bad = std::min(first_bad, part.first_bad);
  elements += part.elements;
  scale = part.scale;
}

std::string ArchitectureFor(const Device& device) {
  const std::string arch = device.arch();
  const bool assembles = device.evidence() != Evidence::kPredicted || !arch.starts_with("sm_");
  return assembles ? arch : "compute_" + arch.substr(3);
}

Result<std::unique_ptr<JudgeKernels>> JudgeKernels::Make(Device& device, Compiler& compiler) {
  CompileRequest request;
  request.source.name = "judge.cu";
  request.source.text = fmt::format(
      "{}#define ATUNNER_INPUT_FAMILY(id, name, meaning) id,\nenum Family {{\n{}}};\n{}",
      embed::kJudgeArgumentsH, embed::kInputFamilyDef, embed::kJudgeCu);
  request.entries = {"judge_fill",        "judge_nudge",  "judge_shift", "judge_narrow",
                     "judge_fingerprint", "judge_guards", "judge_mask",  "judge_widen",
                     "judge_note",        "judge_poison", "judge_same",  "judge_confirm",
                     "judge_compare"};
  request.arch = ArchitectureFor(device);
  ATUNNER_TRY(const CompileOutcome outcome, compiler.Compile(request));
  if (!outcome.ok())
    return Fail(ErrorCode::kInternal, "the judge's kernels do not compile: " + outcome.error);
  std::unique_ptr<JudgeKernels> kernels(new JudgeKernels(device));
  ATUNNER_TRY(kernels->module_, device.Load(*outcome.module));
  ATUNNER_TRY(kernels->scratch_, device.Allocate(kCompareGrid * sizeof(judge::Partial)));
  return kernels;
}

Status JudgeKernels::Run(const std::string& entry, uint64_t elements, uint32_t block,
                         std::vector<KernelArg> args, uint32_t grid) {
  // No more blocks than the work needs: on the virtual GPU every block costs time.
  const uint64_t wanted = std::clamp<uint64_t>((elements + block * 4 - 1) / (block * 4), 1, 4096);
  const LaunchShape shape{
      {grid ? grid : static_cast<uint32_t>(wanted), 1, 1}, {block, 1, 1}, {}, 0};
  LaunchOptions options;
  options.check_hazards = false;
  options.timeout_seconds = 600;
  ATUNNER_TRY(const LaunchOutcome outcome, device_.Post(*module_, entry, shape, args, options));
  if (!outcome.completed())
    return Fail(ErrorCode::kInternal,
                "the judge's kernel " + entry + " failed: " + outcome.message);
  return {};
}

Status JudgeKernels::FillTensor(DeviceAddress address, const ArgSpec& arg, uint64_t elements,
                                size_t position, const InputInstance& instance) {
  if (FillsFromHost(arg.fill)) {
    const bool varied = instance.family == InputFamily::kVariedFill && CanVary(arg);
    return varied ? CopyVariedFill(address, arg, elements, Mix64(instance.seed) + position)
                  : CopyHostFill(address, arg, elements);
  }
  judge::Fill fill = FillOf(arg, elements, position, instance);
  fill.data = address;
  if (instance.family == InputFamily::kMined)
    ATUNNER_RETURN_IF_ERROR(AddMined(instance.mined, arg.dtype, fill));
  const uint64_t bytes = elements * SizeOf(arg.dtype);
  const bool again = device_.evidence() == Evidence::kPredicted && bytes <= kMostDrawnOnce;
  return again ? DrawOnce(fill, bytes) : Run("judge_fill", elements, kFillBlock, {Arg(fill)});
}

Status JudgeKernels::DrawOnce(const judge::Fill& fill, uint64_t bytes) {
  judge::Fill anywhere = fill;
  anywhere.data = 0;
  std::string key(sizeof anywhere, '\0');
  std::memcpy(key.data(), &anywhere, sizeof anywhere);
  if (const auto known = drawn_.find(key); known != drawn_.end())
    return device_.CopyIn(fill.data, known->second);
  ATUNNER_RETURN_IF_ERROR(Run("judge_fill", fill.elements, kFillBlock, {Arg(fill)}));
  if (drawn_bytes_ + bytes > kMostDrawnBytes) {
    drawn_.clear();
    drawn_bytes_ = 0;
  }
  std::vector<std::byte> drawn(bytes);
  ATUNNER_RETURN_IF_ERROR(device_.CopyOut(drawn, fill.data));
  drawn_bytes_ += bytes;
  drawn_.emplace(std::move(key), std::move(drawn));
  return {};
}

Status JudgeKernels::AddMined(const MinedValues& values, DType dtype, judge::Fill& fill) {
  const std::vector<uint64_t> bits = MinedBitsFor(values, dtype, fill);
  if (bits.empty()) return {};
  constexpr size_t kMostTables = 256;  // of some hundred words each
  auto found = mined_.find(bits);
  if (found == mined_.end()) {
    if (mined_.size() >= kMostTables) {
      mined_.clear();
      drawn_.clear();
      drawn_bytes_ = 0;
    }
    ATUNNER_TRY(auto table, device_.Allocate(bits.size() * sizeof(uint64_t)));
    ATUNNER_RETURN_IF_ERROR(device_.CopyIn(table->address(), std::as_bytes(std::span(bits))));
    found = mined_.emplace(bits, std::move(table)).first;
  }
  fill.mined = found->second->address();
  fill.mined_count = static_cast<int>(bits.size());
  return {};
}

Status JudgeKernels::Nudge(DeviceAddress address, DType dtype, uint64_t elements, uint64_t seed) {
  return Run(
      "judge_nudge", elements, kFillBlock,
      {KernelArg::Address(address), Arg(static_cast<int32_t>(dtype)), Arg(elements), Arg(seed)});
}

Status JudgeKernels::Shift(DeviceAddress address, DType dtype, uint64_t elements, uint64_t seed) {
  return Run(
      "judge_shift", elements, kFillBlock,
      {KernelArg::Address(address), Arg(static_cast<int32_t>(dtype)), Arg(elements), Arg(seed)});
}

Status JudgeKernels::RecordDecisions(const CompareRequest& request, DeviceAddress fixed) {
  return Run("judge_note", request.elements, kFillBlock,
             {KernelArg::Address(request.data), KernelArg::Address(fixed),
              Arg(static_cast<int32_t>(request.dtype)), KernelArg::Address(request.reference),
              Arg(request.elements), Arg(request.key),
              KernelArg::Address(request.decisions.address), Arg(request.decisions.slots)});
}

Status JudgeKernels::Narrow(DeviceAddress address, DType dtype, uint64_t elements) {
  if (dtype != DType::kFloat64 && dtype != DType::kFloat32) return {};
  return Run("judge_narrow", elements, kFillBlock,
             {KernelArg::Address(address), Arg(static_cast<int32_t>(dtype)), Arg(elements)});
}

namespace {

std::string KeyOfHostFill(const ArgSpec& arg, uint64_t elements) {
  return std::to_string(static_cast<int>(arg.dtype)) + ' ' + std::to_string(elements) + ' ' +
         (arg.fill.kind == Fill::Kind::kGenerator ? 'g' : 'f') + arg.fill.path + arg.fill.digest;
}

}  // namespace

/// All candidates get the same values, so that they are kept like those that they vary, up to a
/// limit: unpacking 64 MiB of a capture and varying them takes a second.
Status JudgeKernels::CopyVariedFill(DeviceAddress address, const ArgSpec& arg, uint64_t elements,
                                    uint64_t seed) {
  constexpr uint64_t kMostKept = uint64_t{1} << 30;  // bytes, with the others
  const std::string key = KeyOfHostFill(arg, elements) + " varied " + std::to_string(seed);
  if (const auto known = host_fills_.find(key); known != host_fills_.end())
    return device_.CopyWithin(address, known->second->address(), known->second->bytes());
  ATUNNER_RETURN_IF_ERROR(CopyHostFill(address, arg, elements));
  std::vector<std::byte> data(elements * SizeOf(arg.dtype));
  ATUNNER_RETURN_IF_ERROR(device_.CopyOut(data, address));
  Vary(arg.dtype, seed, data);
  ATUNNER_RETURN_IF_ERROR(device_.CopyIn(address, data));
  ATUNNER_TRY(const uint64_t free_bytes, device_.FreeBytes());
  const auto room = static_cast<uint64_t>(kMostHostFills * static_cast<double>(free_bytes));
  if (data.size() > room || host_fill_bytes_ + data.size() > kMostKept) return {};
  ATUNNER_TRY(auto kept, device_.Allocate(data.size()));
  ATUNNER_RETURN_IF_ERROR(device_.CopyIn(kept->address(), data));
  host_fill_bytes_ += data.size();
  host_fills_.emplace(key, std::move(kept));
  return {};
}

Status JudgeKernels::CopyHostFill(DeviceAddress address, const ArgSpec& arg, uint64_t elements) {
  const std::string key = KeyOfHostFill(arg, elements);
  auto found = host_fills_.find(key);
  if (found == host_fills_.end()) {
    ATUNNER_TRY(const std::vector<std::byte> data, HostFill(arg, elements));
    ATUNNER_TRY(const uint64_t free_bytes, device_.FreeBytes());
    const auto room = static_cast<uint64_t>(kMostHostFills * static_cast<double>(free_bytes));
    if (data.size() > room) return device_.CopyIn(address, data);
    if (host_fill_bytes_ > room - data.size()) {
      host_fills_.clear();
      host_fill_bytes_ = 0;
    }
    ATUNNER_TRY(auto kept, device_.Allocate(data.size()));
    ATUNNER_RETURN_IF_ERROR(device_.CopyIn(kept->address(), data));
    host_fill_bytes_ += data.size();
    found = host_fills_.emplace(key, std::move(kept)).first;
  }
  return device_.CopyWithin(address, found->second->address(), found->second->bytes());
}

Result<uint64_t> JudgeKernels::Fingerprint(DeviceAddress address, uint64_t bytes) {
  const MemoryRange one[] = {{address, bytes}};
  ATUNNER_TRY(const std::vector<uint64_t> prints, Fingerprints(one));
  return prints[0];
}

Result<std::vector<uint64_t>> JudgeKernels::Fingerprints(std::span<const MemoryRange> ranges) {
  std::vector<uint64_t> prints;
  for (size_t from = 0; from < ranges.size(); from += kRangesAtOnce) {
    const auto some = ranges.subspan(from, std::min(kRangesAtOnce, ranges.size() - from));
    ATUNNER_RETURN_IF_ERROR(FingerprintBatch(some, prints));
  }
  return prints;
}

Status JudgeKernels::FingerprintBatch(std::span<const MemoryRange> ranges,
                                      std::vector<uint64_t>& prints) {
  std::vector<uint32_t> grids;
  uint64_t used = 0;
  for (const auto& [address, bytes] : ranges) {
    grids.push_back(
        static_cast<uint32_t>(std::clamp<uint64_t>(bytes / 4096, 1, kFingerprintBlocks)));
    const DeviceAddress slot = scratch_->address() + used * sizeof(uint64_t);
    ATUNNER_RETURN_IF_ERROR(Run("judge_fingerprint", bytes, 256,
                                {KernelArg::Address(address), Arg(bytes), KernelArg::Address(slot)},
                                grids.back()));
    used += grids.back();
  }
  std::vector<uint64_t> partial(used);
  ATUNNER_RETURN_IF_ERROR(
      device_.CopyOut(std::as_writable_bytes(std::span(partial)), scratch_->address()));
  auto part = partial.begin();
  for (uint32_t grid : grids) {
    prints.push_back(std::accumulate(part, part + grid, uint64_t{0}));
    part += grid;
  }
  return {};
}

Result<std::vector<std::optional<uint64_t>>> JudgeKernels::FirstChanges(
    std::span<const DeviceAddress> zones, uint64_t bytes, uint8_t byte) {
  std::vector<uint64_t> first(zones.size());
  for (size_t from = 0; from < zones.size(); from += std::size(judge::GuardZones{}.at)) {
    judge::GuardZones some{};
    const size_t count = std::min(std::size(some.at), zones.size() - from);
    std::ranges::copy(zones.subspan(from, count), std::begin(some.at));
    ATUNNER_RETURN_IF_ERROR(Run("judge_guards", count, 256,
                                {Arg(some), Arg(bytes), Arg(int32_t{byte}),
                                 KernelArg::Address(scratch_->address() + from * sizeof(uint64_t))},
                                static_cast<uint32_t>(count)));
  }
  ATUNNER_RETURN_IF_ERROR(
      device_.CopyOut(std::as_writable_bytes(std::span(first)), scratch_->address()));
  std::vector<std::optional<uint64_t>> changes;
  for (uint64_t at : first)
    changes.push_back(at == ~uint64_t{0} ? std::nullopt : std::optional(at));
  return changes;
}

Status JudgeKernels::EnqueueFingerprint(TimedDevice& device, DeviceAddress address, uint64_t bytes,
                                        DeviceAddress slot) {
  const KernelArg args[] = {KernelArg::Address(address), Arg(bytes), KernelArg::Address(slot)};
  const LaunchOutcome outcome = device.Enqueue(
      *module_, "judge_fingerprint", {{kFingerprintBlocks, 1, 1}, {256, 1, 1}, {}, 0}, args);
  if (!outcome.completed())
    return Fail(ErrorCode::kInternal, "the judge's fingerprint kernel failed: " + outcome.message);
  return {};
}

Status JudgeKernels::Mask(DeviceAddress reference, uint64_t elements, uint64_t key) {
  return Run("judge_mask", elements, kFillBlock,
             {KernelArg::Address(reference), Arg(elements), Arg(key)});
}

Status JudgeKernels::FillPoison(DeviceAddress address, DType dtype, uint64_t elements,
                                const Poison& poison) {
  return Run("judge_poison", elements, kFillBlock,
             {KernelArg::Address(address), Arg(static_cast<int32_t>(dtype)), Arg(elements),
              Arg(ArgumentOf(poison))});
}

Result<uint64_t> JudgeKernels::Widen(DeviceAddress data, DType dtype, uint64_t elements,
                                     DeviceAddress wide, const std::optional<Poison>& poison) {
  uint64_t suspects = 0;
  ATUNNER_RETURN_IF_ERROR(
      device_.CopyIn(scratch_->address(), std::as_bytes(std::span(&suspects, 1))));
  ATUNNER_RETURN_IF_ERROR(
      Run("judge_widen", elements, kFillBlock,
          {KernelArg::Address(data), Arg(static_cast<int32_t>(dtype)), Arg(elements),
           KernelArg::Address(wide), Arg(int32_t{poison.has_value()}),
           Arg(ArgumentOf(poison.value_or(Poison{}))), KernelArg::Address(scratch_->address())}));
  ATUNNER_RETURN_IF_ERROR(
      device_.CopyOut(std::as_writable_bytes(std::span(&suspects, 1)), scratch_->address()));
  return suspects;
}

Status JudgeKernels::ConfirmUnwritten(DeviceAddress data, DType dtype, uint64_t elements,
                                      DeviceAddress wide, const Poison& poison) {
  return Run("judge_confirm", elements, kFillBlock,
             {KernelArg::Address(data), Arg(static_cast<int32_t>(dtype)), Arg(elements),
              KernelArg::Address(wide), Arg(ArgumentOf(poison))});
}

Result<RunDifference> JudgeKernels::Difference(const TwoRuns& runs) {
  std::array<uint64_t, 3> found = {0, ~uint64_t{0}, 0};
  ATUNNER_RETURN_IF_ERROR(device_.CopyIn(scratch_->address(), std::as_bytes(std::span(found))));
  const judge::TwoRuns of{.first = runs.first,
                          .second = runs.second,
                          .elements = runs.elements,
                          .first_poison = ArgumentOf(runs.first_poison.value_or(Poison{})),
                          .second_poison = ArgumentOf(runs.second_poison.value_or(Poison{})),
                          .dtype = static_cast<int32_t>(runs.dtype),
                          .poisoned = runs.first_poison && runs.second_poison};
  ATUNNER_RETURN_IF_ERROR(Run("judge_same", runs.elements, kFillBlock,
                              {Arg(of), KernelArg::Address(scratch_->address())}));
  ATUNNER_RETURN_IF_ERROR(
      device_.CopyOut(std::as_writable_bytes(std::span(found)), scratch_->address()));
  return RunDifference{.differing = found[0], .first = found[1], .unwritten = found[2]};
}

Result<CompareStats> JudgeKernels::Compare(const CompareRequest& request) {
  const auto grid = static_cast<uint32_t>(
      std::clamp<uint64_t>(request.elements / (kCompareBlock * 4), 1, kCompareGrid));
  const DType reference = request.reference_dtype;
  const bool integers = reference == DType::kInt64 || reference == DType::kUInt64;
  const judge::Comparison comparison{.data = request.data,
                                     .reference = request.reference,
                                     .elements = request.elements,
                                     .key = request.key,
                                     .choices = request.decisions.address,
                                     .partial = scratch_->address(),
                                     .first = request.first,
                                     .total = std::max(request.total, request.elements),
                                     .poison = ArgumentOf(request.poison.value_or(Poison{})),
                                     .scale = request.scale,
                                     .largest = LargestFinite(request.dtype),
                                     .element_bound = request.element_bound,
                                     .rounding = BeyondRounding(request.dtype),
                                     .dtype = static_cast<int32_t>(request.dtype),
                                     .poisoned = request.poison.has_value(),
                                     .choice_slots = request.decisions.slots,
                                     .integers = integers ? static_cast<int32_t>(reference) : 0,
                                     .nan_for_infinite = request.nan_for_infinite,
                                     .unused = 0};
  ATUNNER_RETURN_IF_ERROR(
      Run("judge_compare", request.elements, kCompareBlock, {Arg(comparison)}, grid));
  std::vector<judge::Partial> partials(grid);
  ATUNNER_RETURN_IF_ERROR(
      device_.CopyOut(std::as_writable_bytes(std::span(partials)), scratch_->address()));
  CompareStats stats = Sum(partials);
  if (stats.first_bad != ~uint64_t{0}) stats.first_bad += request.first;
  stats.elements = request.elements;
  stats.scale = request.scale;
  return stats;
}

}  // namespace atunner
