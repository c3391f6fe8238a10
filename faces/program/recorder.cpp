#include "faces/program/recorder.h"

#include <fmt/format.h>

#include <cstring>
#include <set>

namespace atunner::program {
namespace {

/// Bytes of a CUtensorMap, which the driver encodes: its contents cannot be moved to other memory.
constexpr uint64_t kTensorMapBytes = 128;

void AddNames(const ptx::Operand& operand, std::set<std::string>& names) {
  if (!operand.name.empty()) names.insert(operand.name);
  for (const ptx::Operand& element : operand.elements) AddNames(element, names);
}

/// Names of the variables and functions that a kernel uses, directly or through functions.
std::set<std::string> UsedNames(const ptx::ValidModule& module, const std::string& entry) {
  std::set<std::string> used;
  std::vector<std::string> left = {entry};
  while (!left.empty()) {
    const ptx::Function* function = module.Find(left.back());
    left.pop_back();
    if (function == nullptr) continue;
    std::set<std::string> names;
    for (const ptx::Instruction& instruction : function->body) {
      for (const ptx::Operand& operand : instruction.operands) AddNames(operand, names);
    }
    for (const std::string& name : names) {
      if (used.insert(name).second) left.push_back(name);
    }
  }
  return used;
}

capture::LaunchConfiguration ConfigurationOf(const LaunchShape& shape) {
  return {shape.grid,        shape.block,       shape.cluster, shape.dynamic_shared_bytes,
          shape.cooperative, shape.programmatic};
}

/// Why no candidate can be compared with this launch; "" if it can.
std::string ReasonNotToRepeat(const LaunchOutcome& outcome) {
  // Judges repeat a launch some ten times for each candidate: here about a minute for each time.
  constexpr uint64_t kMostInstructions = 1'000'000'000;
  const std::string smaller = "; run the program with smaller sizes";
  if (outcome.kind == LaunchOutcome::Kind::kTimeout)
    return "it does not end within the time limit of the virtual GPU" + smaller;
  if (!outcome.completed()) return "it fails in the program itself: " + outcome.message;
  if (outcome.warp_instructions > kMostInstructions)
    return fmt::format(
               "it executes {:.1e} instructions of warps, too many to repeat on the virtual "
               "GPU",
               static_cast<double>(outcome.warp_instructions)) +
           smaller;
  return "";
}

}  // namespace

const Recorder::KnownModule& Recorder::ModuleOf(const Module* module, const std::string& ptx,
                                                int arch) {
  const auto [at, is_new] = modules_.try_emplace(module);
  if (is_new) {
    at->second.number = recording_.AddModule(ptx, "", arch);
    if (auto parsed = ptx::Parse(ptx))
      at->second.parsed = std::make_unique<ptx::ValidModule>(*std::move(parsed));
  }
  return at->second;
}

size_t Recorder::KernelOf(const Kernel& kernel, const std::string& ptx, int arch) {
  const auto [at, is_new] = kernels_.try_emplace({kernel.module, kernel.name});
  if (is_new)
    at->second = recording_.AddKernel(
        {ModuleOf(kernel.module, ptx, arch).number, kernel.name, FullName(kernel.name)});
  return at->second;
}

std::string Recorder::Obstacle(const ptx::Function& entry,
                               const std::vector<std::string>& parameters) const {
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string& bytes = parameters[i];
    if (bytes.size() == kTensorMapBytes && entry.params[i].align >= 64)
      return "it takes a tensor map, which cannot be moved to other memory";
    for (size_t at = 0; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at, sizeof word);
      if (gpu_.IsTexture(word)) return "it takes a texture or a surface, which are not recorded";
    }
  }
  return "";
}

bool Recorder::Begin(
    const Kernel& kernel, const std::string& ptx, int arch, const ptx::Function& entry,
    const LaunchShape& shape, void** params,
    const std::function<std::optional<std::pair<uint64_t, uint64_t>>(const std::string&)>&
        find_symbol) {
  capture::LaunchFacts facts;
  facts.kernel = KernelOf(kernel, ptx, arch);
  facts.configuration = ConfigurationOf(shape);
  if (!recording_.Wants(facts)) {
    recording_.Count(facts);
    return false;
  }
  for (size_t i = 0; i < entry.params.size(); ++i)
    facts.parameters.emplace_back(static_cast<const char*>(params[i]), entry.params[i].bytes);
  facts.obstacle = Obstacle(entry, facts.parameters);
  if (const auto& parsed = ModuleOf(kernel.module, ptx, arch).parsed) {
    const std::set<std::string> used = UsedNames(*parsed, kernel.name);
    for (const auto* variables : {&parsed->globals(), &parsed->constants()}) {
      for (const ptx::Variable& variable : *variables) {
        if (!variable.opaque.empty() && used.contains(variable.name))
          facts.obstacle = "it reads a texture reference, which is not recorded";
        if (!variable.opaque.empty() || !used.contains(variable.name)) continue;
        if (const auto place = find_symbol(variable.name))
          facts.symbols.push_back({variable.name, place->first, place->second});
      }
    }
  }
  return recording_.Begin(facts, memory_);
}

void Recorder::End(const LaunchOutcome& outcome) {
  if (const std::string why = ReasonNotToRepeat(outcome); !why.empty()) recording_.LeaveOut(why);
  std::vector<std::pair<uint64_t, uint64_t>> written;
  for (const AddressRange& range : outcome.written) written.emplace_back(range.begin, range.end);
  recording_.End(memory_, written, 0, Evidence::kPredicted);
}

std::string Recorder::Finish() {
  recording_.Finish();
  return recording_.problem();
}

}  // namespace atunner::program
