// Hazard reports: one per kind and operation, with source line, thread and allocation.
#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

constexpr size_t kMaxHazards = 16;  // reports of one block
// reports of all blocks of one host thread, when the launch keeps going
constexpr size_t kMaxHazardsKept = 256;

}  // namespace

Hazard::Site SiteOf(const BlockState& x, const Op& op, uint64_t block, uint32_t thread) {
  const OpLocation& place = LocationOf(*x.kernel, op);
  return {place.source_line ? x.launch->module->SourceFile(place.source_file) : "", place.Shown(),
          block, thread};
}

namespace {
/// True if the kernel can go on after a hazard of this kind, with defined behaviour.
bool IsHarmless(Hazard::Kind kind) {
  const HazardGroup group = GroupOf(kind);
  return (group == HazardGroup::kInit && kind != Hazard::Kind::kUninitialisedShared) ||
         kind == Hazard::Kind::kRace;
}

Hazard Describe(const BlockState& x, const Op& op, Hazard::Kind kind, int lane,
                const std::string& what, const Fault& fault) {
  Hazard hazard;
  hazard.kind = kind;
  hazard.kernel = x.kernel->function->name;
  hazard.site = SiteOf(x, op, x.block, x.warp ? x.ThreadOf(lane) : 0);
  const std::string& file = hazard.site.file;
  hazard.where = (LocationOf(*x.kernel, op).source_line ? file.substr(file.rfind('/') + 1) + ":"
                                                        : "PTX line ") +
                 std::to_string(hazard.site.line);
  hazard.detail = "block " + std::to_string(x.block) + ", thread " +
                  std::to_string(hazard.site.thread) + " " + what;
  hazard.other = fault.other;
  hazard.address = fault.address;
  hazard.space = fault.space == Space::kGlobal   ? "global"
                 : fault.space == Space::kShared ? "shared"
                 : fault.space == Space::kLocal  ? "local"
                                                 : "";
  if (fault.space == Space::kGlobal) hazard.allocation = x.launch->memory->Describe(fault.address);
  return hazard;
}

bool Wanted(const BlockState& x, Hazard::Kind kind) {
  return ((x.launch->options.groups | static_cast<uint8_t>(HazardGroup::kMemory)) &
          static_cast<uint8_t>(GroupOf(kind))) != 0;
}

std::pair<uint32_t, Hazard::Kind> KeyOf(const BlockState& x, const Op& op, Hazard::Kind kind) {
  return {static_cast<uint32_t>(&op - x.kernel->ops.data()), kind};
}
}  // namespace

bool ReportedBefore(BlockState& x, const Op& op, Hazard::Kind kind) {
  const auto at = x.log.reported.find(KeyOf(x, op, kind));
  if (at == x.log.reported.end()) return false;
  ++x.log.hazards[at->second].count;
  x.stop = x.stop || !x.launch->options.keep_going || !IsHarmless(kind);
  return true;
}

void Report(BlockState& x, const Op& op, Hazard::Kind kind, int lane, const std::string& what,
            const Fault& fault) {
  // Hazards that end the block are reported even if they were not asked for.
  const HazardGroup group = GroupOf(kind);
  if (!Wanted(x, kind) && (group == HazardGroup::kInit || group == HazardGroup::kRace)) return;
  x.stop = x.stop || !x.launch->options.keep_going || !IsHarmless(kind);
  if (ReportedBefore(x, op, kind)) return;
  if (x.log.hazards.size() >= (x.launch->options.keep_going ? kMaxHazardsKept : kMaxHazards))
    return;
  x.log.reported[KeyOf(x, op, kind)] = x.log.hazards.size();
  x.log.hazards.push_back(Describe(x, op, kind, lane, what, fault));
}

void ReportUnwritten(BlockState& x, const Op& op, int lane, const std::string& what,
                     const Fault& fault) {
  if (x.shadow.unwritten_read || !Wanted(x, Hazard::Kind::kUninitialisedShared)) return;
  const auto [known, is_new] = x.log.analyses.try_emplace({&op, 0}, false);
  if (is_new) known->second = OnlyChosenBetween(*x.kernel, op);
  if (known->second) return;
  x.shadow.unwritten_read = Describe(x, op, Hazard::Kind::kUninitialisedShared, lane, what, fault);
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
