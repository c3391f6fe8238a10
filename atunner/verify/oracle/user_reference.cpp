#include "atunner/verify/oracle/user_reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <utility>

#include "atunner/verify/oracle/given_baseline.h"

namespace atunner {
namespace {

/// judge.cu: an element that the kernel left unwritten.
constexpr uint64_t kLeftUnwritten = 0x7ff8a70000000001ull;
/// Relative difference of the two results beyond which they are not of one computation. A float32
/// kernel that loses more than a hundredth of its result to roundings on ordinary inputs, or a
/// 16-bit one that loses a quarter, is no measure of others either.
constexpr double kMostDifference = 0.01;
constexpr double kMostDifferenceIn16Bits = 0.25;

bool Keeps(double given) { return std::bit_cast<uint64_t>(given) == kLeftUnwritten; }

/// ‖shadow - given‖ / ‖given‖ over the finite elements.
double Difference(std::span<const double> given, std::span<const double> shadow) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < given.size(); ++i) {
    if (!std::isfinite(given[i]) || !std::isfinite(shadow[i])) continue;
    difference += (shadow[i] - given[i]) * (shadow[i] - given[i]);
    size += given[i] * given[i];
  }
  return size > 0 ? std::sqrt(difference / size) : difference > 0 ? 1.0 : 0.0;
}

}  // namespace

Result<std::unique_ptr<UserReference>> UserReference::Make(const OracleContext& context) {
  std::unique_ptr<UserReference> made(new UserReference(context));
  made->carries_floats_ = std::ranges::any_of(context.spec.args, [](const ArgSpec& arg) {
    return arg.role != Role::kInput && arg.role != Role::kScalar && IsFloat(arg.dtype);
  });
  ATUNNER_TRY(made->given_, KernelAsGiven::Make(context));
  made->adds_by_atomics_ = AddsFloatsByAtomics(made->given().compiled.ptx);
  auto shadow = ShadowRun::Make(context, made->given());
  if (shadow)
    made->shadow_ = *std::move(shadow);
  else
    made->no_shadow_ = shadow.error().ToString();
  return made;
}

bool UserReference::IsExact(const Dims& dims) const {
  const auto found = obstacles_.find(dims);
  return found != obstacles_.end() && found->second.empty();
}

bool UserReference::Repeats() const { return !adds_by_atomics_; }

std::string UserReference::Describe(const Dims& dims) const {
  if (IsExact(dims)) return "the kernel as given, carried in float64";
  const auto found = obstacles_.find(dims);
  if (!carries_floats_) return "the kernel as given";
  const std::string& why = found == obstacles_.end() ? no_shadow_ : found->second;
  return "the kernel as given, with its own spread" + (why.empty() ? "" : " (" + why + ")");
}

Result<UserReference::Results> UserReference::RunShadow(const TaskBuffers& buffers) {
  if (!shadow_) {
    obstacles_[buffers.dims()] = no_shadow_;
    return Results{};
  }
  const auto known = obstacles_.find(buffers.dims());
  if (known != obstacles_.end() && !known->second.empty()) return Results{};
  ATUNNER_TRY(const bool fits, shadow_->Fits(buffers));
  if (!fits) {
    obstacles_[buffers.dims()] = "carrying it in float64 would take too much memory";
    return Results{};
  }
  auto results = shadow_->Run(buffers);
  if (results) return results;
  obstacles_[buffers.dims()] = results.error().ToString();
  return Results{};
}

Status UserReference::ComputePart(const TaskBuffers& buffers, const RangeOf& wide, int64_t part) {
  // First, because the kernel as given overwrites in-out tensors.
  ATUNNER_TRY(const Results results, RunShadow(buffers));
  ATUNNER_RETURN_IF_ERROR(given_->ComputePart(buffers, wide, part));
  return results.empty() ? Status{} : Replace(buffers, wide, results);
}

Status UserReference::Replace(const TaskBuffers& buffers, const RangeOf& wide,
                              const Results& results) {
  std::map<std::string, std::vector<double>> merged;
  bool close = true;
  for (const auto& [name, shadow] : results) {
    std::vector<double>& values = merged[name];
    values.resize(shadow.size());
    ATUNNER_RETURN_IF_ERROR(
        context_.device.CopyOut(std::as_writable_bytes(std::span(values)), wide(name)->address));
    const bool narrow = SizeOf(buffers.Find(name)->spec->dtype) <= 2;
    close &= Difference(values, shadow) <= (narrow ? kMostDifferenceIn16Bits : kMostDifference);
    for (size_t i = 0; i < values.size(); ++i) {
      // A number of the kernel's stays where the shadow has none.
      const bool lost = !std::isfinite(shadow[i]) && std::isfinite(values[i]);
      if (!Keeps(values[i]) && !lost) values[i] = shadow[i];
    }
  }
  const char* why = close ? "" : "carried in float64 it is another function";
  if (!obstacles_.try_emplace(buffers.dims(), why).first->second.empty()) return {};
  for (const auto& [name, values] : merged) {
    ATUNNER_RETURN_IF_ERROR(
        context_.device.CopyIn(wide(name)->address, std::as_bytes(std::span(values))));
  }
  return {};
}

}  // namespace atunner
