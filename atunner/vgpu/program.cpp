// A loaded module: its globals in memory, its kernels decoded, its launches spread over the cores.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "atunner/base/clock.h"
#include "atunner/base/digest.h"
#include "atunner/base/random.h"
#include "atunner/vgpu/backend.h"
#include "atunner/vgpu/internal.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

class LoadedProgram : public Program {
 public:
  LoadedProgram(ptx::ValidModule module, Memory& memory) : module_(std::move(module)), memory_(memory) {}
  ~LoadedProgram() override {
    for (uint64_t address : allocations_) memory_.Free(address);
  }

  Status Initialise() {
    ATUNNER_RETURN_IF_ERROR(Place(module_.globals()));
    ATUNNER_RETURN_IF_ERROR(Place(module_.constants()));
    ATUNNER_RETURN_IF_ERROR(LinkReferences(module_.globals()));
    ATUNNER_RETURN_IF_ERROR(LinkReferences(module_.constants()));
    for (const ptx::Function& function : module_.functions()) {
      if (!function.is_entry) continue;
      ATUNNER_TRY(Kernel kernel, Decode(module_, function, symbols_));
      kernels_.emplace(function.name, std::move(kernel));
    }
    return {};
  }

  const ptx::Function* FindEntry(const std::string& entry) const override {
    const auto at = kernels_.find(entry);
    return at == kernels_.end() ? nullptr : at->second.function;
  }

  Result<std::pair<uint64_t, uint64_t>> FindSymbol(const std::string& name) const override {
    for (const auto* list : {&module_.globals(), &module_.constants()}) {
      for (const ptx::Variable& variable : *list) {
        if (variable.name == name) return std::pair(symbols_.at(name), variable.bytes);
      }
    }
    return Fail(ErrorCode::kNotFound, "the module has no symbol '" + name + "'");
  }

  uint64_t StateFingerprint() const override {
    uint64_t print = 0;
    for (const ptx::Variable& variable : module_.globals()) {
      const Digest digest = DigestOf({reinterpret_cast<const char*>(symbols_.at(variable.name)), variable.bytes});
      print = Mix64(print ^ digest.low);
    }
    return print;
  }

  ExecResult Run(const std::string& entry, const LaunchShape& shape, std::span<const std::byte> params,
                 const ExecOptions& options) const override {
    ExecResult result;
    const auto found = kernels_.find(entry);
    if (found == kernels_.end()) {
      result.outcome = {LaunchOutcome::Kind::kRefused, "there is no kernel '" + entry + "'", {}, 0};
      return result;
    }
    Launch launch;
    launch.kernel = &found->second;
    launch.module = &module_;
    launch.memory = &memory_;
    launch.shape = shape;
    launch.params.assign(params.begin(), params.end());
    launch.params.resize(std::max<size_t>(launch.params.size(), found->second.function->param_bytes));
    launch.check = options.check_hazards;
    launch.count = options.count;
    RunBlocks(launch, options, result);
    return result;
  }

 private:
  Status Place(const std::vector<ptx::Variable>& variables) {
    for (const ptx::Variable& variable : variables) {
      ATUNNER_TRY(const uint64_t address, memory_.Allocate(std::max<uint64_t>(variable.bytes, 1)));
      allocations_.push_back(address);
      symbols_[variable.name] = address;
      if (!variable.initial.empty())
        std::memcpy(reinterpret_cast<void*>(address), variable.initial.data(), variable.initial.size());
    }
    return {};
  }

  Status LinkReferences(const std::vector<ptx::Variable>& variables) {
    for (const ptx::Variable& variable : variables) {
      for (const auto& [offset, name] : variable.references) {
        const auto target = symbols_.find(name);
        if (target == symbols_.end())
          return Fail(ErrorCode::kUnsupported, "the initialiser of '" + variable.name + "' refers to '" + name + "'");
        if (offset + 8 > variable.bytes) continue;
        uint64_t value = 0;
        auto* at = reinterpret_cast<std::byte*>(symbols_[variable.name] + offset);
        std::memcpy(&value, at, 8);
        value += target->second;
        std::memcpy(at, &value, 8);
      }
    }
    return {};
  }

  static void RunBlocks(const Launch& launch, const ExecOptions& options, ExecResult& result) {
    const uint64_t total = options.blocks.empty() ? launch.shape.grid.Count() : options.blocks.size();
    const double deadline = SystemClock().Now() + options.deadline_seconds;
    std::atomic<uint64_t> next{0};
    std::atomic<bool> stop{false};
    std::mutex mutex;
    const auto work = [&] {
      Exec x;
      Prepare(x, launch);
      LaunchOutcome outcome;
      while (!stop) {
        const uint64_t i = next++;
        if (i >= total) break;
        const uint64_t block = options.blocks.empty() ? i : options.blocks[i];
        if (block >= launch.shape.grid.Count()) continue;
        RunBlock(x, block, deadline, options.max_warp_instructions_per_block, outcome);
        if (!x.hazards.empty() || outcome.kind != LaunchOutcome::Kind::kCompleted) stop = true;
        if (i % 256 == 255 && SystemClock().Now() > deadline && i + 1 < total) {
          outcome.kind = LaunchOutcome::Kind::kTimeout;
          outcome.message = "the launch did not end within its limit";
          stop = true;
        }
      }
      const std::lock_guard lock(mutex);
      CollectCounts(x, result.counts);
      result.outcome.blocks_executed += x.counts.blocks;
      Merge(x, outcome, result.outcome);
    };
    const uint64_t wanted = options.threads ? options.threads : std::max(1u, std::thread::hardware_concurrency());
    const uint64_t workers = std::min<uint64_t>(wanted, total);
    std::vector<std::thread> threads;
    for (uint64_t i = 1; i < workers; ++i) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
  }

  static void Merge(const Exec& x, const LaunchOutcome& outcome, LaunchOutcome& into) {
    into.hazards.insert(into.hazards.end(), x.hazards.begin(), x.hazards.end());
    if (!x.hazards.empty()) {
      into.kind = LaunchOutcome::Kind::kFaulted;
      into.message = x.hazards.front().where + ": " + x.hazards.front().detail;
    } else if (outcome.kind != LaunchOutcome::Kind::kCompleted && into.kind == LaunchOutcome::Kind::kCompleted) {
      into.kind = outcome.kind;
      into.message = outcome.message;
    }
  }

  ptx::ValidModule module_;
  Memory& memory_;
  std::unordered_map<std::string, uint64_t> symbols_;
  std::vector<uint64_t> allocations_;
  std::map<std::string, Kernel> kernels_;
};

}  // namespace

Result<std::unique_ptr<Program>> Load(ptx::ValidModule module, Memory& memory) {
  auto program = std::make_unique<LoadedProgram>(std::move(module), memory);
  ATUNNER_RETURN_IF_ERROR(program->Initialise());
  return program;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
