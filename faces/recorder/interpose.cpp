#include "faces/recorder/interpose.h"

#include <dlfcn.h>

#include <cstring>
#include <unordered_map>

namespace {

using Lookup = void* (*)(void*, const char*);

}  // namespace

// The loader finds RTLD_NEXT and the namespace by the return address of the caller, so calls that
// are not answered here jump to the real function.
extern "C" {
// NOLINTBEGIN(readability-identifier-naming): seen by the assembler
__attribute__((visibility("hidden"))) Lookup atunner_real_dlsym = nullptr;
__attribute__((visibility("hidden"), used)) void* atunner_answer_dlsym(void*, const char*);
// NOLINTEND(readability-identifier-naming)
}
asm(R"(
  .text
  .globl dlsym
  .type dlsym, @function
dlsym:
  .cfi_startproc
  endbr64
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call atunner_answer_dlsym
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  testq %rax, %rax
  jz 1f
  ret
1:
  jmp *atunner_real_dlsym(%rip)
  .cfi_endproc
  .size dlsym, .-dlsym
)");

namespace atunner::recorder {
namespace {

Lookup RealLookup() {
  if (atunner_real_dlsym == nullptr) {
    void* found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (found == nullptr) found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    atunner_real_dlsym = reinterpret_cast<Lookup>(found);
  }
  return atunner_real_dlsym;
}

struct Loaded {
  Driver driver;
  std::unordered_map<void*, void*> ours;  ///< by the address of the original
};

Loaded* Load() {
  auto* loaded = new Loaded;  // never deleted: used until the end
  void* library = dlopen("libcuda.so.1", RTLD_LAZY);
  if (library == nullptr) return loaded;
  const Lookup lookup = RealLookup();
#define ATUNNER_DRIVER(name, parameters) \
  loaded->driver.name = reinterpret_cast<int(*) parameters>(lookup(library, #name));
#include "faces/recorder/driver.def"
#undef ATUNNER_DRIVER
  for (const Intercepted* one = InterceptedBegin(); one != InterceptedEnd(); ++one) {
    *one->original = lookup(library, one->name);
    if (*one->original != nullptr) loaded->ours[*one->original] = one->ours;
  }
  return loaded;
}

const Loaded& TheDriver() {
  static const Loaded* loaded = Load();
  return *loaded;
}

bool IsIntercepted(const char* name) {
  if (std::strncmp(name, "cu", 2) != 0) return false;
  for (const Intercepted* one = InterceptedBegin(); one != InterceptedEnd(); ++one) {
    if (std::strcmp(one->name, name) == 0) return true;
  }
  return false;
}

}  // namespace

const Driver& RealDriver() { return TheDriver().driver; }

void* InPlaceOf(void* address) {
  const auto& ours = TheDriver().ours;
  const auto found = ours.find(address);
  return found == ours.end() ? address : found->second;
}

}  // namespace atunner::recorder

/// Our function for one of the driver; nullptr leaves the call to the real dlsym.
void* atunner_answer_dlsym(void* handle, const char* name) {
  using namespace atunner::recorder;
  const Lookup lookup = RealLookup();
  if (name == nullptr || !IsIntercepted(name)) return nullptr;
  void* found = lookup(handle, name);
  return found == nullptr ? nullptr : InPlaceOf(found);
}
