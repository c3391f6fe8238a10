#include "atunner/capture/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace atunner::capture {
namespace {

/// The smallest range that holds all differences; empty if there is none.
std::vector<ByteRange> Difference(std::string_view before, std::string_view after) {
  const auto [first, second] = std::ranges::mismatch(before, after);
  if (first == before.end()) return {};
  const auto begin = static_cast<uint64_t>(first - before.begin());
  size_t end = before.size();
  while (before[end - 1] == after[end - 1]) --end;
  return {{begin, end}};
}

/// The parts of ascending ranges of addresses that lie in a buffer, as offsets.
std::vector<ByteRange> Inside(const std::vector<std::pair<uint64_t, uint64_t>>& written,
                              uint64_t base, uint64_t bytes) {
  std::vector<ByteRange> inside;
  for (const auto& [begin, end] : written) {
    const uint64_t from = std::max(begin, base), to = std::min(end, base + bytes);
    if (from < to) inside.push_back({from - base, to - base});
  }
  return inside;
}

}  // namespace

size_t Recording::AddModule(std::string_view ptx, std::string_view cubin, int arch) {
  CapturedModule module{.arch = arch};
  for (auto [bytes, id] : {std::pair(ptx, &module.ptx), std::pair(cubin, &module.cubin)}) {
    if (bytes.empty() || !IsActive()) continue;
    if (auto put = writer_.Put(bytes))
      *id = *std::move(put);
    else
      Stop(put.error());
  }
  Append(module);
  return modules_++;
}

size_t Recording::AddKernel(CapturedKernel kernel) {
  Append(std::move(kernel));
  return kernels_++;
}

size_t Recording::HashOfGroup::operator()(const LaunchGroup& group) const {
  const LaunchConfiguration& c = group.configuration;
  size_t hash = group.kernel;
  for (const uint64_t value :
       {uint64_t{c.grid.x}, uint64_t{c.grid.y}, uint64_t{c.grid.z}, uint64_t{c.block.x},
        uint64_t{c.block.y}, uint64_t{c.block.z}, c.cluster.Count(), uint64_t{c.shared_bytes}})
    hash = (hash ^ value) * 0x9e3779b97f4a7c15 + (hash >> 29);
  return hash;
}

Recording::Group& Recording::GroupOf(const LaunchFacts& launch) {
  const LaunchGroup key{launch.kernel, launch.configuration};
  const auto [at, is_new] = group_index_.try_emplace(key, groups_.size());
  if (is_new) groups_.push_back({key});
  return groups_[at->second];
}

Recording::Group& Recording::Counted(const LaunchFacts& launch) {
  Group& group = GroupOf(launch);
  ++group.launches.launches;
  ++launches_;
  if (launches_ >= 2 * groups_written_at_) Finish();
  return group;
}

void Recording::Count(const LaunchFacts& launch) {
  if (IsActive()) Counted(launch);
}

bool Recording::Wants(const LaunchFacts& launch) {
  return IsActive() && !GroupOf(launch).considered &&
         recorded_[launch.kernel] < limits_.launches_of_kernel;
}

bool Recording::Begin(const LaunchFacts& launch, const ProgramMemory& memory) {
  if (!IsActive()) return false;
  const bool wanted = Wants(launch);
  Counted(launch).considered = true;
  if (!wanted) return false;
  ++recorded_[launch.kernel];
  pending_.emplace();
  pending_->launch.number = launches_ - 1;
  pending_->launch.kernel = launch.kernel;
  pending_->launch.configuration = launch.configuration;
  pending_->launch.left_out = launch.obstacle;
  if (const Status taken = Snapshot(launch, memory); !taken) {
    Stop(taken.error());
    pending_.reset();
  }
  return pending_.has_value();
}

std::optional<size_t> Recording::BufferAt(uint64_t address, const ProgramMemory& memory) {
  const auto [low, high] = memory.Bounds();
  if (address < low || address >= high) return std::nullopt;
  const auto found = memory.Find(address);
  if (!found) return std::nullopt;
  const auto known = std::ranges::find(pending_->bases, found->base);
  if (known != pending_->bases.end()) return static_cast<size_t>(known - pending_->bases.begin());
  pending_->bases.push_back(found->base);
  pending_->launch.buffers.push_back({.bytes = found->bytes});
  return pending_->bases.size() - 1;
}

std::vector<CapturedPointer> Recording::TakePointers(std::string& bytes,
                                                     const ProgramMemory& memory) {
  std::vector<CapturedPointer> pointers;
  for (size_t at = 0; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    const auto buffer = BufferAt(word, memory);
    if (!buffer) continue;
    pointers.push_back({at, *buffer, word - pending_->bases[*buffer]});
    std::memset(bytes.data() + at, 0, sizeof word);
  }
  return pointers;
}

/// Buffers that memory points to are added while it goes on.
Status Recording::ReadBuffers(const ProgramMemory& memory) {
  CapturedLaunch& launch = pending_->launch;
  uint64_t total = 0;
  for (size_t i = 0; i < launch.buffers.size(); ++i) {
    total += launch.buffers[i].bytes;
    if (total > limits_.snapshot_bytes || snapshot_bytes_ + total > limits_.all_snapshots_bytes) {
      launch.left_out = fmt::format(
          "the memory that it may reach is larger than the limit of {:.1f} GB a launch and {:.1f} "
          "GB in all",
          static_cast<double>(limits_.snapshot_bytes) / 1e9,
          static_cast<double>(limits_.all_snapshots_bytes) / 1e9);
      return {};
    }
    std::string contents(launch.buffers[i].bytes, '\0');
    const uint64_t base = pending_->bases[i];
    const bool undefined = memory.IsUndefined(base, contents.size());
    if (!undefined) {
      ATUNNER_RETURN_IF_ERROR(memory.Read(base, contents));
      std::string zeroed = contents;
      launch.buffers[i].pointers = TakePointers(zeroed, memory);
      ATUNNER_TRY(launch.buffers[i].before, writer_.Put(zeroed));
    }
    pending_->contents.push_back(std::move(contents));
  }
  snapshot_bytes_ += total;
  return {};
}

Status Recording::Snapshot(const LaunchFacts& launch, const ProgramMemory& memory) {
  for (size_t i = 0; i < launch.parameters.size(); ++i) {
    if (const auto texture = launch.textures.find(i); texture != launch.textures.end()) {
      pending_->launch.parameters.push_back(texture->second);
      continue;
    }
    std::string bytes = launch.parameters[i];
    std::vector<CapturedPointer> pointers = TakePointers(bytes, memory);
    pending_->launch.parameters.push_back({std::move(bytes), std::move(pointers)});
  }
  if (!launch.obstacle.empty()) return {};
  for (const SymbolPlace& symbol : launch.symbols) {
    std::string contents(symbol.bytes, '\0');
    ATUNNER_RETURN_IF_ERROR(memory.Read(symbol.address, contents));
    std::string zeroed = contents;
    std::vector<CapturedPointer> pointers = TakePointers(zeroed, memory);
    ATUNNER_TRY(BlobId id, writer_.Put(zeroed));
    pending_->launch.symbols.push_back(
        {symbol.name, symbol.bytes, std::move(id), "", std::move(pointers)});
    pending_->symbol_addresses.push_back(symbol.address);
    pending_->symbol_contents.push_back(std::move(contents));
  }
  return ReadBuffers(memory);
}

namespace {

/// True if the launch put an address of the program's memory somewhere.
bool WritesAddresses(const CapturedBuffer& buffer, std::string_view before, std::string_view after,
                     const ProgramMemory& memory) {
  const auto [low, high] = memory.Bounds();
  for (const ByteRange& range : buffer.written) {
    const uint64_t first = (range.begin + sizeof(uint64_t) - 1) / sizeof(uint64_t);
    for (uint64_t at = first * sizeof(uint64_t); at + sizeof(uint64_t) <= range.end;
         at += sizeof(uint64_t)) {
      uint64_t was = 0, is = 0;
      std::memcpy(&was, before.data() + at, sizeof was);
      std::memcpy(&is, after.data() + at, sizeof is);
      if (is != was && is >= low && is < high && memory.Find(is)) return true;
    }
  }
  return false;
}

}  // namespace

Status Recording::Store(const ProgramMemory& memory,
                        const std::optional<std::vector<std::pair<uint64_t, uint64_t>>>& written) {
  CapturedLaunch& launch = pending_->launch;
  for (size_t i = 0; i < pending_->contents.size(); ++i) {
    CapturedBuffer& buffer = launch.buffers[i];
    const uint64_t base = pending_->bases[i];
    if (written) buffer.written = Inside(*written, base, buffer.bytes);
    if (written && buffer.written.empty()) continue;
    std::string after(buffer.bytes, '\0');
    ATUNNER_RETURN_IF_ERROR(memory.Read(base, after));
    if (!written) buffer.written = Difference(pending_->contents[i], after);
    if (buffer.written.empty()) continue;
    if (WritesAddresses(buffer, pending_->contents[i], after, memory))
      LeaveOut("it writes addresses into memory, which are others wherever its buffers are");
    ATUNNER_TRY(buffer.after, writer_.Put(after));
  }
  for (size_t i = 0; i < launch.symbols.size(); ++i) {
    std::string after(launch.symbols[i].bytes, '\0');
    ATUNNER_RETURN_IF_ERROR(memory.Read(pending_->symbol_addresses[i], after));
    if (after == pending_->symbol_contents[i]) continue;
    ATUNNER_TRY(launch.symbols[i].after, writer_.Put(after));
  }
  return {};
}

namespace {

bool WroteNothing(const CapturedLaunch& launch) {
  return std::ranges::all_of(launch.buffers,
                             [](const CapturedBuffer& one) { return one.written.empty(); }) &&
         std::ranges::all_of(launch.symbols,
                             [](const CapturedSymbol& one) { return one.after.empty(); });
}

}  // namespace

void Recording::End(const ProgramMemory& memory,
                    const std::optional<std::vector<std::pair<uint64_t, uint64_t>>>& written,
                    double seconds, Evidence evidence) {
  if (!pending_) return;
  pending_->launch.seconds = seconds;
  pending_->launch.evidence = evidence;
  if (pending_->launch.left_out.empty()) {
    if (const Status stored = Store(memory, written); !stored) Stop(stored.error());
  }
  // E.g. a search whose first step finds nothing: a later launch may serve.
  if (pending_ && pending_->launch.left_out.empty() && WroteNothing(pending_->launch))
    GroupOf({.kernel = pending_->launch.kernel, .configuration = pending_->launch.configuration})
        .considered = false;
  Append(std::move(pending_->launch));
  pending_.reset();
}

void Recording::LeaveOut(std::string why) {
  if (pending_ && pending_->launch.left_out.empty()) pending_->launch.left_out = std::move(why);
}

void Recording::AddSeconds(const LaunchFacts& launch, double seconds) {
  if (!IsActive()) return;
  Group& group = GroupOf(launch);
  if (group.timed++ == 0)
    group.first_seconds = seconds;
  else
    group.launches.seconds += seconds;
}

void Recording::Note(const std::string& text) { Append(CaptureNote{text}); }

double Recording::MeanSeconds(const Group& group) {
  constexpr double kCold = 2;  // times the mean of the others
  if (group.timed < 2) return group.first_seconds;
  const double others = group.launches.seconds / static_cast<double>(group.timed - 1);
  if (group.first_seconds > kCold * others) return others;
  return (group.first_seconds + group.launches.seconds) / static_cast<double>(group.timed);
}

void Recording::Finish() {
  groups_written_at_ = launches_;
  GroupsRecord record;
  for (const Group& group : groups_) {
    LaunchGroup& one = record.groups.emplace_back(group.launches);
    one.seconds = MeanSeconds(group) * static_cast<double>(one.launches);
  }
  Append(record);
}

void Recording::Append(const Record& record) {
  if (!IsActive()) return;
  if (const Status appended = writer_.Append(record); !appended) Stop(appended.error());
}

void Recording::Stop(const Error& error) {
  if (problem_.empty()) problem_ = "the capture was cut short: " + error.ToString();
}

}  // namespace atunner::capture
