// What the allocator throws is caught by a program with a C++ library of its own: on a machine
// without a driver or GPU nothing can be allocated.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <exception>

int main(int count, char** arguments) {
  void* const library = count > 1 ? dlopen(arguments[1], RTLD_NOW) : nullptr;
  if (library == nullptr) return 1;
  using Allocate = void* (*)(long, int, void*);
  const auto allocate = reinterpret_cast<Allocate>(dlsym(library, "atunner_alloc"));
  try {
    (void)allocate(1024, 1000, nullptr);  // no machine has a GPU of this number
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return std::strstr(error.what(), "there is no such GPU") != nullptr ? 0 : 1;
  }
  return 1;
}
