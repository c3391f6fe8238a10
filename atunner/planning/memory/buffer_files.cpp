#include "atunner/planning/memory/buffer_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "atunner/model/json/json.h"
#include "atunner/planning/cells.h"
#include "atunner/planning/memory/allocation_trace.h"
#include "atunner/planning/memory/snapshot.h"
#include "atunner/trace/readers/open_trace.h"

namespace atunner::planning {
namespace {

enum Column : size_t { kId, kLower, kUpper, kSize, kColumns };

std::optional<Column> ColumnOf(std::string_view name) {
  if (name == "id" || name == "buffer" || name == "buffer_id") return kId;
  if (name == "lower" || name == "start" || name == "begin") return kLower;
  if (name == "upper" || name == "end") return kUpper;
  if (name == "size") return kSize;
  return std::nullopt;
}

Result<std::array<std::optional<size_t>, kColumns>> Header(std::string_view line) {
  std::array<std::optional<size_t>, kColumns> places;
  const auto cells = Cells(line);
  for (size_t i = 0; i < cells.size(); ++i)
    if (const auto column = ColumnOf(cells[i])) places[*column] = i;
  if (!places[kLower] || !places[kUpper] || !places[kSize])
    return Invalid("the header must name lower, upper and size", "line 1",
                   "for example id,lower,upper,size");
  return places;
}

Result<MemoryProblem> FromMemoryEvents(const trace::Timeline& timeline, int device) {
  std::map<int32_t, size_t> counts;
  for (const trace::MemoryEvent& event : timeline.memory) ++counts[event.device];
  if (counts.empty())
    return Invalid("the trace has no memory events", timeline.source,
                   "record with profile(profile_memory=True)");
  int32_t chosen = device;
  if (device < 0)
    chosen = std::ranges::max_element(counts, {}, [](const auto& each) {
               return each.second;
             })->first;
  if (!counts.contains(chosen))
    return Invalid(fmt::format("no memory events of device {}", chosen), "request.device");
  AllocationTrace trace;
  int64_t in_use = 0;
  for (const trace::MemoryEvent& event : timeline.memory) {
    if (event.device != chosen) continue;
    in_use = event.total_allocated;
    if (event.bytes > 0)
      trace.Allocate(event.address, event.bytes);
    else
      trace.Release(event.address, event.bytes > INT64_MIN ? -event.bytes : 0);
    trace.Reserved(event.total_reserved);
  }
  return trace.Finish("the allocator", in_use);
}

bool LooksLikeTrace(std::string_view head) {
  return head.starts_with("\x1f\x8b") || head.find("traceEvents") != std::string_view::npos ||
         head.find("schemaVersion") != std::string_view::npos ||
         head.find("\"ph\"") != std::string_view::npos;
}

Result<MemoryProblem> Parse(std::string_view text, int device) {
  if (text.starts_with('\x80')) return ReadSnapshot(text, device);
  if (text.starts_with('{') || text.starts_with('[')) return ReadBufferJson(text);
  return ReadBufferCsv(text);
}

}  // namespace

Result<MemoryProblem> ReadBufferCsv(std::string_view text) {
  MemoryProblem problem;
  std::optional<std::array<std::optional<size_t>, kColumns>> places;
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = Trimmed(text.substr(at, end - at));
    at = end + 1;
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    if (!places) {
      ATUNNER_TRY(places, Header(line));
      continue;
    }
    const auto cells = Cells(line);
    const auto cell = [&](Column column) {
      const auto place = (*places)[column];
      return place && *place < cells.size() ? cells[*place] : std::string_view();
    };
    const auto lower = NumberOf<int64_t>(cell(kLower)), upper = NumberOf<int64_t>(cell(kUpper)),
               size = NumberOf<int64_t>(cell(kSize));
    if (!lower || !upper || !size)
      return Invalid("lower, upper and size must be whole numbers", fmt::format("line {}", number));
    problem.buffers.push_back({*lower, *upper, *size});
    problem.ids.emplace_back(cell(kId).empty() ? std::to_string(problem.ids.size())
                                               : std::string(cell(kId)));
  }
  if (problem.buffers.empty()) return Invalid("the file has no buffers");
  return problem;
}

Result<MemoryProblem> ReadBufferJson(std::string_view text) {
  ATUNNER_TRY(const Json json, ParseJson(text));
  const Json& list = json.is_object() && json.contains("buffers") ? json["buffers"] : json;
  if (!list.is_array() || list.empty())
    return Invalid("neither a list of buffers nor an object with a list \"buffers\"");
  MemoryProblem problem;
  for (size_t i = 0; i < list.size(); ++i) {
    std::array<std::optional<int64_t>, kColumns> numbers;
    std::string id = std::to_string(i);
    if (!list[i].is_object()) return Invalid("must be an object", fmt::format("buffers[{}]", i));
    for (const auto& [key, value] : list[i].items()) {
      const auto column = ColumnOf(key);
      if (!column) continue;
      if (*column == kId)
        id = value.is_string() ? value.get<std::string>() : DumpJson(value);
      else if (value.is_number_integer())
        numbers[*column] = value.get<int64_t>();
    }
    if (!numbers[kLower] || !numbers[kUpper] || !numbers[kSize])
      return Invalid("needs whole numbers lower, upper and size", fmt::format("buffers[{}]", i));
    problem.buffers.push_back({*numbers[kLower], *numbers[kUpper], *numbers[kSize]});
    problem.ids.push_back(id);
  }
  return problem;
}

Result<MemoryProblem> ReadBuffers(const Path& file, int device) {
  ATUNNER_TRY(const std::string head, ReadStart(file, 4096));
  if (LooksLikeTrace(head)) {
    ATUNNER_TRY(const trace::Timeline timeline, trace::OpenTrace(file));
    return FromMemoryEvents(timeline, device);
  }
  ATUNNER_TRY(const std::string text, ReadFile(file, size_t{4} << 30));
  auto problem = Parse(text, device);
  if (!problem && !problem.error().where.starts_with("request."))
    problem.error().where = file.string() +
                            (problem.error().where.empty() ? "" : ", " + problem.error().where);
  return problem;
}

}  // namespace atunner::planning
