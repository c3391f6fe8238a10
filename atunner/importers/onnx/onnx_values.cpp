// Elements of ONNX tensors.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "atunner/importers/archive/mapped_file.h"
#include "atunner/importers/onnx/onnx_model.h"

namespace atunner::importers {
namespace {

using graph::Cell;

constexpr int64_t kMostElements = int64_t{1} << 32;

/// Elements as they lie in memory.
graph::Tensor Unpacked(DType dtype, const std::vector<int64_t>& shape, std::string_view raw) {
  graph::Tensor tensor{dtype, shape, {}};
  const size_t count = raw.size() / SizeOf(dtype);
  tensor.cells.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    if (dtype == DType::kInt64) {
      int64_t whole = 0;
      std::memcpy(&whole, raw.data() + i * sizeof whole, sizeof whole);
      tensor.cells.push_back(graph::Whole(whole));
    } else {
      tensor.cells.push_back(graph::CellOf(dtype, LoadElement(dtype, raw.data(), i)));
    }
  }
  return tensor;
}

/// An element of int32_data: floats of 16 and 8 bits are there by their bits.
Cell FromList(DType dtype, int64_t whole) {
  if (!IsFloat(dtype)) return graph::Whole(whole);
  return graph::CellOf(dtype, LoadElement(dtype, &whole, 0));
}

std::string ValueOr(const OnnxTensor& tensor, const char* key, const char* fallback) {
  const auto found = tensor.external.find(key);
  return found == tensor.external.end() ? fallback : found->second;
}

uint64_t NumberOf(const std::string& text) { return std::strtoull(text.c_str(), nullptr, 10); }

/// A location is a path below the model's folder.
bool Escapes(const std::filesystem::path& location) {
  if (location.empty() || location.is_absolute()) return true;
  for (const auto& part : location) {
    if (part == "..") return true;
  }
  return false;
}

Result<graph::Tensor> FromFile(const OnnxTensor& tensor, DType dtype, const std::string& folder) {
  ATUNNER_RETURN_IF_ERROR(CheckLocation(tensor));
  const std::string location = ValueOr(tensor, "location", "");
  ATUNNER_TRY(const MappedFile file, MappedFile::Open(std::filesystem::path(folder) / location));
  const uint64_t offset = NumberOf(ValueOr(tensor, "offset", "0"));
  const uint64_t bytes = static_cast<uint64_t>(tensor.Count()) * SizeOf(dtype);
  if (offset > file.bytes().size() || bytes > file.bytes().size() - offset)
    return Invalid(fmt::format("the file has no {} bytes at {}", bytes, offset), location);
  return Unpacked(dtype, tensor.dims, file.bytes().substr(offset, bytes));
}

}  // namespace

std::optional<DType> OnnxDType(int64_t data_type) {
  switch (data_type) {
    case 1:
      return DType::kFloat32;
    case 2:
      return DType::kUInt8;
    case 3:
      return DType::kInt8;
    case 4:
      return DType::kUInt16;
    case 5:
      return DType::kInt16;
    case 6:
      return DType::kInt32;
    case 7:
      return DType::kInt64;
    case 9:
      return DType::kBool;
    case 10:
      return DType::kFloat16;
    case 11:
      return DType::kFloat64;
    case 12:
      return DType::kUInt32;
    case 16:
      return DType::kBFloat16;
    case 17:
      return DType::kFloat8E4M3;
    case 19:
      return DType::kFloat8E5M2;
    default:
      return std::nullopt;
  }
}

Status CheckLocation(const OnnxTensor& tensor) {
  const std::string location = ValueOr(tensor, "location", "");
  if (tensor.external.empty() || !Escapes(location)) return {};
  return Invalid("external data has to lie in the model's folder", location);
}

int64_t OnnxTensor::Count() const {
  int64_t count = 1;
  for (const int64_t dim : dims) {
    if (dim < 0 || __builtin_mul_overflow(count, dim, &count) || count > kMostElements) return -1;
  }
  return count;
}

Result<graph::Tensor> ValuesOf(const OnnxTensor& tensor, const std::string& folder) {
  const auto dtype = OnnxDType(tensor.data_type);
  if (!dtype || tensor.has_text)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("the element type {} of ONNX is not supported", tensor.data_type),
                tensor.name);
  const int64_t count = tensor.Count();
  if (count < 0) return Invalid("the tensor's sizes are wrong", tensor.name);
  if (!tensor.external.empty()) return FromFile(tensor, *dtype, folder);
  const auto elements = static_cast<size_t>(count);
  if (tensor.raw.size() == elements * SizeOf(*dtype))
    return Unpacked(*dtype, tensor.dims, tensor.raw);
  graph::Tensor values{*dtype, tensor.dims, {}};
  for (const double real : tensor.reals) values.cells.push_back(graph::CellOf(*dtype, real));
  for (const int64_t whole : tensor.wholes) values.cells.push_back(FromList(*dtype, whole));
  if (values.cells.size() != elements)
    return Invalid(
        fmt::format("the tensor has {} elements, its sizes say {}", values.cells.size(), elements),
        tensor.name);
  return values;
}

}  // namespace atunner::importers
