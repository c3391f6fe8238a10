// Small kernels of our own, timed: what the probe and the calibration share.
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
  /// Compiles `entries` of `text`. With `flushed` bytes so many are written before each sample, to
  /// empty L2.
  static Result<MicroBenchmarks> Make(TimedDevice& device, Compiler& compiler,
                                      const std::string& name, std::string_view text,
                                      const std::vector<std::string>& entries,
                                      uint64_t flushed = 0);

  /// Median time in ns of so many launches in a row.
  Result<double> Time(const char* entry, uint32_t grid, uint32_t block,
                      const std::vector<KernelArg>& args, int launches = 1) const;

  /// 256 bytes for what the compiler must believe to be wanted.
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
