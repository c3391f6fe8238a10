#include "atunner/model/kernel/launch_plan.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace atunner {
namespace {

constexpr int64_t kMaxGridX = 2147483647;
constexpr int64_t kMaxGridYZ = 65535;
constexpr int64_t kMaxBlockXY = 1024;
constexpr int64_t kMaxBlockZ = 64;

Result<uint32_t> Extent(const Expr& expr, const Bindings& bindings, int64_t low, int64_t high,
                        std::string_view what, const std::string& entry) {
  ATUNNER_TRY(const int64_t value, expr.EvaluateInt(bindings));
  if (value < low || value > high) {
    return Invalid(std::string(what) + " is " + std::to_string(value) + ", it must be " +
                       std::to_string(low) + " to " + std::to_string(high) + " (from '" +
                       expr.text() + "')",
                   "launch of " + entry);
  }
  return static_cast<uint32_t>(value);
}

Result<Dim3> Extents(const std::array<Expr, 3>& exprs, const Bindings& bindings,
                     std::array<int64_t, 3> high, std::string_view what, const std::string& entry) {
  Dim3 dim;
  uint32_t* const slots[] = {&dim.x, &dim.y, &dim.z};
  constexpr const char* kAxis[] = {" x", " y", " z"};
  for (size_t i = 0; i < 3; ++i) {
    ATUNNER_TRY(*slots[i],
                Extent(exprs[i], bindings, 1, high[i], std::string(what) + kAxis[i], entry));
  }
  return dim;
}

/// Each of `exprs`, times `unit`; non-negative.
template <class Number>
Status Evaluate(const std::vector<Expr>& exprs, const Bindings& bindings, int64_t unit,
                std::vector<Number>& out) {
  for (const Expr& expr : exprs) {
    ATUNNER_TRY(const int64_t value, expr.EvaluateInt(bindings));
    if (value < 0 || static_cast<uint64_t>(value) >
                         std::numeric_limits<Number>::max() / static_cast<uint64_t>(unit))
      return Invalid("'" + expr.text() + "' is " + std::to_string(value), "tensor map");
    out.push_back(static_cast<Number>(value * unit));
  }
  return {};
}

Result<TensorMapSpec> ResolveMap(const ArgBinding& arg, const Bindings& bindings) {
  TensorMapSpec map;
  map.dtype = arg.dtype;
  ATUNNER_RETURN_IF_ERROR(Evaluate(arg.view.dims, bindings, 1, map.dims));
  ATUNNER_RETURN_IF_ERROR(
      Evaluate(arg.view.strides, bindings, static_cast<int64_t>(SizeOf(arg.dtype)), map.strides));
  ATUNNER_RETURN_IF_ERROR(Evaluate(arg.view.box, bindings, 1, map.box));
  ATUNNER_TRY(const int64_t swizzle, arg.view.swizzle_bytes.EvaluateInt(bindings));
  map.swizzle_bytes = static_cast<int>(swizzle);
  ATUNNER_RETURN_IF_ERROR(Check(map));
  return map;
}

Result<ConcreteStep> ResolveStep(const LaunchStep& step, const Bindings& bindings) {
  ConcreteStep concrete;
  concrete.entry = step.entry;
  concrete.cooperative = step.cooperative;
  concrete.programmatic = step.programmatic;
  ATUNNER_TRY(concrete.grid, Extents(step.grid, bindings, {kMaxGridX, kMaxGridYZ, kMaxGridYZ},
                                     "grid", step.entry));
  ATUNNER_TRY(concrete.block, Extents(step.block, bindings, {kMaxBlockXY, kMaxBlockXY, kMaxBlockZ},
                                      "block", step.entry));
  ATUNNER_TRY(concrete.cluster,
              Extents(step.cluster, bindings, {16, 16, 16}, "cluster", step.entry));
  if (concrete.block.Count() > 1024) {
    return Invalid("block has " + std::to_string(concrete.block.Count()) +
                       " threads, at most 1024 are possible",
                   "launch of " + step.entry);
  }
  ATUNNER_TRY(concrete.shared_bytes,
              Extent(step.shared_bytes, bindings, 0, 1 << 20, "shared memory", step.entry));
  for (const ArgBinding& arg : step.args) {
    ConcreteArg& out = concrete.args.emplace_back(ConcreteArg{arg.kind, arg.name, {}});
    if (IsMap(arg.kind)) {
      ATUNNER_TRY(out.map, ResolveMap(arg, bindings));
    }
    if (arg.kind == ArgBinding::Kind::kBytes) out.raw = arg.raw;
    if (arg.kind != ArgBinding::Kind::kScalar) continue;
    ATUNNER_TRY(const Value value, arg.value.Evaluate(bindings));
    ATUNNER_TRY(out.scalar, PackScalar(arg.dtype, value));
  }
  return concrete;
}

bool Fits(DType dtype, int64_t value) {
  const auto bits = static_cast<int>(8 * SizeOf(dtype));
  if (bits == 64) return true;
  if (KindOf(dtype) == DTypeKind::kUnsigned) return value >= 0 && value < (int64_t{1} << bits);
  return value >= -(int64_t{1} << (bits - 1)) && value < (int64_t{1} << (bits - 1));
}

}  // namespace

std::string_view Name(Language language) {
  switch (language) {
    case Language::kCudaCpp:
      return "cuda";
    case Language::kPtx:
      return "ptx";
    case Language::kCubin:
      return "cubin";
  }
  return "cuda";
}

Digest SourceUnit::ContentDigest() const {
  std::vector<std::string> fields = {name, text, std::string(Name(language))};
  for (const auto& [key, value] : defines) fields.push_back("D" + key + "=" + value);
  for (const std::string& option : options) fields.push_back("O" + option);
  for (const std::string& folder : include_folders) fields.push_back("I" + folder);
  return DigestOf(fields);
}

bool IsMap(ArgBinding::Kind kind) {
  return kind == ArgBinding::Kind::kTensorMap || kind == ArgBinding::Kind::kWorkspaceMap;
}

bool IsTexture(ArgBinding::Kind kind) {
  return kind == ArgBinding::Kind::kTexture || kind == ArgBinding::Kind::kSurface;
}

bool InWorkspace(ArgBinding::Kind kind) {
  return kind == ArgBinding::Kind::kWorkspace || kind == ArgBinding::Kind::kWorkspaceMap;
}

std::vector<std::string> EntriesOf(const LaunchPlan& plan) {
  std::vector<std::string> entries;
  for (const LaunchStep& step : plan.steps) {
    if (std::ranges::find(entries, step.entry) == entries.end()) entries.push_back(step.entry);
  }
  return entries;
}

Result<ScalarBytes> PackScalar(DType dtype, const Value& value) {
  ScalarBytes packed;
  packed.size = static_cast<uint32_t>(SizeOf(dtype));
  if (std::holds_alternative<std::string>(value))
    return Invalid("text '" + ToString(value) + "' given for a number");
  if (const int64_t* whole = std::get_if<int64_t>(&value);
      whole && !IsFloat(dtype) && dtype != DType::kBool) {
    if (!Fits(dtype, *whole))
      return Invalid(std::to_string(*whole) + " does not fit " + std::string(Name(dtype)));
    // little-endian: the low bytes come first
    std::memcpy(packed.bytes.data(), whole, packed.size);
    return packed;
  }
  const double real = ToDouble(value);
  if (!IsFloat(dtype) && dtype != DType::kBool) {
    if (real != std::floor(real)) return Invalid(ToString(value) + " is not a whole number");
    if (!(std::fabs(real) < 0x1p63))
      return Invalid(ToString(value) + " does not fit " + std::string(Name(dtype)));
    return PackScalar(dtype, static_cast<int64_t>(real));
  }
  StoreElement(dtype, packed.bytes.data(), 0, real);
  return packed;
}

Result<ConcretePlan> Resolve(const LaunchPlan& plan, const Dims& dims,
                             const Attributes& attributes) {
  if (plan.parameter_names.size() != plan.parameter_values.size()) {
    return Invalid("the launch plan has " + std::to_string(plan.parameter_names.size()) +
                   " parameter names and " + std::to_string(plan.parameter_values.size()) +
                   " values");
  }
  Bindings bindings;
  bindings.Add(plan.parameter_names, plan.parameter_values).Add(dims).Add(attributes);
  ConcretePlan concrete;
  concrete.symbols = plan.symbols;
  for (const Workspace& workspace : plan.workspaces) {
    ATUNNER_TRY(const int64_t bytes, workspace.bytes.EvaluateInt(bindings));
    if (bytes < 0)
      return Invalid("workspace '" + workspace.name + "' has " + std::to_string(bytes) + " bytes");
    concrete.workspaces.push_back({workspace.name, static_cast<uint64_t>(bytes)});
  }
  for (const LaunchStep& step : plan.steps) {
    ATUNNER_TRY(ConcreteStep resolved, ResolveStep(step, bindings));
    concrete.steps.push_back(std::move(resolved));
  }
  if (concrete.steps.empty()) return Invalid("the launch plan has no step");
  return concrete;
}

}  // namespace atunner
