// Decides which launches of a running program are recorded, and records them.
//
// Both recorders use it: the virtual GPU's (faces/program) and the one in front of CUDA's driver on
// a real GPU. They say what memory there is, and call Begin before and End after each launch.
//
// Example: a loop calls scale() ten thousand times with two grids. The first launch of each grid is
// recorded with its memory; the others are counted. Groups are written at the end, and whenever
// their number of launches has doubled.
#pragma once

#include <unistd.h>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "atunner/capture/capture_writer.h"

namespace atunner::capture {

/// Device memory of the program, as the recorder knows it.
class ProgramMemory {
 public:
  struct Allocation {
    uint64_t base = 0, bytes = 0;
  };
  virtual ~ProgramMemory() = default;
  /// The allocation that this address lies in.
  virtual std::optional<Allocation> Find(uint64_t address) const = 0;
  /// No allocation lies below the first or reaches beyond the second.
  virtual std::pair<uint64_t, uint64_t> Bounds() const = 0;
  virtual Status Read(uint64_t address, std::span<char> to) const = 0;
  virtual Status Write(uint64_t address, std::span<const char> from) = 0;
  /// Looks for an allocation around the address that was not seen being made, e.g. of another
  /// process.
  virtual void Discover(uint64_t /*address*/) {}
  /// True if nothing has been written there yet. A real GPU cannot tell.
  virtual bool IsUndefined(uint64_t /*address*/, uint64_t /*bytes*/) const { return false; }
};

struct RecordingLimits {
  size_t launches_of_kernel = 4;                      ///< recorded with their memory
  uint64_t snapshot_bytes = uint64_t{4} << 30;        ///< memory of one launch
  uint64_t all_snapshots_bytes = uint64_t{16} << 30;  ///< of all launches, before compression
};

/// A `__device__` or `__constant__` variable of the module.
struct SymbolPlace {
  std::string name;
  uint64_t address = 0, bytes = 0;
};

/// A launch that is about to begin.
struct LaunchFacts {
  size_t kernel = 0;
  LaunchConfiguration configuration;
  std::vector<std::string> parameters;  ///< as the kernel receives them
  /// Number of a parameter that is a texture's or surface's handle, and what it is of
  std::map<size_t, CapturedParameter> textures;
  std::vector<SymbolPlace> symbols;  ///< of the kernel's module
  std::string obstacle;  ///< why it cannot be repeated, "" if it can: "it takes a texture"
};

class Recording {
 public:
  Recording(Path folder, RecordingLimits limits)
      : folder_(std::move(folder)), limits_(limits), writer_(folder_), process_(getpid()) {}

  /// Number of a module; `ptx` and `cubin` may be empty.
  size_t AddModule(std::string_view ptx, std::string_view cubin, int arch);
  size_t AddKernel(CapturedKernel kernel);

  /// True if Begin will record the launch's memory. Needs no parameters and symbols.
  bool Wants(const LaunchFacts& launch);
  /// Counts the launch. True if End has to be called with what it wrote.
  bool Begin(const LaunchFacts& launch, const ProgramMemory& memory);
  /// `written`: addresses that the launch wrote, ascending; nullopt: unknown, then changes are
  /// found by comparing. `seconds` 0 = unknown.
  void End(const ProgramMemory& memory,
           const std::optional<std::vector<std::pair<uint64_t, uint64_t>>>& written, double seconds,
           Evidence evidence);
  /// Says why the launch that has begun cannot be repeated. Call it before End.
  void LeaveOut(std::string why);
  /// Counts a launch whose memory cannot be recorded, e.g. of a graph.
  void Count(const LaunchFacts& launch);
  /// Forgets the launch that has begun, because the program's call failed.
  void Cancel() { pending_.reset(); }
  /// Time of a launch that was only counted, or of the one that ended. If not every launch is
  /// timed, the others are assumed to have taken the mean time. A first launch that takes much
  /// longer than the others does not count: it also loads code and gets memory for stacks.
  void AddSeconds(const LaunchFacts& launch, double seconds);
  void Note(const std::string& text);
  /// Writes the groups. Call it when the program ends.
  void Finish();

  /// Why recording stopped early, e.g. a full disk; "" if it did not.
  const std::string& problem() const { return problem_; }

 private:
  /// The launch that has begun.
  struct Pending {
    CapturedLaunch launch;
    std::vector<uint64_t> bases;             ///< of launch.buffers
    std::vector<std::string> contents;       ///< of launch.buffers
    std::vector<uint64_t> symbol_addresses;  ///< of launch.symbols
    std::vector<std::string> symbol_contents;
  };

  /// Launches of one kernel and configuration.
  struct Group {
    LaunchGroup launches;      ///< `seconds` are those of the timed launches but the first
    double first_seconds = 0;  ///< of the first timed launch
    uint64_t timed = 0;        ///< launches
    bool considered = false;   ///< for recording with its memory
  };
  struct HashOfGroup {
    size_t operator()(const LaunchGroup& group) const;
  };

  static double MeanSeconds(const Group& group);
  Group& GroupOf(const LaunchFacts& launch);
  /// Counts the launch, and writes the groups if there are twice as many launches as then.
  Group& Counted(const LaunchFacts& launch);
  bool IsActive() const { return problem_.empty() && process_ == getpid(); }
  Status Snapshot(const LaunchFacts& launch, const ProgramMemory& memory);
  /// Index of the buffer around the address, added if it is new; nullopt if there is none.
  std::optional<size_t> BufferAt(uint64_t address, const ProgramMemory& memory);
  /// Replaces addresses in `bytes` by zeros, and lists them.
  std::vector<CapturedPointer> TakePointers(std::string& bytes, const ProgramMemory& memory);
  Status ReadBuffers(const ProgramMemory& memory);
  Status Store(const ProgramMemory& memory,
               const std::optional<std::vector<std::pair<uint64_t, uint64_t>>>& written);
  void Append(const Record& record);
  void Stop(const Error& error);

  Path folder_;
  RecordingLimits limits_;
  CaptureWriter writer_;
  pid_t process_;  ///< a child of the program is not recorded
  std::vector<Group> groups_;
  /// Index in groups_, by kernel and configuration.
  std::unordered_map<LaunchGroup, size_t, HashOfGroup> group_index_;
  std::map<size_t, size_t> recorded_;  ///< launches of a kernel
  uint64_t launches_ = 0, groups_written_at_ = 0, snapshot_bytes_ = 0;
  size_t modules_ = 0, kernels_ = 0;
  std::optional<Pending> pending_;
  std::string problem_;
};

}  // namespace atunner::capture
