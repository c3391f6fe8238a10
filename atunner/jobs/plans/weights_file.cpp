#include "atunner/jobs/plans/weights_file.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "atunner/importers/archive/mapped_file.h"
#include "atunner/importers/model_file.h"

namespace atunner::jobs {
namespace {

using importers::DividedInput;
using importers::MappedFile;
using importers::WeightPlace;

/// The files that hold weights: the archive, or files of the folder in which the JSON is.
class Sources {
 public:
  explicit Sources(Path source) : source_(std::move(source)) {}

  /// The bytes of a weight's storage, from its file's beginning to the end of the archive.
  Result<std::string_view> Storage(const WeightPlace& place) {
    const bool folder = source_.extension() == ".json" ||
                        (importers::IsOnnxFile(source_) && !place.file.empty());
    const Path path = folder ? source_.parent_path() / place.file : source_;
    auto known = files_.find(path);
    if (known == files_.end()) {
      ATUNNER_TRY(MappedFile mapped, MappedFile::Open(path));
      known = files_.emplace(path, std::move(mapped)).first;
    }
    const std::string_view bytes = known->second.bytes();
    if (place.file_offset > bytes.size())
      return Invalid("the file changed while it was read", path.string());
    return bytes.substr(place.file_offset);
  }

 private:
  Path source_;
  std::map<Path, MappedFile> files_;
};

/// Writes a tensor's elements in row-major order.
class DenseWriter {
 public:
  DenseWriter(std::string_view storage, const WeightPlace& place, const PlanBuffer& buffer,
              std::ofstream& out)
      : storage_(storage), place_(place), buffer_(buffer), out_(out) {}

  Status Write() { return WriteAxis(0, place_.storage_offset); }

 private:
  /// From this axis on the elements lie one behind the other.
  bool IsDense(size_t axis) const {
    int64_t dense = 1;
    for (size_t i = buffer_.extents.size(); i-- > axis;) {
      if (buffer_.extents[i] != 1 && place_.strides[i] != dense) return false;
      dense *= buffer_.extents[i];
    }
    return true;
  }

  Status WriteAxis(size_t axis, int64_t element) {
    if (IsDense(axis)) return WriteRun(axis, element);
    for (int64_t i = 0; i < buffer_.extents[axis]; ++i)
      ATUNNER_RETURN_IF_ERROR(WriteAxis(axis + 1, element + i * place_.strides[axis]));
    return {};
  }

  Status WriteRun(size_t axis, int64_t element) {
    const uint64_t width = SizeOf(buffer_.dtype);
    uint64_t bytes = width;
    for (size_t i = axis; i < buffer_.extents.size(); ++i)
      bytes *= static_cast<uint64_t>(buffer_.extents[i]);
    const uint64_t begin = static_cast<uint64_t>(element) * width;
    if (begin > storage_.size() || bytes > storage_.size() - begin)
      return Invalid("the model's file does not hold '" + buffer_.qualified_name + "'");
    out_.write(storage_.data() + begin, static_cast<std::streamsize>(bytes));
    return {};
  }

  std::string_view storage_;
  const WeightPlace& place_;
  const PlanBuffer& buffer_;
  std::ofstream& out_;
};

/// A file that is renamed into its place once it is complete, and removed if it is not.
class PartialFile {
 public:
  explicit PartialFile(Path path) : path_(std::move(path)), partial_(path_.string() + ".partial") {}
  ~PartialFile() {
    std::error_code ignored;
    std::filesystem::remove(partial_, ignored);
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  const Path& partial() const { return partial_; }
  Status Commit() const {
    std::error_code error;
    std::filesystem::rename(partial_, path_, error);
    if (!error) return {};
    return Fail(ErrorCode::kUnavailable, "cannot be written: " + error.message(), path_.string());
  }

 private:
  Path path_, partial_;
};

void PadTo(std::ofstream& out, uint64_t& size) {
  static constexpr char kZeros[kPlanAlignment] = {};
  const uint64_t padding = (kPlanAlignment - size % kPlanAlignment) % kPlanAlignment;
  out.write(kZeros, static_cast<std::streamsize>(padding));
  size += padding;
}

using PlaceKey =
    std::tuple<std::string, uint64_t, int64_t, std::vector<int64_t>, std::vector<int64_t>, DType>;

Status WriteAll(const Path& source, const std::vector<DividedInput>& inputs, ExecutionPlan& plan,
                std::ofstream& out) {
  Sources sources(source);
  std::map<PlaceKey, uint64_t> written;
  uint64_t size = 0;
  for (const size_t i : plan.BuffersOf(PlanBuffer::Kind::kWeight)) {
    PlanBuffer& buffer = plan.buffers[i];
    const auto input = std::ranges::find(inputs, buffer.name,
                                         [](const DividedInput& each) { return each.value.name; });
    ATUNNER_CHECK(input != inputs.end() && input->place);
    const WeightPlace& place = *input->place;
    if (place.strides.size() != buffer.extents.size())
      return Invalid("the program and the list of weights state different shapes for '" +
                     buffer.qualified_name + "'");
    const PlaceKey key{place.file,    place.file_offset, place.storage_offset,
                       place.strides, buffer.extents,    buffer.dtype};
    const auto known = written.find(key);
    if (known != written.end()) {
      buffer.offset = known->second;
      continue;
    }
    PadTo(out, size);
    buffer.offset = size;
    written.emplace(key, size);
    ATUNNER_TRY(const std::string_view storage, sources.Storage(place));
    ATUNNER_RETURN_IF_ERROR(DenseWriter(storage, place, buffer, out).Write());
    size += buffer.Bytes();
  }
  plan.weight_bytes = size;
  return {};
}

}  // namespace

Status WriteWeights(const Path& folder, const Path& source, const std::vector<DividedInput>& inputs,
                    ExecutionPlan& plan) {
  if (plan.BuffersOf(PlanBuffer::Kind::kWeight).empty()) return {};
  const PartialFile file(folder / kWeightsFile);
  std::ofstream out(file.partial(), std::ios::binary | std::ios::trunc);
  ATUNNER_RETURN_IF_ERROR(WriteAll(source, inputs, plan, out));
  out.close();
  if (!out)
    return Fail(ErrorCode::kUnavailable, "cannot be written", file.partial().string(),
                "is the disk full?");
  ATUNNER_TRY(const MappedFile mapped, MappedFile::Open(file.partial()));
  plan.weight_digest = DigestOf(mapped.bytes());
  return file.Commit();
}

}  // namespace atunner::jobs
