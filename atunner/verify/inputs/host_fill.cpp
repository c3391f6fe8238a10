#include "atunner/verify/inputs/host_fill.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "atunner/base/files.h"
#include "atunner/base/random.h"
#include "atunner/capture/blob_store.h"
#include "atunner/capture/placed_addresses.h"

namespace atunner {
namespace {

constexpr size_t kLargestFile = size_t{64} << 30;

Result<std::vector<std::byte>> FromFile(const ArgSpec& arg, uint64_t bytes) {
  ATUNNER_TRY(const std::string text, ReadFile(arg.fill.path, kLargestFile));
  if (text.size() < bytes) {
    return Invalid(fmt::format("'{}' holds {} bytes, argument '{}' has {}", arg.fill.path,
                               text.size(), arg.name, bytes));
  }
  std::vector<std::byte> data(bytes);
  std::memcpy(data.data(), text.data(), bytes);
  return data;
}

Result<std::vector<std::byte>> FromBlob(const ArgSpec& arg, uint64_t bytes) {
  ATUNNER_TRY(const std::string text,
              capture::BlobStore(arg.fill.path).Get(capture::ContentsOf(arg.fill.digest)));
  if (text.size() < bytes)
    return Invalid(fmt::format("blob {} holds {} bytes, argument '{}' has {}", arg.fill.digest,
                               text.size(), arg.name, bytes),
                   arg.fill.path);
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
    if (!value)
      return Invalid(
          fmt::format("the fill of '{}' at i = {}: {}", arg.name, i, value.error().what));
    StoreElement(arg.dtype, data.data(), i, ToDouble(*value));
  }
  return data;
}

/// Expression of `elements` increasing offsets from `first` to `first + total`, e.g. the row starts
/// of a ragged batch. Offset i is its share i·total/parts, moved back by a pseudo-random amount
/// below the average distance, so that no distance is longer than twice the average.
std::string Offsets(int64_t first, int64_t total, int64_t elements) {
  const int64_t parts = elements - 1;
  if (parts < 1) return std::to_string(first);
  return fmt::format("{3} + i * {0} // {1} - (i * 7919 % {2} if i < {1} else 0)", total, parts,
                     total / parts + 1, first);
}

}  // namespace

Result<Fill> BindFill(const ArgSpec& arg, const KernelSpec& spec, const Dims& dims,
                      int64_t elements) {
  Fill fill = arg.fill;
  if (fill.kind != Fill::Kind::kIndices && fill.kind != Fill::Kind::kOffsets) return fill;
  ATUNNER_TRY(const Expr expr, Expr::Parse(fill.path));
  const auto end = expr.EvaluateInt(Bindings(dims).Add(spec.attributes));
  if (!end) return Invalid(fmt::format("the fill of '{}': {}", arg.name, end.error().what));
  if (*end < 0)
    return Invalid(fmt::format("the fill of '{}': '{}' is {}", arg.name, fill.path, *end));
  const double first = fill.low;
  if (fill.kind == Fill::Kind::kOffsets)
    return Fill{Fill::Kind::kGenerator, 0, 1, Offsets(static_cast<int64_t>(first), *end, elements),
                ""};
  return Fill{Fill::Kind::kUniform, first, first + static_cast<double>(std::max<int64_t>(*end, 1)),
              "", ""};
}

bool FillsFromHost(const Fill& fill) {
  return fill.kind == Fill::Kind::kFile || fill.kind == Fill::Kind::kGenerator ||
         fill.kind == Fill::Kind::kBlob;
}

Result<std::vector<std::byte>> HostFill(const ArgSpec& arg, uint64_t elements) {
  if (arg.fill.kind == Fill::Kind::kBlob) return FromBlob(arg, elements * SizeOf(arg.dtype));
  return arg.fill.kind == Fill::Kind::kFile ? FromFile(arg, elements * SizeOf(arg.dtype))
                                            : FromExpression(arg, elements);
}

namespace {

constexpr double kReach = 0.25;

/// The same as the loop of Vary, without its choice for each element.
void VaryFloats(Random& random, std::span<std::byte> data) {
  for (size_t at = 0; at + sizeof(float) <= data.size(); at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, data.data() + at, sizeof value);
    value = static_cast<float>(value * (1 + random.Uniform(-kReach, kReach)));
    std::memcpy(data.data() + at, &value, sizeof value);
  }
}

}  // namespace

void Vary(DType dtype, uint64_t seed, std::span<std::byte> data) {
  Random random(seed);
  if (dtype == DType::kFloat32) return VaryFloats(random, data);
  for (size_t i = 0; i < data.size() / SizeOf(dtype); ++i)
    StoreElement(dtype, data.data(), i,
                 LoadElement(dtype, data.data(), i) * (1 + random.Uniform(-kReach, kReach)));
}

}  // namespace atunner
