// Foreign JSON as trial, task, space, plan and budget; what is accepted can be used and written
// again.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "atunner/model/json/json.h"
#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/model/space/parameter_space.h"
#include "atunner/model/trial/trial.h"

namespace atunner {
namespace {

/// Reads, writes, and reads what was written: it must be the same.
template <class T>
Result<T> RoundTrip(const Json& json) {
  Result<T> value = FromJson<T>(json);
  if (!value) return value;
  const std::string once = DumpJson(ToJson(*value));
  const auto again = ParseJson(once);
  ATUNNER_CHECK(again.has_value());
  const Result<T> twice = FromJson<T>(*again);
  // Numbers beyond float64 are written as null, which is no number any more.
  if (twice) ATUNNER_CHECK(DumpJson(ToJson(*twice)) == once);
  return value;
}

void UseSpec(const KernelSpec& spec) {
  (void)spec.ContentDigest();
  (void)FlopCount(spec, spec.dims);
  (void)MinimumBytes(spec, spec.dims);
  for (const ArgSpec& arg : spec.args) {
    (void)ShapeOf(arg, spec, spec.dims);
    if (arg.role == Role::kScalar) (void)ScalarOf(arg, spec, spec.dims);
  }
  if (spec.oracle.kernel) (void)Resolve(spec.oracle.kernel->plan, spec.dims, spec.attributes);
}

void UseSpace(const ParameterSpace& space) {
  const Dims dims = {{"n", 64}};
  (void)space.CartesianSize();
  if (!space.Validate(dims)) return;
  Configuration first;
  for (const Parameter& parameter : space.parameters) first.values.push_back(parameter.values[0]);
  (void)space.Allows(first, dims);
  (void)space.Describe(first);
  (void)space.DigestOfConfiguration(first);
}

}  // namespace

void FuzzModel(std::string_view text) {
  (void)Budget::Parse(text.substr(0, 64));
  const auto json = ParseJson(text);
  if (!json) return;
  if (const auto trial = RoundTrip<Trial>(*json)) (void)trial->ObjectiveNs();
  if (const auto spec = RoundTrip<KernelSpec>(*json)) UseSpec(*spec);
  if (const auto space = RoundTrip<ParameterSpace>(*json)) UseSpace(*space);
  if (const auto plan = RoundTrip<LaunchPlan>(*json)) (void)Resolve(*plan, {{"n", 64}}, {});
  (void)FromJson<CompiledModule>(*json);
}

}  // namespace atunner

#ifdef ATUNNER_FUZZER  // tests call the function above
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  atunner::FuzzModel({reinterpret_cast<const char*>(data), size});
  return 0;
}
#endif
