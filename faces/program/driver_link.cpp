// CUDA's driver interface: PTX that a program links while it runs. The result is PTX again.
#include <cstdlib>

#include "atunner/base/files.h"
#include "atunner/ptx/link.h"
#include "faces/program/runtime_state.h"

using namespace atunner::program;  // a file of C functions

namespace {

struct LinkState {
  std::vector<std::string> texts;
  std::string linked;
};

constexpr int kPtxInput = 1, kFatBinaryInput = 2;

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): CUDA's names.
extern "C" {

int cuLinkCreate_v2(unsigned, int*, void**, LinkState** state) {
  *state = new LinkState;
  return kSuccess;
}
int cuLinkAddData_v2(LinkState* state, int kind, void* data, size_t bytes, const char*, unsigned,
                     int*, void**) {
  VirtualDevice& virtual_device = VirtualDevice::Get();
  const Lock lock(virtual_device.mutex);
  const std::string_view given(static_cast<const char*>(data), bytes);
  if (kind == kPtxInput) {
    state->texts.emplace_back(given.substr(0, given.find('\0')));
    return kSuccess;
  }
  if (kind != kFatBinaryInput)
    return virtual_device.Misuse(kInvalidPtx, "cuLinkAddData: machine code cannot be linked");
  const auto binary = ReadFatBinary(given);
  auto ptx = binary ? ChoosePtx(*binary, virtual_device.arch()) : std::unexpected(binary.error());
  if (!ptx)
    return virtual_device.Misuse(kNoKernelImage, "cuLinkAddData: " + ptx.error().ToString());
  state->texts.push_back(*std::move(ptx));
  return kSuccess;
}
int cuLinkAddFile_v2(LinkState* state, int kind, const char* path, unsigned, int*, void**) {
  auto bytes = atunner::ReadFile(path);
  if (!bytes) return 301;  // not found
  return cuLinkAddData_v2(state, kind, bytes->data(), bytes->size(), path, 0, nullptr, nullptr);
}
int cuLinkComplete(LinkState* state, void** image, size_t* bytes) {
  auto linked = atunner::ptx::Link(state->texts);
  if (!linked) {
    VirtualDevice& virtual_device = VirtualDevice::Get();
    const Lock lock(virtual_device.mutex);
    return virtual_device.Misuse(kInvalidPtx, "cuLinkComplete: " + linked.error().ToString());
  }
  state->linked = *std::move(linked);
  *image = state->linked.data();
  if (bytes != nullptr) *bytes = state->linked.size() + 1;
  return kSuccess;
}
int cuLinkDestroy(LinkState* state) {
  delete state;
  return kSuccess;
}
}
// NOLINTEND(readability-identifier-naming)
