#include "faces/program/recorder.h"

#include <fmt/format.h>

#include <cstring>
#include <set>

#include "atunner/base/demangle.h"
#include "atunner/capture/texture_text.h"

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

/// The texture whose handle stands in a parameter; nullptr if there is none.
const vgpu::TextureData* TextureAt(vgpu::VirtualGpu& gpu, const KernelArg& arg, size_t at) {
  uint64_t word = 0;
  std::memcpy(&word, arg.data() + at, sizeof word);
  return gpu.memory().FindTexture(word);
}

/// Why no candidate can be compared with this launch; "" if it can.
std::string ReasonNotToRepeat(const LaunchShape& shape, const LaunchOutcome& outcome) {
  if (IsCutShort(shape, outcome)) return "";
  if (outcome.kind == LaunchOutcome::Kind::kTimeout)
    return "no block of it ends within the time limit of the virtual GPU; run the program with "
           "smaller sizes";
  const std::string& why = outcome.hazards.empty() ? outcome.message : outcome.hazards[0].detail;
  return outcome.completed() ? "" : "it fails in the program itself: " + why;
}

}  // namespace

const Recorder::KnownModule& Recorder::ModuleOf(const ProgramLaunch& launch) {
  const auto [at, is_new] = modules_.try_emplace(launch.module);
  if (is_new) {
    at->second.number = recording_.AddModule(launch.ptx, "", launch.arch);
    if (auto parsed = ptx::Parse(launch.ptx))
      at->second.parsed = std::make_unique<ptx::ValidModule>(*std::move(parsed));
  }
  return at->second;
}

size_t Recorder::KernelOf(const ProgramLaunch& launch) {
  const auto [at, is_new] = kernels_.try_emplace({launch.module, launch.kernel});
  if (is_new)
    at->second = recording_.AddKernel(
        {ModuleOf(launch).number, launch.kernel, Demangled(launch.kernel)});
  return at->second;
}

std::string Recorder::Obstacle(const ProgramLaunch& launch,
                               const capture::LaunchFacts& facts) const {
  for (size_t i = 0; i < launch.args.size(); ++i) {
    const KernelArg& arg = launch.args[i];
    if (arg.size == kTensorMapBytes && launch.entry->params[i].align >= 64)
      return "it takes a tensor map, which cannot be moved to other memory";
    if (facts.textures.contains(i)) continue;
    for (size_t at = 0; at + sizeof(uint64_t) <= arg.size; at += sizeof(uint64_t)) {
      if (TextureAt(gpu_, arg, at) != nullptr)
        return "it takes a texture or a surface with layers or in a structure, which are not "
               "recorded";
    }
  }
  return "";
}

void Recorder::AddTextures(const ProgramLaunch& launch, capture::LaunchFacts& facts) const {
  for (size_t i = 0; i < launch.args.size(); ++i) {
    const KernelArg& arg = launch.args[i];
    if (arg.size != sizeof(uint64_t)) continue;
    const vgpu::TextureData* texture = TextureAt(gpu_, arg, 0);
    const std::string text = texture != nullptr ? capture::TextureText(texture->spec) : "";
    uint64_t handle = 0;
    std::memcpy(&handle, arg.data(), sizeof handle);
    if (!text.empty())
      facts.textures[i] = {
          std::string(sizeof handle, '\0'), {}, text, (handle & vgpu::kSurfaceBit) != 0};
  }
}

void Recorder::AddSymbols(const ProgramLaunch& launch, capture::LaunchFacts& facts) {
  const auto& parsed = ModuleOf(launch).parsed;
  if (parsed == nullptr) return;
  const std::set<std::string> used = UsedNames(*parsed, launch.kernel);
  for (const auto* variables : {&parsed->globals(), &parsed->constants()}) {
    for (const ptx::Variable& variable : *variables) {
      if (!used.contains(variable.name)) continue;
      if (!variable.opaque.empty())
        facts.obstacle = "it reads a texture reference, which is not recorded";
      const auto place = gpu_.FindSymbol(*launch.loaded, variable.name);
      if (variable.opaque.empty() && place)
        facts.symbols.push_back({variable.name, place->first, place->second});
    }
  }
}

bool Recorder::Begin(const ProgramLaunch& launch) {
  capture::LaunchFacts facts;
  facts.kernel = KernelOf(launch);
  facts.configuration = ConfigurationOf(launch.shape);
  if (recording_.Wants(facts)) {
    for (const KernelArg& arg : launch.args)
      facts.parameters.emplace_back(reinterpret_cast<const char*>(arg.data()), arg.size);
    AddTextures(launch, facts);
    facts.obstacle = Obstacle(launch, facts);
    AddSymbols(launch, facts);
  }
  return recording_.Begin(facts, memory_);
}

void Recorder::End(const ProgramLaunch& launch, const LaunchOutcome& outcome) {
  if (const std::string why = ReasonNotToRepeat(launch.shape, outcome); !why.empty())
    recording_.LeaveOut(why);
  std::vector<std::pair<uint64_t, uint64_t>> written;
  for (const AddressRange& range : outcome.written) written.emplace_back(range.begin, range.end);
  recording_.End(memory_, written, 0, Evidence::kPredicted);
}

void Recorder::Forget(const Module* module) {
  modules_.erase(module);
  std::erase_if(kernels_, [&](const auto& known) { return known.first.first == module; });
}

void Recorder::NoteCutShort(const std::string& kernel, const LaunchShape& shape,
                            const LaunchOutcome& outcome) {
  if (!noted_.insert(kernel).second) return;
  recording_.Note(fmt::format(
      "{}: {} of {} blocks ran within the time limit of a launch; later launches see memory that "
      "the others did not write. Smaller sizes run whole",
      kernel, outcome.blocks_executed, shape.grid.Count()));
}

std::string Recorder::Finish() {
  recording_.Finish();
  return recording_.problem();
}

}  // namespace atunner::program
