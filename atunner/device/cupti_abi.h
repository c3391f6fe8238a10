// The part of CUPTI's C interface that atunner uses, declared here so that building needs no CUDA
// headers. Layouts: cupti_profiler_host.h, cupti_profiler_target.h, cupti_target.h and
// cupti_range_profiler.h of CUDA 12.6 to 13.0. Every structure begins with its own size, by which
// the library knows its version; later versions add fields at the end.
#pragma once

#include <cstddef>
#include <cstdint>

namespace atunner::cupti {

using ResultCode = int;
using HostObject = struct HostObjectTag;
using ProfilerObject = struct ProfilerObjectTag;

// CUptiResult
constexpr ResultCode kSuccess = 0;
constexpr ResultCode kHardwareBusy = 26;
constexpr ResultCode kVirtualizedDevice = 33;
constexpr ResultCode kInsufficientPrivileges = 35;
constexpr ResultCode kOldProfilerInitialized = 36;
constexpr ResultCode kMultipleSubscribers = 39;
constexpr ResultCode kVirtualizedPrivileges = 40;
constexpr ResultCode kConfidentialComputing = 41;
constexpr ResultCode kMigDevice = 43;

constexpr int kProfilerTypeRange = 0;  // CUPTI_PROFILER_TYPE_RANGE_PROFILER
constexpr int kAutoRange = 1;          // CUPTI_AutoRange: each kernel is a range
constexpr int kUserReplay = 3;         // CUPTI_UserReplay: the caller repeats the launches

/// Bytes of `Type` up to its last field: what structSize must say.
#define ATUNNER_CUPTI_SIZE(Type, last) (offsetof(Type, last) + sizeof(Type::last))

struct Empty {  // cuptiProfilerInitialize, cuptiProfilerDeInitialize
  size_t size = ATUNNER_CUPTI_SIZE(Empty, priv);
  void* priv = nullptr;
};

struct ChipName {
  size_t size = ATUNNER_CUPTI_SIZE(ChipName, name);
  void* priv = nullptr;
  size_t device = 0;
  const char* name = nullptr;  ///< out
};

struct SupportedChips {
  size_t size = ATUNNER_CUPTI_SIZE(SupportedChips, names);
  void* priv = nullptr;
  size_t count = 0;                    ///< out
  const char* const* names = nullptr;  ///< out
};

struct HostInitialize {
  size_t size = ATUNNER_CUPTI_SIZE(HostInitialize, host);
  void* priv = nullptr;
  int type = kProfilerTypeRange;
  const char* chip = nullptr;
  const uint8_t* availability = nullptr;
  HostObject* host = nullptr;  ///< out
};

struct HostDeinitialize {
  size_t size = ATUNNER_CUPTI_SIZE(HostDeinitialize, host);
  void* priv = nullptr;
  HostObject* host = nullptr;
};

struct AddMetrics {
  size_t size = ATUNNER_CUPTI_SIZE(AddMetrics, count);
  void* priv = nullptr;
  HostObject* host = nullptr;
  const char** metrics = nullptr;
  size_t count = 0;
};

struct ConfigSize {
  size_t size = ATUNNER_CUPTI_SIZE(ConfigSize, bytes);
  void* priv = nullptr;
  HostObject* host = nullptr;
  size_t bytes = 0;  ///< out
};

struct ConfigImage {
  size_t size = ATUNNER_CUPTI_SIZE(ConfigImage, image);
  void* priv = nullptr;
  HostObject* host = nullptr;
  size_t bytes = 0;
  uint8_t* image = nullptr;
};

struct PassCount {
  size_t size = ATUNNER_CUPTI_SIZE(PassCount, passes);
  void* priv = nullptr;
  size_t bytes = 0;
  uint8_t* image = nullptr;
  size_t passes = 0;  ///< out
};

struct EvaluateValues {
  size_t size = ATUNNER_CUPTI_SIZE(EvaluateValues, values);
  void* priv = nullptr;
  HostObject* host = nullptr;
  const uint8_t* data = nullptr;
  size_t bytes = 0;
  size_t range = 0;
  const char** metrics = nullptr;
  size_t count = 0;
  double* values = nullptr;  ///< out
};

struct RangeEnable {
  size_t size = ATUNNER_CUPTI_SIZE(RangeEnable, profiler);
  void* priv = nullptr;
  void* context = nullptr;
  ProfilerObject* profiler = nullptr;  ///< out
};

struct RangeObject {  // cuptiRangeProfilerDisable, cuptiRangeProfilerStart
  size_t size = ATUNNER_CUPTI_SIZE(RangeObject, profiler);
  void* priv = nullptr;
  ProfilerObject* profiler = nullptr;
};

struct RangeStop {
  size_t size = ATUNNER_CUPTI_SIZE(RangeStop, all_passes);
  void* priv = nullptr;
  ProfilerObject* profiler = nullptr;
  size_t pass = 0;         ///< out
  size_t nesting = 0;      ///< out
  uint8_t all_passes = 0;  ///< out: no further pass is needed
};

struct RangeConfig {
  size_t size = ATUNNER_CUPTI_SIZE(RangeConfig, target_nesting);
  void* priv = nullptr;
  ProfilerObject* profiler = nullptr;
  size_t config_bytes = 0;
  const uint8_t* config = nullptr;
  size_t data_bytes = 0;
  uint8_t* data = nullptr;
  int range = kAutoRange;
  int replay = kUserReplay;
  size_t ranges_per_pass = 0;
  uint16_t nesting_levels = 1;
  uint16_t least_nesting = 1;
  size_t pass = 0;
  uint16_t target_nesting = 0;
};

struct DataSize {
  size_t size = ATUNNER_CUPTI_SIZE(DataSize, bytes);
  void* priv = nullptr;
  ProfilerObject* profiler = nullptr;
  const char** metrics = nullptr;
  size_t count = 0;
  size_t ranges = 0;
  uint32_t tree_nodes = 0;
  size_t bytes = 0;  ///< out
};

struct DataInitialize {
  size_t size = ATUNNER_CUPTI_SIZE(DataInitialize, data);
  void* priv = nullptr;
  ProfilerObject* profiler = nullptr;
  size_t bytes = 0;
  uint8_t* data = nullptr;
};

struct DecodeData {
  size_t size = ATUNNER_CUPTI_SIZE(DecodeData, dropped);
  void* priv = nullptr;
  ProfilerObject* profiler = nullptr;
  size_t dropped = 0;  ///< out: ranges for which there was no room
};

struct DataInfo {
  size_t size = ATUNNER_CUPTI_SIZE(DataInfo, ranges);
  void* priv = nullptr;
  const uint8_t* data = nullptr;
  size_t bytes = 0;
  size_t ranges = 0;  ///< out
};

}  // namespace atunner::cupti
