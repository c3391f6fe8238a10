// The words of NCCL: collectives, algorithms, protocols. The numbers are those of its tuner
// interface (plugin/nccl_tuner.h in NCCL's sources).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace atunner::planning {

enum class Collective : uint8_t { kBroadcast, kReduce, kAllGather, kReduceScatter, kAllReduce };
enum class Algorithm : uint8_t {
  kTree,
  kRing,
  kCollNetDirect,
  kCollNetChain,
  kNvls,
  kNvlsTree,
  kPat,
};
enum class Protocol : uint8_t { kLl, kLl128, kSimple };

/// "allreduce", "ring", "ll128": as NCCL's rules files write them.
std::string_view Name(Collective collective);
std::string_view Name(Algorithm algorithm);
std::string_view Name(Protocol protocol);
std::optional<Collective> CollectiveOf(std::string_view name);
std::optional<Algorithm> AlgorithmOf(std::string_view name);
std::optional<Protocol> ProtocolOf(std::string_view name);

/// How a collective runs.
struct CommChoice {
  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  int channels = -1;  ///< blocks on each GPU; -1: as many as NCCL takes
  bool operator==(const CommChoice&) const = default;
};

/// "ring ll128, 8 channels"
std::string ToString(const CommChoice& choice);

}  // namespace atunner::planning
