#include "atunner/trace/readers/nsys_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace atunner::trace {
namespace {

constexpr int64_t kLongest = 1'000'000'000'000'000;  // ns: eleven days
constexpr int64_t kLatest = 4'000'000'000'000'000'000;

int32_t Narrow(int64_t value) {
  return static_cast<int32_t>(std::clamp<int64_t>(value, 0, std::numeric_limits<int32_t>::max()));
}

int64_t Product(int64_t a, int64_t b, int64_t c) {
  int64_t product = 0;
  const bool overflow = __builtin_mul_overflow(a, b, &product) ||
                        __builtin_mul_overflow(product, c, &product);
  return overflow ? 0 : product;
}

/// nsys packs process and thread into one number: hardware and VM above, 24 bits each below.
constexpr int64_t kIdMask = 0xffffff;
int64_t ProcessOf(int64_t global) { return (global >> 24) & kIdMask; }
int64_t ThreadOf(int64_t global) { return global & kIdMask; }

MemorySpace SpaceOf(int64_t kind) {  // ENUM_CUDA_MEM_KIND
  static constexpr MemorySpace kSpaces[] = {
      MemorySpace::kPageable, MemorySpace::kPinned, MemorySpace::kDevice, MemorySpace::kDevice,
      MemorySpace::kManaged,  MemorySpace::kDevice, MemorySpace::kManaged};
  return kind >= 0 && kind < 7 ? kSpaces[kind] : MemorySpace::kUnknown;
}

std::string CopyName(int64_t kind) {  // ENUM_CUDA_MEMCPY_OPER
  switch (kind) {
    case 1:
      return "Memcpy HtoD";
    case 2:
      return "Memcpy DtoH";
    case 8:
      return "Memcpy DtoD";
    case 10:
      return "Memcpy PtoP";
    default:
      return fmt::format("Memcpy (kind {})", kind);
  }
}

class NsysReader {
 public:
  NsysReader(const SqliteFile& file, Timeline& timeline) : file_(file), timeline_(timeline) {}

  void ReadAll() {
    ReadStrings();
    ReadDevices();
    ReadCalls();
    ReadKernels();
    ReadGraphs();
    ReadCopies();
    ReadMemsets();
    ReadSynchronizations();
    ReadRanges();
    if (implausible_ > 0)
      timeline_.notes.push_back(
          fmt::format("{} events without a plausible time were left out", implausible_));
    if (file_.damaged())
      timeline_.notes.emplace_back("the file is damaged: rows of a table could not be read");
    timeline_.Finish();
  }

 private:
  void ReadStrings() {
    TableRows rows(file_, "StringIds", {"id", "value"});
    while (rows.Next())
      if (const auto id = rows.Integer(0)) strings_[*id] = timeline_.strings.Intern(rows.Text(1));
  }

  void ReadDevices() {
    TableRows rows(file_, "TARGET_INFO_GPU", {"id", "name", "totalMemory", "smCount"});
    while (rows.Next())
      timeline_.devices.push_back({Narrow(rows.IntegerOr(0, 0)), std::string(rows.Text(1)),
                                   rows.IntegerOr(2, 0), Narrow(rows.IntegerOr(3, 0))});
  }

  void ReadCalls() {
    for (const char* table : {"CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"}) {
      TableRows rows(file_, table, {"start", "end", "globalTid", "correlationId", "nameId"});
      while (rows.Next()) {
        const uint32_t track = HostTrack(rows.IntegerOr(2, 0));
        Add(rows, StringOf(rows, 4), track, EventKind::kCall, rows.IntegerOr(3, 0), 0);
      }
    }
  }

  void ReadKernels() {
    TableRows rows(file_, "CUPTI_ACTIVITY_KIND_KERNEL",
                   {"start", "end", "deviceId", "streamId", "globalPid", "correlationId",
                    "demangledName", "shortName", "gridX", "gridY", "gridZ", "blockX", "blockY",
                    "blockZ", "registersPerThread", "staticSharedMemory", "dynamicSharedMemory"});
    while (rows.Next()) {
      KernelDetail detail;
      detail.blocks = Product(rows.IntegerOr(8, 0), rows.IntegerOr(9, 1), rows.IntegerOr(10, 1));
      detail.threads = Narrow(
          Product(rows.IntegerOr(11, 0), rows.IntegerOr(12, 1), rows.IntegerOr(13, 1)));
      detail.registers = Narrow(rows.IntegerOr(14, 0));
      detail.shared_bytes = Narrow(int64_t{Narrow(rows.IntegerOr(15, 0))} +
                                   Narrow(rows.IntegerOr(16, 0)));
      timeline_.kernels.push_back(detail);
      const uint32_t name = rows.Integer(6) ? StringOf(rows, 6) : StringOf(rows, 7);
      AddOnGpu(rows, name, EventKind::kKernel, static_cast<uint32_t>(timeline_.kernels.size()));
    }
  }

  /// With --cuda-graph-trace=graph a whole graph is one activity.
  void ReadGraphs() {
    TableRows rows(
        file_, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
        {"start", "end", "deviceId", "streamId", "globalPid", "correlationId", "graphId"});
    while (rows.Next()) {
      const std::string name = fmt::format("CUDA graph {}", rows.IntegerOr(6, 0));
      AddOnGpu(rows, timeline_.strings.Intern(name), EventKind::kKernel, 0);
    }
  }

  void ReadCopies() {
    TableRows rows(file_, "CUPTI_ACTIVITY_KIND_MEMCPY",
                   {"start", "end", "deviceId", "streamId", "globalPid", "correlationId", "bytes",
                    "copyKind", "srcKind", "dstKind"});
    while (rows.Next()) {
      const int64_t kind = rows.IntegerOr(7, 0);
      timeline_.copies.push_back({rows.IntegerOr(6, 0), SpaceOf(rows.IntegerOr(8, -1)),
                                  SpaceOf(rows.IntegerOr(9, -1)), kind == 10});
      AddOnGpu(rows, timeline_.strings.Intern(CopyName(kind)), EventKind::kMemcpy,
               static_cast<uint32_t>(timeline_.copies.size()));
    }
  }

  void ReadMemsets() {
    TableRows rows(
        file_, "CUPTI_ACTIVITY_KIND_MEMSET",
        {"start", "end", "deviceId", "streamId", "globalPid", "correlationId", "bytes", "memKind"});
    while (rows.Next()) {
      timeline_.copies.push_back(
          {rows.IntegerOr(6, 0), MemorySpace::kUnknown, SpaceOf(rows.IntegerOr(7, -1)), false});
      AddOnGpu(rows, timeline_.strings.Intern("Memset"), EventKind::kMemset,
               static_cast<uint32_t>(timeline_.copies.size()));
    }
  }

  void ReadSynchronizations() {
    static constexpr const char* kTypes[] = {"Synchronization", "Event Sync", "Stream Wait Event",
                                             "Stream Sync", "Context Sync"};
    TableRows rows(
        file_, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
        {"start", "end", "deviceId", "streamId", "globalPid", "correlationId", "syncType"});
    while (rows.Next()) {
      const int64_t type = rows.IntegerOr(6, 0);
      const char* const name = kTypes[type >= 0 && type < 5 ? type : 0];
      AddOnGpu(rows, timeline_.strings.Intern(name), EventKind::kSync, 0);
    }
  }

  /// NVTX ranges: 59 is push and pop, 60 start and end. Others have no extent.
  void ReadRanges() {
    TableRows rows(file_, "NVTX_EVENTS",
                   {"start", "end", "globalTid", "eventType", "text", "textId"});
    while (rows.Next()) {
      const int64_t type = rows.IntegerOr(3, 0);
      if ((type != 59 && type != 60) || !rows.Integer(1)) continue;
      const std::string_view text = rows.Text(4);
      const uint32_t name = text.empty() ? StringOf(rows, 5) : timeline_.strings.Intern(text);
      Add(rows, name, HostTrack(rows.IntegerOr(2, 0)), EventKind::kAnnotation, 0, 0);
    }
  }

  uint32_t StringOf(const TableRows& rows, int column) const {
    const auto found = strings_.find(rows.IntegerOr(column, -1));
    return found == strings_.end() ? 0 : found->second;
  }

  void AddOnGpu(const TableRows& rows, uint32_t name, EventKind kind, uint32_t detail) {
    const uint32_t track = TrackOf({true, Narrow(rows.IntegerOr(2, 0)), rows.IntegerOr(3, 0),
                                    ProcessIndex(rows.IntegerOr(4, 0)), ""});
    Add(rows, name, track, kind, rows.IntegerOr(5, 0), detail);
  }

  /// The first two columns of `rows` are start and end.
  void Add(const TableRows& rows, uint32_t name, uint32_t track, EventKind kind,
           int64_t correlation, uint32_t detail) {
    const auto start = rows.Integer(0), end = rows.Integer(1);
    if (!start || !end || *start < 0 || *end < *start || *end > kLatest ||
        *end - *start > kLongest) {
      ++implausible_;
      return;
    }
    timeline_.Append(*start, *end - *start, name, track, kind, static_cast<uint32_t>(correlation),
                     detail);
  }

  uint32_t HostTrack(int64_t global) {
    return TrackOf({false, -1, ThreadOf(global), ProcessIndex(global), ""});
  }
  uint32_t ProcessIndex(int64_t global) {
    const auto next = static_cast<uint32_t>(processes_.size());
    return processes_.try_emplace(ProcessOf(global), next).first->second;
  }
  uint32_t TrackOf(const Track& track) {
    const auto next = static_cast<uint32_t>(timeline_.tracks.size());
    const auto [found, fresh] = tracks_.try_emplace(
        {track.gpu, track.device, track.id, track.process}, next);
    if (fresh) timeline_.tracks.push_back(track);
    return found->second;
  }

  const SqliteFile& file_;
  Timeline& timeline_;
  std::unordered_map<int64_t, uint32_t> strings_;
  std::map<int64_t, uint32_t> processes_;
  std::map<std::tuple<bool, int32_t, int64_t, uint32_t>, uint32_t> tracks_;
  size_t implausible_ = 0;
};

}  // namespace

Result<Timeline> ReadNsys(const SqliteFile& file, const std::string& where) {
  ATUNNER_RETURN_IF_ERROR(file.Check());
  Timeline timeline;
  timeline.source = where;
  NsysReader(file, timeline).ReadAll();
  if (timeline.size() == 0)
    return Invalid("the SQLite file has no CUDA or NVTX events", where,
                   "record with `nsys profile --trace=cuda,nvtx`, then export with `nsys export "
                   "--type sqlite`");
  return timeline;
}

}  // namespace atunner::trace
