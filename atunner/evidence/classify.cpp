#include "atunner/evidence/classify.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <utility>

#include "atunner/evidence/what_if.h"

namespace atunner::evidence {
namespace {

#define ATUNNER_THRESHOLD(id, value, unit, meaning, source) constexpr double id = value;
#include "atunner/evidence/threshold.def"
#undef ATUNNER_THRESHOLD

struct Texts {
  std::string_view name, meaning;
};
constexpr std::array kTexts = {
#define ATUNNER_BOTTLENECK(id, name, meaning) Texts{name, meaning},
#include "atunner/evidence/bottleneck.def"
#undef ATUNNER_BOTTLENECK
};

/// Looks counters up; a missing one is no evidence.
class Rules {
 public:
  explicit Rules(const LaunchEvidence& launch) : launch_(launch) {}

  std::vector<Finding> Causes() {
    Uncoalesced();
    BankConflicts();
    Float64();
    Spills();
    Divergence();
    SmallGrid();
    Occupancy();
    Atomics();
    Rereads();
    return std::move(found_);
  }

  double Get(Counter counter, double missing = 0) const {
    return ValueOf(launch_.counters, counter).value_or(missing);
  }

 private:
  void Add(Bottleneck cause, std::string evidence) {
    std::optional<double> gain;
    if (launch_.counted != nullptr) gain = GainWithout(cause, *launch_.counted);
    found_.push_back({cause, std::move(evidence), gain});
  }

  bool Has(Bottleneck cause) const {
    return std::ranges::find(found_, cause, &Finding::bottleneck) != found_.end();
  }

  void Uncoalesced() {
    const double loads = Get(Counter::kLoadSectors), stores = Get(Counter::kStoreSectors);
    const double load_bytes = Get(Counter::kLoadBytes, 32),
                 store_bytes = Get(Counter::kStoreBytes, 32);
    const bool bad_loads = loads > kSectorsPerRequest && load_bytes <= kBytesPerSector;
    const bool bad_stores = stores > kSectorsPerRequest && store_bytes <= kBytesPerSector;
    if (bad_loads || bad_stores)
      Add(Bottleneck::kUncoalesced,
          fmt::format(
              "a load takes {:.1f} sectors and uses {:.1f} of the 32 bytes of each; a store "
              "takes {:.1f} and fills {:.1f}",
              loads, std::min(32.0, load_bytes), stores, std::min(32.0, store_bytes)));
  }

  void BankConflicts() {
    const double conflicts = Get(Counter::kBankConflicts), requests = Get(Counter::kSharedRequests);
    if (conflicts > kConflictsPerRequest * requests)
      Add(Bottleneck::kBankConflicts,
          fmt::format(
              "{:.0f} accesses to shared memory take {:.0f} further wavefronts, {:.1f} each",
              requests, conflicts, requests > 0 ? conflicts / requests : conflicts));
  }

  void Float64() {
    const double share = Get(Counter::kFp64Share);
    if (share > kFp64Percent)
      Add(Bottleneck::kFloat64,
          fmt::format("the float64 pipe is busy {:.0f} % of the time", share));
  }

  void Spills() {
    const double requests = Get(Counter::kLocalRequests);
    if (requests > 0)
      Add(Bottleneck::kSpills, fmt::format("{:.0f} accesses to local memory, at {:.0f} registers",
                                           requests, Get(Counter::kRegisters)));
  }

  void Divergence() {
    const double threads = Get(Counter::kThreadsPerInstruction, 32);
    if (threads < kThreadsAtWork && Get(Counter::kBlock, 32) >= 32)
      Add(Bottleneck::kDivergence,
          fmt::format("{:.1f} of 32 threads are at work in an average instruction; {:.0f} % of "
                      "branches go both ways",
                      threads, Get(Counter::kDivergentBranches)));
  }

  void SmallGrid() {
    const double waves = Get(Counter::kWaves, 1);
    if (waves < kFewWaves)
      Add(Bottleneck::kSmallGrid,
          fmt::format("{:.0f} blocks are {:.2f} of what the GPU holds at once", Get(Counter::kGrid),
                      waves));
  }

  void Occupancy() {
    const double share = Get(Counter::kOccupancy, 100);
    if (share > kFewWarps) return;
    std::string by;
    if (launch_.counted != nullptr) by = ", limited by " + launch_.counted->occupancy.limiter;
    Add(Bottleneck::kOccupancy, fmt::format("{:.0f} % of an SM's warps fit{}", share, by));
  }

  void Atomics() {
    const double atomics = Get(Counter::kAtomics);
    const double loading = 32 * Get(Counter::kLoadRequests);
    if (atomics == 0 || atomics <= kAtomicsPerLoad * loading) return;
    std::string meeting;
    if (launch_.counted != nullptr)
      meeting = fmt::format("; those that wait for each other take {:.1f} us",
                            vgpu::AtomicNs(*launch_.counted) / 1e3);
    Add(Bottleneck::kAtomics, fmt::format("{:.0f} atomic updates of threads{}", atomics, meeting));
  }

  /// Not where the access pattern is what makes a block use a sector again.
  void Rereads() {
    const double again = Get(Counter::kL1Hits);
    if (again > kReusePercent && Get(Counter::kL1Share) > kL1BusyPercent &&
        !Has(Bottleneck::kUncoalesced))
      Add(Bottleneck::kRereads,
          fmt::format(
              "{:.0f} % of the loaded sectors were used by the same block before; L1 is busy "
              "{:.0f} % of the time",
              again, Get(Counter::kL1Share)));
  }

  const LaunchEvidence& launch_;
  std::vector<Finding> found_;
};

Finding LimitOf(const LaunchEvidence& launch, const Rules& rules) {
  const double dram = rules.Get(Counter::kDramShare), l1 = rules.Get(Counter::kL1Share),
               issue = rules.Get(Counter::kIssueShare);
  const std::string& limiter = launch.limiter;
  const auto limit = [&](Bottleneck bottleneck) {
    Finding finding{bottleneck,
                    fmt::format("DRAM runs at {:.0f} % of its peak, L1 is busy {:.0f} % and the "
                                "schedulers {:.0f} % of the time",
                                dram, l1, issue)};
    if (!limiter.empty()) finding.evidence += "; the time model names " + limiter;
    if (launch.counted != nullptr) finding.gain = GainWithout(bottleneck, *launch.counted);
    return finding;
  };
  if (limiter == "DRAM" || limiter == "L2" || limiter == "L2 port" || limiter == "atomics")
    return limit(Bottleneck::kMemory);
  if (limiter == "latency") return limit(Bottleneck::kLatency);
  if (limiter == "launch" || limiter == "block launches" || limiter == "code")
    return limit(Bottleneck::kLaunch);
  if (!limiter.empty()) return limit(Bottleneck::kCompute);
  constexpr double kBusy = 60, kIdle = 30;  // % of the peak, as Nsight Compute's summary has it
  if (dram > kBusy) return limit(Bottleneck::kMemory);
  if (std::max(issue, l1) > kBusy) return limit(Bottleneck::kCompute);
  if (std::max({dram, issue, l1}) < kIdle) return limit(Bottleneck::kLatency);
  return limit(dram > std::max(issue, l1) ? Bottleneck::kMemory : Bottleneck::kCompute);
}

/// A gain that nobody can predict counts as worthwhile where the counters are measured.
bool IsWorthwhile(const Finding& cause, bool counted) {
  return cause.gain ? *cause.gain >= kWorthwhileGain : !counted;
}

}  // namespace

std::string_view Name(Bottleneck bottleneck) {
  return kTexts.at(static_cast<size_t>(bottleneck)).name;
}

std::string_view MeaningOf(Bottleneck bottleneck) {
  return kTexts.at(static_cast<size_t>(bottleneck)).meaning;
}

const std::vector<Threshold>& Thresholds() {
  static const std::vector<Threshold> kAll = {
#define ATUNNER_THRESHOLD(id, value, unit, meaning, source) {#id, value, unit, meaning, source},
#include "atunner/evidence/threshold.def"
#undef ATUNNER_THRESHOLD
  };
  return kAll;
}

std::vector<Finding> Classify(const LaunchEvidence& launch) {
  Rules rules(launch);
  std::vector<Finding> findings = rules.Causes();
  std::ranges::stable_sort(findings, std::greater{},
                           [](const Finding& f) { return f.gain.value_or(1); });
  const bool counted = launch.counted != nullptr;
  const auto behind = std::ranges::stable_partition(
      findings, [&](const Finding& f) { return IsWorthwhile(f, counted); });
  findings.insert(behind.begin(), LimitOf(launch, rules));
  return findings;
}

}  // namespace atunner::evidence
