// Puts the functions of calls.cpp in front of the driver's.
//
// A program comes by a function of the driver in three ways: it is linked with libcuda, so that the
// preloaded library is found first; by dlsym; or by cuGetProcAddress, as CUDA's runtime does, which
// finds cuGetProcAddress by dlsym. The last two are answered here: the real address is replaced by
// that of the function in calls.cpp which has it as its original. So a version of a function that
// calls.cpp does not know passes through, whatever its name is.
#pragma once

#include "faces/recorder/driver.h"

namespace atunner::recorder {

/// The real driver, which is loaded by the first call.
const Driver& RealDriver();

/// One of the functions of calls.cpp.
struct Intercepted {
  const char* name;  ///< as the driver exports it
  void* ours;
  void** original;  ///< is set by RealDriver
};
/// The list, which calls.cpp has.
const Intercepted* InterceptedBegin();
const Intercepted* InterceptedEnd();

/// Our function in the place of one of the driver; any other address as it is.
void* InPlaceOf(void* address);

}  // namespace atunner::recorder
