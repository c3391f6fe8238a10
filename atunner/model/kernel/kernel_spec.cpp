#include "atunner/model/kernel/kernel_spec.h"

#include <nlohmann/json.hpp>

namespace atunner {

std::string_view Name(Role role) {
  switch (role) {
    case Role::kInput:
      return "in";
    case Role::kOutput:
      return "out";
    case Role::kInOut:
      return "inout";
    case Role::kScalar:
      return "scalar";
  }
  return "in";
}

const ArgSpec* KernelSpec::FindArg(std::string_view arg_name) const {
  for (const ArgSpec& arg : args) {
    if (arg.name == arg_name) return &arg;
  }
  return nullptr;
}

Result<TensorShape> ShapeOf(const ArgSpec& arg, const KernelSpec& spec, const Dims& dims) {
  constexpr int64_t kMaxElements = int64_t{1} << 40;
  const Bindings bindings = Bindings(dims).Add(spec.attributes);
  TensorShape shape;
  for (const Expr& extent : arg.shape) {
    ATUNNER_TRY(const int64_t n, extent.EvaluateInt(bindings));
    if (n < 1)
      return Invalid("dimension '" + extent.text() + "' is " + std::to_string(n),
                     "argument '" + arg.name + "'", "every dimension must be at least 1");
    if (__builtin_mul_overflow(shape.elements, n, &shape.elements) ||
        shape.elements >= kMaxElements) {
      return Invalid("has 2^40 elements or more", "argument '" + arg.name + "'",
                     "use a smaller shape");
    }
    shape.extents.push_back(n);
  }
  shape.bytes = shape.elements * static_cast<int64_t>(SizeOf(arg.dtype));
  return shape;
}

Result<Value> ScalarOf(const ArgSpec& arg, const KernelSpec& spec, const Dims& dims) {
  if (!arg.value) return Invalid("scalar argument without a value", "argument '" + arg.name + "'");
  return arg.value->Evaluate(Bindings(dims).Add(spec.attributes));
}

Result<double> MinimumBytes(const KernelSpec& spec, const Dims& dims) {
  if (spec.bytes) {
    ATUNNER_TRY(const Value value, spec.bytes->Evaluate(Bindings(dims).Add(spec.attributes)));
    return ToDouble(value);
  }
  double total = 0;
  for (const ArgSpec& arg : spec.args) {
    if (arg.role == Role::kScalar) continue;
    ATUNNER_TRY(const TensorShape shape, ShapeOf(arg, spec, dims));
    total += static_cast<double>(shape.bytes) * (arg.role == Role::kInOut ? 2 : 1);
  }
  return total;
}

Result<double> FlopCount(const KernelSpec& spec, const Dims& dims) {
  ATUNNER_TRY(const Value value, spec.flops.Evaluate(Bindings(dims).Add(spec.attributes)));
  return ToDouble(value);
}

}  // namespace atunner
