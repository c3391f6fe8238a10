// The entry point of the library inside a program.
#include "faces/program/redirect.h"

namespace {

__attribute__((constructor)) void Begin() { atunner::program::RedirectRuntime(); }

}  // namespace
