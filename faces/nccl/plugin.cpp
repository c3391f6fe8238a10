// libatunner_nccl.so: a tuner plugin of NCCL that follows a rules file.
//
//     NCCL_TUNER_PLUGIN=/path/libatunner_nccl.so NCCL_TUNER_CONFIG_FILE=/path/nccl_tuner.conf
//
// Where no rule matches, NCCL decides. While `comm tune` measures, it sets the choice itself.
#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/planning/comm/tuner_rules.h"
#include "faces/nccl/tuner_abi.h"

namespace atunner::nccl {
namespace {

using planning::CommCall;
using planning::CommChoice;

/// One communicator.
struct Context {
  std::vector<planning::TunerRule> rules;
  int nodes = 1, ranks = 1;
};

/// The choice that a measurement sets: algorithm + 256 * protocol + 65536 * (channels + 1); -1:
/// none, the rules hold.
std::atomic<int> g_forced = -1;
std::atomic<int> g_taken = 0;  ///< calls that followed it

const char* RulesFile() {
  const char* named = std::getenv("NCCL_TUNER_CONFIG_FILE");
  return named != nullptr && *named != '\0' ? named : "nccl_tuner.conf";
}

/// A rules file that is missing or wrong must not fail the program: NCCL then decides.
std::vector<planning::TunerRule> Rules(Logger logger) {
  const std::string file = RulesFile();
  const auto text = ReadFile(file);
  auto rules = text ? planning::ReadTunerRules(*text) : std::unexpected(text.error());
  if (logger != nullptr) {
    if (rules)
      logger(kLogInfo, kLogTuning, __FILE__, __LINE__, "atunner: %zu rules of %s", rules->size(),
             file.c_str());
    else
      logger(kLogWarn, kLogTuning, __FILE__, __LINE__, "atunner: no rules: %s: %s", file.c_str(),
             rules.error().ToString().c_str());
  }
  return rules ? std::move(*rules) : std::vector<planning::TunerRule>();
}

int Init(size_t ranks, size_t nodes, Logger logger, void** context) {
  auto* made = new (std::nothrow) Context;
  if (made == nullptr) return kSystemError;
  made->rules = Rules(logger);
  made->nodes = static_cast<int>(nodes);
  made->ranks = static_cast<int>(ranks);
  *context = made;
  return kSuccess;
}

int InitWithTopology(void** context, uint64_t /*communicator*/, size_t ranks, size_t nodes,
                     Logger logger, void* /*nvlink*/, void* /*constants*/) {
  return Init(ranks, nodes, logger, context);
}

int Destroy(void* context) {
  delete static_cast<Context*>(context);
  return kSuccess;
}

/// Makes the choice the cheapest one. False if NCCL cannot run it.
bool Prefer(const CommChoice& choice, float* costs, int algorithms, int protocols, int* channels) {
  const int row = static_cast<int>(choice.algorithm), column = static_cast<int>(choice.protocol);
  if (row >= algorithms || column >= protocols) return false;
  float& cost = costs[row * protocols + column];
  if (cost == kImpossible) return false;
  cost = 0;
  if (choice.channels > 0) *channels = choice.channels;
  return true;
}

int Choose(void* context, int collective, size_t bytes, int pipe_ops, float** costs, int algorithms,
           int protocols, int registered, int* channels) {
  auto* const table = reinterpret_cast<float*>(costs);
  const int forced = g_forced.load();
  if (forced >= 0) {
    const CommChoice choice{static_cast<planning::Algorithm>(forced % 256),
                            static_cast<planning::Protocol>(forced / 256 % 256),
                            forced / 65536 - 1};
    if (Prefer(choice, table, algorithms, protocols, channels)) ++g_taken;
    return kSuccess;
  }
  const auto& self = *static_cast<const Context*>(context);
  const CommCall call{.collective = static_cast<planning::Collective>(collective),
                      .bytes = bytes,
                      .nodes = self.nodes,
                      .ranks = self.ranks,
                      .pipe_ops = pipe_ops,
                      .registered = registered};
  if (const auto* rule = planning::FindTunerRule(self.rules, call))
    (void)Prefer(rule->choice, table, algorithms, protocols, channels);
  return kSuccess;
}

constexpr char kName[] = "atunner";

}  // namespace
}  // namespace atunner::nccl

extern "C" {

__attribute__((visibility("default"))) extern const atunner::nccl::TunerV4 ncclTunerPlugin_v4 = {
    atunner::nccl::kName, atunner::nccl::Init, atunner::nccl::Choose, atunner::nccl::Destroy};
__attribute__((visibility("default"))) extern const atunner::nccl::TunerV5 ncclTunerPlugin_v5 = {
    atunner::nccl::kName, atunner::nccl::InitWithTopology, atunner::nccl::Choose,
    atunner::nccl::Destroy};
__attribute__((visibility("default"))) extern const atunner::nccl::TunerV6 ncclTunerPlugin_v6 = {
    atunner::nccl::kName, atunner::nccl::InitWithTopology, atunner::nccl::Choose,
    atunner::nccl::Destroy, nullptr};

/// Every later call takes this choice where NCCL can; algorithm -1 ends that. For measurements.
__attribute__((visibility("default"))) void atunner_nccl_force(int algorithm, int protocol,
                                                               int channels) {
  atunner::nccl::g_taken = 0;
  atunner::nccl::g_forced = algorithm < 0 ? -1
                                          : algorithm + 256 * protocol + 65536 * (channels + 1);
}

/// Calls that took the choice since then.
__attribute__((visibility("default"))) int atunner_nccl_taken() { return atunner::nccl::g_taken; }

}  // extern "C"
