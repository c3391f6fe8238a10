// A driver whose device memory is a map of texts, for tests.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "faces/recorder/driver.h"

namespace atunner::recorder {

/// State behind the functions of FakeDriver, cleared by it.
struct FakeState {
  std::map<DevicePointer, std::string> memory;
  std::map<void*, std::string> function_names;
  std::map<void*, Module> function_modules;
  std::vector<size_t> parameter_bytes;  ///< of every function; empty: it is not told
  std::vector<DevicePointer> written;   ///< by cuMemcpyHtoD
  int waits = 0;
  int copy_result = 0;
  float milliseconds = 0;
  bool events_ended = false;
};
FakeState& Fake();
/// Functions over a new state.
Driver FakeDriver();

/// A handle with this value.
template <class Handle>
Handle HandleOf(uintptr_t value) {
  return reinterpret_cast<Handle>(value);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace atunner::recorder
