#include "atunner/importers/program/weights.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "atunner/importers/program/program_reader.h"

namespace atunner::importers {
namespace {

/// The elements from the file's beginning to the tensor's last one; nullopt for negative numbers
/// and on overflow.
std::optional<uint64_t> ElementsCovered(const std::vector<int64_t>& sizes,
                                        const std::vector<int64_t>& strides, int64_t offset) {
  if (sizes.size() != strides.size() || offset < 0) return std::nullopt;
  int64_t last = offset;
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t reach = 0;
    if (sizes[i] < 1 || strides[i] < 0) return std::nullopt;
    if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &reach)) return std::nullopt;
    if (__builtin_add_overflow(last, reach, &last)) return std::nullopt;
  }
  return static_cast<uint64_t>(last) + 1;
}

std::optional<std::vector<int64_t>> SizesOf(const ForeignJson& json) {
  if (!json.is_array()) return std::nullopt;
  std::vector<int64_t> sizes;
  for (const ForeignJson& each : json) {
    const auto size = SizeFromJson(each);
    if (!size) return std::nullopt;
    sizes.push_back(*size);
  }
  return sizes;
}

Result<WeightPlace> PlaceOf(const ForeignJson& entry, const std::string& where,
                            const std::string& folder, const FindFile& find) {
  const ForeignJson& pickled = Member(entry, "use_pickle");
  if (pickled.is_boolean() && pickled.get<bool>())
    return Fail(ErrorCode::kUnsupported, "the tensor is in a pickle, which is never run", where,
                "export the model with dense tensors");
  const ForeignJson& path = Member(entry, "path_name");
  const ForeignJson& meta = Member(entry, "tensor_meta");
  const ForeignJson& dtype = Member(meta, "dtype");
  const auto sizes = SizesOf(Member(meta, "sizes"));
  const auto strides = SizesOf(Member(meta, "strides"));
  const auto offset = SizeFromJson(Member(meta, "storage_offset"));
  if (!path.is_string() || !dtype.is_number_integer() || !sizes || !strides || !offset)
    return Invalid("path_name or tensor_meta is missing or has another type", where);
  WeightPlace place{folder + path.get<std::string>(), 0, *offset, *strides};
  const auto file = find(place.file);
  if (!file) return Invalid("the file '" + place.file + "' is missing", where);
  place.file_offset = file->offset;
  const auto type = DTypeOfNumber(dtype.get<int64_t>());
  const auto covered = ElementsCovered(*sizes, *strides, *offset);
  const uint64_t width = type ? SizeOf(*type) : 1;
  if (!covered || *covered > file->size / width)
    return Invalid(
        fmt::format("the file '{}' of {} bytes does not hold the tensor", place.file, file->size),
        where);
  return place;
}

}  // namespace

Status ReadWeightsConfig(std::string_view text, const std::string& where, const std::string& folder,
                         const FindFile& find, Weights& weights) {
  ATUNNER_TRY(const ForeignJson json, ParseForeignJson(text, where));
  const ForeignJson& config = Member(json, "config");
  if (!config.is_object()) return Invalid("'config' is not an object", where);
  for (const auto& [name, entry] : config.items()) {
    ATUNNER_TRY(WeightPlace place, PlaceOf(entry, where + ", tensor '" + name + "'", folder, find));
    weights.insert_or_assign(name, std::move(place));
  }
  return {};
}

}  // namespace atunner::importers
