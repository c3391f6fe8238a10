#include "atunner/importers/onnx_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "atunner/graph/lexer.h"
#include "atunner/importers/onnx/onnx_call.h"

namespace atunner::importers {
namespace {

using graph::Tensor;
using graph::Value;

/// Tensors of floats with more elements are weights.
constexpr int64_t kMostLiteral = 1;

std::string Identifier(std::string_view wanted) {
  std::string name;
  for (const char c : wanted) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return graph::IsName(name) ? name : "_" + name;  // it begins with a digit, or is a keyword
}

std::vector<int64_t> DenseStrides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  return strides;
}

/// The most elements of an initializer that becomes a constant.
int64_t MostOfConstant(DType dtype) { return IsFloat(dtype) ? kMostLiteral : kMostFolded; }

/// Where the bytes of a weight are; nullopt where a list of numbers holds the elements.
std::optional<WeightPlace> PlaceOf(const OnnxTensor& tensor, std::string_view file) {
  if (const auto location = tensor.external.find("location"); location != tensor.external.end()) {
    const auto offset = tensor.external.find("offset");
    const bool stated = offset != tensor.external.end();
    return WeightPlace{location->second,
                       stated ? std::strtoull(offset->second.c_str(), nullptr, 10) : 0, 0,
                       DenseStrides(tensor.dims)};
  }
  if (tensor.raw.empty()) return std::nullopt;
  return WeightPlace{"", static_cast<uint64_t>(tensor.raw.data() - file.data()), 0,
                     DenseStrides(tensor.dims)};
}

}  // namespace

void AddInitializers(const OnnxGraph& graph, OnnxScope& scope) {
  for (const OnnxTensor& tensor : graph.initializers)
    scope[tensor.name] = {std::nullopt, nullptr, &tensor};
}

bool IsFoldable(const OnnxSlot& slot) {
  if (slot.known) return std::ssize(slot.known->cells) <= kMostFolded;
  if (slot.initializer == nullptr) return false;
  const auto dtype = OnnxDType(slot.initializer->data_type);
  const int64_t count = slot.initializer->Count();
  return dtype && count >= 0 && count <= MostOfConstant(*dtype);
}

std::shared_ptr<const Tensor> ElementsOf(const graph::Constant& constant,
                                         const graph::TensorType& type) {
  Tensor tensor{type.dtype, {}, constant.values};
  int64_t count = 1;
  for (const graph::Extent& extent : type.shape) {
    tensor.shape.push_back(extent.factor());
    if (__builtin_mul_overflow(count, extent.factor(), &count)) return nullptr;
  }
  if (count > kMostFolded) return nullptr;
  if (tensor.cells.size() == 1) tensor.cells.resize(static_cast<size_t>(count), tensor.cells[0]);
  return std::make_shared<Tensor>(std::move(tensor));
}

std::string OnnxTensors::Unused(std::string_view wanted) {
  const std::string base = Identifier(wanted);
  std::string name = base;
  for (int i = 2; !used_.insert(name).second; ++i) name = fmt::format("{}_{}", base, i);
  return name;
}

Value OnnxTensors::AddUserInput(std::string_view wanted, graph::TensorType type) {
  const std::string name = Unused(wanted);
  inputs_.push_back({name, InputKind::kUser, "", std::nullopt});
  return builder_.Input(name, std::move(type));
}

Value OnnxTensors::AddWeight(const std::string& name, const OnnxTensor& tensor, DType dtype) {
  if (const Status inside = CheckLocation(tensor); !inside) return builder_.Fail(inside.error());
  const auto bytes = static_cast<uint64_t>(std::max<int64_t>(tensor.Count(), 0)) * SizeOf(dtype);
  if (!tensor.raw.empty() && tensor.raw.size() != bytes)
    return builder_.Fail({ErrorCode::kInvalidInput,
                          fmt::format("the weight '{}' has {} bytes in the file and {} by its type",
                                      name, tensor.raw.size(), bytes),
                          "", "is the file damaged?"});
  const std::string unique = Unused(name);
  inputs_.push_back({unique, InputKind::kParameter, name, PlaceOf(tensor, bytes_)});
  return builder_.Input(unique, {dtype, graph::Shape(tensor.dims.begin(), tensor.dims.end())});
}

Value OnnxTensors::ValueOf(const std::string& name, OnnxSlot& slot) {
  if (slot.value) return *slot.value;
  if (slot.initializer != nullptr && !slot.known) {
    const OnnxTensor& tensor = *slot.initializer;
    const auto dtype = OnnxDType(tensor.data_type);
    if (dtype && tensor.Count() > MostOfConstant(*dtype)) {
      slot.value = AddWeight(name, tensor, *dtype);
      return *slot.value;
    }
  }
  const auto known = KnownOf(slot);
  if (!known) return builder_.Fail(known.error());
  ATUNNER_CHECK(*known != nullptr);
  slot.value = ConstantOf(builder_, **known);
  return *slot.value;
}

Result<std::shared_ptr<const Tensor>> OnnxTensors::KnownOf(OnnxSlot& slot) const {
  if (!slot.known && slot.initializer != nullptr) {
    ATUNNER_TRY(Tensor values, ValuesOf(*slot.initializer, folder_));
    slot.known = std::make_shared<Tensor>(std::move(values));
  }
  return slot.known;
}

}  // namespace atunner::importers
