#include "atunner/vgpu/checks/warp_exchange.h"

#include <set>

#include "atunner/vgpu/analysis/used_bytes.h"
#include "atunner/vgpu/checks/access.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

/// True if the value of the load `op` contributes to a stored value, not only to comparisons.
bool IsStoredLater(const Kernel& kernel, const Op& op) {
  const Code* code = CodeOf(kernel, op);
  if (code == nullptr) return false;
  const std::vector<ptx::Instruction>& body = code->function->body;
  const std::vector<Use> uses = UsesOf(*code->function);
  const auto load = static_cast<size_t>(&op - kernel.ops.data()) - code->first_op;
  std::set<int> derived(uses[load].writes.begin(), uses[load].writes.end());
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < body.size(); ++i) {
      if (body[i].opcode == "setp" ||
          !std::ranges::any_of(uses[i].values, [&](int r) { return derived.contains(r); }))
        continue;
      if (body[i].opcode == "st" || body[i].opcode == "atom" || body[i].opcode == "red")
        return true;
      for (int reg : uses[i].writes) more |= derived.insert(reg).second;
    }
  }
  return false;
}

bool Exchanges(BlockState& x, const Op& op) {
  const auto [known, is_new] = x.log.analyses.try_emplace({&op, sizeof(Op) - 4}, false);
  if (is_new) known->second = IsStoredLater(*x.kernel, op);
  return known->second;
}

/// The entry of a shared address, which may contain the rank of this block in its cluster.
WarpExchange& ExchangeAt(BlockState& x, uint64_t address) {
  if (x.shadow.exchanges.empty()) x.shadow.exchanges.resize(x.shadow.words.size());
  return x.shadow.exchanges[(address & ((uint64_t{1} << kRankShift) - 1)) / 4];
}

/// True if `lane` executed the access of another lane of its warp too, and the warp was not
/// synchronised since.
bool OutOfStep(const BlockState& x, const WarpExchange::Access& access, int lane) {
  return access.epoch == x.shadow.epoch && access.sync == x.warp->sync_epoch &&
         access.thread / kLanes == x.warp->index && access.thread != x.ThreadOf(lane) &&
         (access.lanes >> lane & 1u) != 0;
}

void Note(const BlockState& x, const Op& op, uint32_t mask, int lane,
          WarpExchange::Access& access) {
  access = {x.shadow.epoch, x.warp->sync_epoch, mask, LineOf(x, op),
            static_cast<uint16_t>(x.ThreadOf(lane))};
}

void ReportOutOfStep(BlockState& x, const Op& op, int lane, uint64_t address,
                     const WarpExchange::Access& access, const std::string& what) {
  Hazard::Site other = SiteOf(x, op, x.block, access.thread);
  other.line = access.line;
  Report(x, op, Hazard::Kind::kRace, lane,
         what + " by thread " + std::to_string(access.thread) + " of the same warp at line " +
             std::to_string(access.line) + " with no __syncwarp() between",
         {Space::kShared, address, other});
}

}  // namespace

void CheckExchangedRead(BlockState& x, const Op& op, uint32_t mask, uint32_t distinct,
                        const uint64_t* addresses) {
  if (!op.is_volatile || op.width * op.list_size != 4 || !Exchanges(x, op)) return;
  ForLanes(distinct, [&](int l) {
    if (x.stop || IsRemote(x, addresses[l])) return;
    WarpExchange& word = ExchangeAt(x, addresses[l]);
    if (OutOfStep(x, word.write, l))
      ReportOutOfStep(x, op, l, addresses[l], word.write,
                      "reads shared address " + Hex(addresses[l]) + ", written");
    Note(x, op, mask, l, word.read);
  });
}

void CheckExchangedWrite(BlockState& x, const Op& op, uint32_t mask, int lane, uint64_t address,
                         bool same_value) {
  if (!op.is_volatile || op.width * op.list_size != 4 || IsRemote(x, address)) return;
  WarpExchange& word = ExchangeAt(x, address);
  if (!same_value && OutOfStep(x, word.read, lane))
    ReportOutOfStep(x, op, lane, address, word.read,
                    "writes shared address " + Hex(address) + ", read");
  const bool together = OutOfStep(x, word.write, lane) && word.write.line == LineOf(x, op);
  Note(x, op, together || same_value ? 0 : mask, lane, word.write);
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
