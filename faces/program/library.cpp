// The library's begin inside of a program.
#include "faces/program/redirect.h"

namespace {

__attribute__((constructor)) void Begin() { atunner::program::RedirectRuntime(); }

}  // namespace
