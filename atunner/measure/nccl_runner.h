// Runs NCCL's collectives on GPUs of this machine: one thread for each GPU, in one process.
#pragma once

#include <memory>
#include <string>

#include "atunner/base/files.h"
#include "atunner/base/result.h"
#include "atunner/measure/collective_sweep.h"

namespace atunner {

struct NcclRequest {
  int gpus = 2;
  Path plugin;          ///< libatunner_nccl.so, which lets the runner set the choice of each call
  std::string library;  ///< libnccl.so.2; empty: the first that is found
  int64_t most_bytes = int64_t{256} << 20;
};

class NcclRunner : public CollectiveRunner {
 public:
  /// Sets NCCL's variables in this process: the plugin, no algorithm or protocol from outside, and
  /// no NVLink multicast (NCCL_NVLS_ENABLE=0). kUnavailable without a driver, NCCL or enough GPUs.
  static Result<std::unique_ptr<NcclRunner>> Open(const NcclRequest& request);
  /// Name of the first GPU, and NCCL's version as "2.28.9".
  virtual const std::string& device() const = 0;
  virtual const std::string& version() const = 0;
};

}  // namespace atunner
