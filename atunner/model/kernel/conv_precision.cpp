#include "atunner/model/kernel/conv_precision.h"

#include <string>

namespace atunner {
namespace {

constexpr std::string_view kPrecisionAttribute = "conv_precision";

}  // namespace

std::string_view Name(ConvPrecision precision) {
  return precision == ConvPrecision::kTf32 ? "tf32" : "float32";
}

std::optional<ConvPrecision> ParseConvPrecision(std::string_view name) {
  for (const ConvPrecision each : {ConvPrecision::kFloat32, ConvPrecision::kTf32}) {
    if (Name(each) == name) return each;
  }
  return std::nullopt;
}

ConvPrecision ConvPrecisionOf(const KernelSpec& spec) {
  const auto found = spec.attributes.find(kPrecisionAttribute);
  if (found == spec.attributes.end()) return ConvPrecision::kFloat32;
  return ParseConvPrecision(ToString(found->second)).value_or(ConvPrecision::kFloat32);
}

void SetConvPrecision(KernelSpec& spec, ConvPrecision precision) {
  if (precision == ConvPrecision::kFloat32)
    spec.attributes.erase(std::string(kPrecisionAttribute));
  else
    spec.attributes[std::string(kPrecisionAttribute)] = std::string(Name(precision));
}

}  // namespace atunner
