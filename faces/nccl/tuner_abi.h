// NCCL's tuner interface, versions 4 to 6, as far as this plugin needs it. Source: the headers
// tuner_v4.h, tuner_v5.h and nccl_tuner.h of NCCL 2.26 to 2.30. NCCL looks for the newest symbol
// that it knows: v4 since 2.26.2, v5 since 2.28.3, v6 since 2.30.2.
#pragma once

#include <cstddef>
#include <cstdint>

namespace atunner::nccl {

/// ncclResult_t
inline constexpr int kSuccess = 0, kSystemError = 2;
/// In the cost table: NCCL cannot run this algorithm with this protocol here.
inline constexpr float kImpossible = -1.0F;

/// ncclDebugLogger_t: level 3 is INFO, flag 64 is TUNING.
using Logger = void (*)(int level, unsigned long flags, const char* file, int line,
                        const char* format, ...);
inline constexpr int kLogWarn = 2, kLogInfo = 3;
inline constexpr unsigned long kLogTuning = 64;

/// `costs` is a table of floats, [algorithms][protocols]; `channels` 0 leaves their number to NCCL.
using GetCollInfo = int (*)(void* context, int collective, size_t bytes, int pipe_ops,
                            float** costs, int algorithms, int protocols, int registered,
                            int* channels);

struct TunerV4 {
  const char* name;
  int (*init)(size_t ranks, size_t nodes, Logger logger, void** context);
  GetCollInfo get_coll_info;
  int (*destroy)(void* context);
};

/// The last two arguments of init describe NVLink and NCCL's cost constants; both stay as they are.
struct TunerV5 {
  const char* name;
  int (*init)(void** context, uint64_t communicator, size_t ranks, size_t nodes, Logger logger,
              void* nvlink, void* constants);
  GetCollInfo get_coll_info;
  int (*finalize)(void* context);
};

struct TunerV6 {
  const char* name;
  int (*init)(void** context, uint64_t communicator, size_t ranks, size_t nodes, Logger logger,
              void* nvlink, void* constants);
  GetCollInfo get_coll_info;
  int (*finalize)(void* context);
  int (*get_chunk_size)(void* context, int collective, size_t bytes, int algorithm, int protocol,
                        int channels, size_t* chunk);  ///< nullptr: NCCL's own
};

}  // namespace atunner::nccl
