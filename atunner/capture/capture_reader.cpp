#include "atunner/capture/capture_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "atunner/capture/capture_writer.h"

namespace atunner::capture {
namespace {

constexpr size_t kMostRecordBytes = size_t{1} << 32;
constexpr size_t kMostBufferBytes = size_t{1} << 40;
constexpr size_t kPointerBytes = 8;

Status CheckBlob(const BlobId& id, const std::string& where) {
  return id.empty() || IsBlobId(id) ? Status{} : Invalid("'" + id + "' names no blob", where);
}

/// `bytes`: of the parameter or buffer that holds the pointers.
Status CheckPointers(const std::vector<CapturedPointer>& pointers, uint64_t bytes,
                     const CapturedLaunch& launch, const std::string& where) {
  for (const CapturedPointer& pointer : pointers) {
    if (pointer.buffer >= launch.buffers.size())
      return Invalid(fmt::format("there is no buffer {}", pointer.buffer), where);
    if (bytes < kPointerBytes || pointer.at > bytes - kPointerBytes)
      return Invalid("a pointer lies outside of its parameter or buffer", where);
    if (pointer.offset > launch.buffers[pointer.buffer].bytes)
      return Invalid("a pointer leads out of its buffer", where);
  }
  return {};
}

Status CheckBuffer(const CapturedBuffer& buffer, const CapturedLaunch& launch,
                   const std::string& where) {
  ATUNNER_RETURN_IF_ERROR(CheckBlob(buffer.before, where));
  ATUNNER_RETURN_IF_ERROR(CheckBlob(buffer.after, where));
  if (buffer.bytes > kMostBufferBytes) return Invalid("a buffer is too large", where);
  ATUNNER_RETURN_IF_ERROR(CheckPointers(buffer.pointers, buffer.bytes, launch, where));
  uint64_t last = 0;
  for (const ByteRange& range : buffer.written) {
    if (range.begin < last || range.end < range.begin || range.end > buffer.bytes)
      return Invalid("written ranges are not in order", where);
    last = range.end;
  }
  return {};
}

/// Puts records together and checks what they refer to.
class Assembler {
 public:
  explicit Assembler(std::string where) : where_(std::move(where)) {}

  Status Add(Record record) {
    return std::visit([&](auto& one) { return Take(std::move(one)); }, record);
  }
  Capture Finish() && { return std::move(out_); }
  bool has_head() const { return has_head_; }

 private:
  Status Take(CaptureHead head) {
    out_.head = std::move(head);
    has_head_ = true;
    return {};
  }
  Status Take(CapturedModule module) {
    ATUNNER_RETURN_IF_ERROR(CheckBlob(module.ptx, where_));
    ATUNNER_RETURN_IF_ERROR(CheckBlob(module.cubin, where_));
    out_.modules.push_back(std::move(module));
    return {};
  }
  Status Take(CapturedKernel kernel) {
    if (kernel.module >= out_.modules.size())
      return Invalid(fmt::format("there is no module {}", kernel.module), where_);
    out_.kernels.push_back(std::move(kernel));
    return {};
  }
  Status Take(CapturedLaunch launch) {
    ATUNNER_RETURN_IF_ERROR(CheckKernel(launch.kernel));
    for (const CapturedParameter& one : launch.parameters)
      ATUNNER_RETURN_IF_ERROR(CheckPointers(one.pointers, one.bytes.size(), launch, where_));
    for (const CapturedBuffer& one : launch.buffers)
      ATUNNER_RETURN_IF_ERROR(CheckBuffer(one, launch, where_));
    for (const CapturedSymbol& one : launch.symbols) {
      ATUNNER_RETURN_IF_ERROR(CheckBlob(one.before, where_));
      ATUNNER_RETURN_IF_ERROR(CheckBlob(one.after, where_));
      ATUNNER_RETURN_IF_ERROR(CheckPointers(one.pointers, one.bytes, launch, where_));
    }
    out_.launches.push_back(std::move(launch));
    return {};
  }
  Status Take(GroupsRecord record) {
    for (const LaunchGroup& group : record.groups)
      ATUNNER_RETURN_IF_ERROR(CheckKernel(group.kernel));
    out_.groups = std::move(record.groups);
    return {};
  }
  Status Take(CaptureNote note) {
    out_.notes.push_back(std::move(note.text));
    return {};
  }
  Status Take(CaptureEnding ending) {
    out_.endings.push_back(ending);
    return {};
  }

  Status CheckKernel(size_t kernel) const {
    if (kernel < out_.kernels.size()) return {};
    return Invalid(fmt::format("there is no kernel {}", kernel), where_);
  }

  std::string where_;
  Capture out_;
  bool has_head_ = false;
};

}  // namespace

std::vector<const CapturedLaunch*> Capture::RepeatableLaunches(size_t kernel) const {
  std::vector<const CapturedLaunch*> found;
  for (const CapturedLaunch& launch : launches) {
    if (launch.kernel == kernel && launch.left_out.empty()) found.push_back(&launch);
  }
  const auto weight = [&](const CapturedLaunch* launch) {
    for (const LaunchGroup& group : groups) {
      if (group.kernel == kernel && group.configuration == launch->configuration)
        return std::pair(group.seconds, group.launches);
    }
    return std::pair(0.0, uint64_t{0});
  };
  std::ranges::stable_sort(found, std::ranges::greater{}, weight);
  return found;
}

bool IsCapture(const Path& folder) { return IsFolder(folder) && Exists(RecordsOf(folder)); }

Result<Capture> ParseCapture(std::string_view text, const std::string& where) {
  Assembler assembler(where);
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) break;  // the program died while it wrote this line
    const std::string at = fmt::format("{}:{}", where, ++number);
    ATUNNER_TRY(const Json json, ParseJson(text.substr(0, end), at));
    ATUNNER_TRY(Record record, RecordOf(json, at));
    if (const Status added = assembler.Add(std::move(record)); !added)
      return Invalid(added.error().what, at);
    text.remove_prefix(end + 1);
  }
  if (!assembler.has_head()) return Invalid("this is no capture", where);
  return std::move(assembler).Finish();
}

Result<Capture> ReadCapture(const Path& folder) {
  const Path file = RecordsOf(folder);
  if (!Exists(file))
    return Fail(ErrorCode::kNotFound, "there is no capture", folder.string(),
                "`atunner capture -- PROGRAM` records one");
  ATUNNER_TRY(const std::string text, ReadFile(file, kMostRecordBytes));
  return ParseCapture(text, file.string());
}

}  // namespace atunner::capture
