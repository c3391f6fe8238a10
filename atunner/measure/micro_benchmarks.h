// Timing of small kernels, shared by the probe and the calibration.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/compile/compiler.h"
#include "atunner/device/device.h"

namespace atunner {

class MicroBenchmarks {
 public:
  /// Compiles `entries` of `text`. Before each sample `flushed` bytes are written, to empty L2; 0 =
  /// leave the cache.
  static Result<MicroBenchmarks> Make(TimedDevice& device, Compiler& compiler,
                                      const std::string& name, std::string_view text,
                                      const std::vector<std::string>& entries,
                                      uint64_t flushed = 0);

  /// Median time in ns of `launches` launches in a row.
  Result<double> Time(const char* entry, uint32_t grid, uint32_t block,
                      const std::vector<KernelArg>& args, int launches = 1) const;

  /// 256 bytes for results that only keep the compiler from removing their computation.
  const Buffer& sink() const { return *sink_; }

 private:
  explicit MicroBenchmarks(TimedDevice& device) : device_(&device) {}

  TimedDevice* device_;
  std::unique_ptr<LoadedModule> module_;
  std::unique_ptr<Buffer> sink_, flushed_;
  std::unique_ptr<Event> start_, end_;
};

KernelArg IntArg(int64_t value);
KernelArg LongArg(int64_t value);

}  // namespace atunner
