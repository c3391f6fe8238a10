#include "atunner/vgpu/analysis/memory_use.h"

#include <algorithm>
#include <initializer_list>

namespace atunner::vgpu {
namespace {

bool Names(const ptx::Instruction& i, std::string_view space) {
  return std::ranges::any_of(i.modifiers,
                             [&](const std::string& m) { return m.starts_with(space); });
}

uint8_t SpaceOf(const ptx::Instruction& i) {
  if (Names(i, "param") || Names(i, "const")) return 0;
  if (Names(i, "global")) return kGlobalSpace;
  if (Names(i, "shared")) return kSharedSpace;
  if (Names(i, "local")) return kLocalSpace;
  return kAnySpace;
}

bool IsOneOf(std::string_view opcode, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, opcode) != names.end();
}

/// Copies name the space of their destination first.
MemoryUse CopyUse(const ptx::Instruction& i) {
  for (const std::string& modifier : i.modifiers) {
    if (modifier.starts_with("shared")) return {.writes = kSharedSpace, .asynchronous = true};
    if (modifier == "global") return {.writes = kGlobalSpace, .asynchronous = true};
  }
  return {};
}

}  // namespace

MemoryUse MemoryUseOf(const ptx::Instruction& i) {
  const std::string& o = i.opcode;
  if (IsOneOf(o, {"ld", "ldu"})) return {.reads = SpaceOf(i)};
  if (o == "st") return {.writes = SpaceOf(i)};
  if (o == "red") return {.writes = SpaceOf(i), .asynchronous = i.Has("async")};
  if (o == "atom") return {.reads = SpaceOf(i), .writes = SpaceOf(i)};
  if (o == "ldmatrix") return {.reads = kSharedSpace};
  if (o == "stmatrix") return {.writes = kSharedSpace};
  if (o == "wmma" && i.Has("load")) return {.reads = SpaceOf(i)};
  if (o == "wmma" && i.Has("store")) return {.writes = SpaceOf(i)};
  if (o == "wgmma" && i.Has("mma_async")) return {.reads = kSharedSpace, .asynchronous = true};
  if (IsOneOf(o, {"tex", "tld4", "suld"})) return {.reads = kGlobalSpace};
  if (IsOneOf(o, {"sust", "sured", "multimem"}))
    return {.reads = kGlobalSpace, .writes = kGlobalSpace, .asynchronous = true};
  if (o == "cp") return CopyUse(i);
  if (o == "tensormap") return {.writes = kGlobalSpace | kSharedSpace, .asynchronous = true};
  return {};
}

bool IsWait(const ptx::Instruction& i) {
  return i.opcode == "mbarrier" && (i.Has("test_wait") || i.Has("try_wait"));
}

}  // namespace atunner::vgpu
