#include "atunner/verify/user_reference.h"

#include <bit>
#include <cmath>
#include <span>
#include <utility>

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
  ATUNNER_TRY(made->given_, KernelAsGiven::Make(context));
  auto shadow = ShadowRun::Make(context, made->given());
  if (shadow) made->shadow_ = *std::move(shadow);
  return made;
}

bool UserReference::IsExact(const Dims& dims) const {
  const auto found = trusted_.find(dims);
  return found != trusted_.end() && found->second;
}

std::string UserReference::Describe(const Dims& dims) const {
  return IsExact(dims) ? "the kernel as given, carried in float64"
                       : "the kernel as given, with its own spread";
}

Result<UserReference::Results> UserReference::RunShadow(const TaskBuffers& buffers) {
  const auto known = trusted_.find(buffers.dims());
  if (!shadow_ || (known != trusted_.end() && !known->second)) return Results{};
  ATUNNER_TRY(const bool fits, shadow_->Fits(buffers));
  auto results = fits ? shadow_->Run(buffers) : Results{};
  if (!results) results = Results{};  // the device could not run it: the kernel's own results serve
  if (results->empty()) trusted_[buffers.dims()] = false;
  return results;
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
  if (!trusted_.try_emplace(buffers.dims(), close).first->second) return {};
  for (const auto& [name, values] : merged) {
    ATUNNER_RETURN_IF_ERROR(
        context_.device.CopyIn(wide(name)->address, std::as_bytes(std::span(values))));
  }
  return {};
}

}  // namespace atunner
