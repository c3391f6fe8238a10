#include "atunner/verify/host_fill.h"

#include <fmt/format.h>

#include <cstring>
#include <string>

#include "atunner/base/files.h"

namespace atunner {
namespace {

constexpr size_t kLargestFile = size_t{64} << 30;

Result<std::vector<std::byte>> FromFile(const ArgSpec& arg, uint64_t bytes) {
  ATUNNER_TRY(const std::string text, ReadFile(arg.fill.path, kLargestFile));
  if (text.size() < bytes) {
    return Invalid(
        fmt::format("'{}' holds {} bytes, argument '{}' has {}", arg.fill.path, text.size(), arg.name, bytes));
  }
  std::vector<std::byte> data(bytes);
  std::memcpy(data.data(), text.data(), bytes);
  return data;
}

Result<std::vector<std::byte>> FromExpression(const ArgSpec& arg, uint64_t elements) {
  ATUNNER_TRY(const Expr expr, Expr::Parse(arg.fill.path));
  const std::vector<std::string> names = {"i"};
  std::vector<Value> index(1);
  Bindings bindings;
  bindings.Add(names, index);
  std::vector<std::byte> data(elements * SizeOf(arg.dtype));
  for (uint64_t i = 0; i < elements; ++i) {
    index[0] = static_cast<int64_t>(i);
    const auto value = expr.Evaluate(bindings);
    if (!value) return Invalid(fmt::format("the fill of '{}' at i = {}: {}", arg.name, i, value.error().what));
    StoreElement(arg.dtype, data.data(), i, ToDouble(*value));
  }
  return data;
}

}  // namespace

bool FillsFromHost(const Fill& fill) { return fill.kind == Fill::Kind::kFile || fill.kind == Fill::Kind::kGenerator; }

Result<std::vector<std::byte>> HostFill(const ArgSpec& arg, uint64_t elements) {
  return arg.fill.kind == Fill::Kind::kFile ? FromFile(arg, elements * SizeOf(arg.dtype))
                                            : FromExpression(arg, elements);
}

}  // namespace atunner
