// Two kinds of numbers that never mix: a Measurement was timed on the GPU it names; an Estimate is
// the virtual GPU's prediction. Neither converts to the other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace atunner {

/// Timed on a real GPU, with its conditions.
struct Measurement {
  double median_ns = 0;
  double low_ns = 0;  ///< 95 % confidence interval of the median
  double high_ns = 0;
  double minimum_ns = 0;
  std::vector<double> samples_ns;
  int warmups = 0;
  std::string stop_reason;  ///< "interval under 1 %", "sample limit", "raced out", …
  std::string flush;        ///< how L2 was emptied: "memset 120 MiB"
  std::string device;       ///< "NVIDIA H200"
  std::string driver;       ///< "580.159.04, CUDA 13.0"
  double sm_mhz = 0;        ///< clock at the end of the samples
  double memory_mhz = 0;
  double power_watts = 0;
  double energy_joules = 0;  ///< of one run, the whole board's, when energy was asked for; else 0
  std::string throttle;      ///< NVML's throttle reasons, "none"
  uint64_t seed = 0;
};

/// Predicted by the virtual GPU for a named profile.
struct Estimate {
  struct Part {
    std::string name;  ///< "issue", "dram", "latency", "launch", …
    double ns = 0;
    bool overlapped = false;  ///< hidden behind another part: shown, not added
  };
  double time_ns = 0;
  double low_ns = 0;  ///< how sure: the interval that the model's known error gives
  double high_ns = 0;
  std::string limiter;      ///< the part that bounds the time
  std::vector<Part> parts;  ///< those not overlapped add up to time_ns
  std::string device;       ///< profile name
  uint64_t blocks_executed = 0;
  uint64_t blocks_total = 0;
  double dram_bytes = 0;
  double flops = 0;
  double occupancy = 0;      ///< resident warps / most resident warps
  double energy_joules = 0;  ///< of one run, the whole board's; 0: the profile states no power
};

/// Two kernels timed interleaved (A B B A …) in one run.
struct Comparison {
  double ratio = 1;  ///< baseline time / candidate time: above 1 = the candidate is faster
  double low = 1;    ///< 95 % bootstrap interval
  double high = 1;
  int pairs = 0;
};

}  // namespace atunner
