#include "atunner/model/kernel/accuracy.h"

namespace atunner {
namespace {

constexpr std::string_view kAttribute = "accuracy";
constexpr std::string_view kNames[] = {"strict", "default", "fast"};

}  // namespace

std::string_view Name(Accuracy accuracy) { return kNames[static_cast<size_t>(accuracy)]; }

std::optional<Accuracy> ParseAccuracy(std::string_view name) {
  for (const Accuracy each : {Accuracy::kStrict, Accuracy::kDefault, Accuracy::kFast}) {
    if (Name(each) == name) return each;
  }
  return std::nullopt;
}

Accuracy AccuracyOf(const KernelSpec& spec) {
  const auto found = spec.attributes.find(kAttribute);
  if (found == spec.attributes.end()) return Accuracy::kDefault;
  return ParseAccuracy(ToString(found->second)).value_or(Accuracy::kDefault);
}

void SetAccuracy(KernelSpec& spec, Accuracy accuracy) {
  if (accuracy == Accuracy::kDefault)
    spec.attributes.erase(std::string(kAttribute));
  else
    spec.attributes[std::string(kAttribute)] = std::string(Name(accuracy));
}

}  // namespace atunner
