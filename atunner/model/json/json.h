// The values of the model as JSON, both ways. Used by the store, the messages of runners, manifests
// and every `--json`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "atunner/base/result.h"

namespace atunner {

using Json = nlohmann::ordered_json;

struct ArgSpec;
struct Baseline;
struct Budget;
struct Candidate;
struct CompiledModule;
struct Comparison;
struct ConcretePlan;
struct Configuration;
struct DeviceProfile;
struct Estimate;
struct KernelResources;
struct KernelSpec;
struct LaunchPlan;
struct Measurement;
struct ParameterSpace;
struct RenderedKernel;
struct SourceUnit;
struct Trial;
struct Verdict;

/// Parses text; kInvalidInput with the byte offset. Nesting is limited, so hostile text cannot
/// exhaust the stack.
Result<Json> ParseJson(std::string_view text, std::string_view where = "JSON");

/// Text of any JSON, one line unless `indent` is given. Bytes that are not UTF-8 (a Latin-1 comment
/// in a compiler's message) become U+FFFD, so that this never fails.
std::string DumpJson(const Json& json, int indent = -1);

// clang-format off: it does not come to a fixed layout of this list
#define ATUNNER_JSON_TYPES(X)                                                                    \
  X(ArgSpec) X(Baseline) X(Budget) X(Candidate) X(CompiledModule) X(Comparison) X(Configuration) \
  X(DeviceProfile) X(Estimate) X(KernelResources) X(KernelSpec) X(LaunchPlan) X(Measurement)     \
  X(ParameterSpace) X(RenderedKernel) X(SourceUnit) X(Trial) X(Verdict)
// clang-format on

#define ATUNNER_DECLARE_JSON(Type) Json ToJson(const Type& value);
ATUNNER_JSON_TYPES(ATUNNER_DECLARE_JSON)
#undef ATUNNER_DECLARE_JSON

/// The value, or kInvalidInput naming the missing or mistyped field.
template <class T>
Result<T> FromJson(const Json& json);

/// Binary fields (a cubin) travel in JSON as base64.
std::string Base64Encode(std::string_view bytes);
Result<std::string> Base64Decode(std::string_view text);

}  // namespace atunner
