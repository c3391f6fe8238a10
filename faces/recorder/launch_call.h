// A launch as the program asked for it.
#pragma once

#include "atunner/capture/capture.h"
#include "faces/recorder/driver.h"

namespace atunner::recorder {

struct LaunchCall {
  Function function = nullptr;  ///< or a Kernel
  capture::LaunchConfiguration configuration;
  Stream stream = nullptr;  ///< for the functions without `_ptsz`
  void** params = nullptr;  ///< one address per parameter, or nullptr
  void** extra = nullptr;   ///< else the parameters in one buffer
  /// The attributes of cuLaunchKernelEx, of which the configuration has some; nullptr otherwise.
  const LaunchConfig* config = nullptr;
};

/// Makes the program's own call. Refers to a function object that must outlive it.
class OriginalLaunch {
 public:
  template <class Call>
  explicit OriginalLaunch(const Call& call)
      : object_(&call),
        run_([](const void* object) { return (*static_cast<const Call*>(object))(); }) {}
  int operator()() const { return run_(object_); }

 private:
  const void* object_;
  int (*run_)(const void*);
};

}  // namespace atunner::recorder
