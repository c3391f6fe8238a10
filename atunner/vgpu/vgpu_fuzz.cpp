// Whatever PTX says, loading and running it ends in an error or a report. Bytes become a module,
// its kernels run with all checks and once more counting.
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/vgpu/engine.h"

namespace atunner::vgpu {
namespace {

/// Every parameter of eight bytes is the address of a small allocation.
std::vector<std::byte> Parameters(uint64_t bytes, uint64_t address) {
  std::vector<std::byte> params(bytes);
  for (size_t i = 0; i + 8 <= params.size(); i += 8) std::memcpy(&params[i], &address, 8);
  return params;
}

void Run(std::string_view text, bool count) {
  auto module = ptx::Parse(text);
  if (!module) return;
  std::vector<std::pair<std::string, uint64_t>> entries;
  for (const ptx::Function& function : module->functions()) {
    if (function.is_entry && function.param_bytes <= 4096)
      entries.emplace_back(function.name, function.param_bytes);
  }
  Memory memory(uint64_t{1} << 24);
  if (!count) memory.Track();
  const auto data = memory.Allocate(4096);
  auto program = LoadProgram(*std::move(module), memory);
  if (!program || !data) return;
  ExecOptions options;
  options.check_global = options.check_hazards = options.keep_going = !count;
  options.count = options.count_lines = options.timeline = count;
  options.threads = 1;
  options.deadline_seconds = 1;
  options.max_warp_instructions_per_block = 20000;
  for (const auto& [name, bytes] : entries)
    (void)(*program)->Run(name, {{2, 1, 1}, {64, 1, 1}, {1, 1, 1}, 1024}, Parameters(bytes, *data),
                          options);
}

}  // namespace

void FuzzEngine(std::string_view text) {
  Run(text, false);
  Run(text, true);
}

}  // namespace atunner::vgpu

#ifdef ATUNNER_FUZZER  // tests call the function above
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  atunner::vgpu::FuzzEngine({reinterpret_cast<const char*>(data), size});
  return 0;
}
#endif
