#include "atunner/planning/comm/collective.h"

#include <array>
#include <cstddef>

namespace atunner::planning {
namespace {

constexpr std::array<std::string_view, 5> kCollectives = {"broadcast", "reduce", "allgather",
                                                          "reducescatter", "allreduce"};
constexpr std::array<std::string_view, 7> kAlgorithms = {
    "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
constexpr std::array<std::string_view, 3> kProtocols = {"ll", "ll128", "simple"};

template <class Enum, size_t N>
std::optional<Enum> Find(const std::array<std::string_view, N>& names, std::string_view name) {
  for (size_t i = 0; i < N; ++i)
    if (names[i] == name) return static_cast<Enum>(i);
  return std::nullopt;
}

}  // namespace

std::string_view Name(Collective collective) {
  return kCollectives[static_cast<size_t>(collective)];
}
std::string_view Name(Algorithm algorithm) { return kAlgorithms[static_cast<size_t>(algorithm)]; }
std::string_view Name(Protocol protocol) { return kProtocols[static_cast<size_t>(protocol)]; }

std::optional<Collective> CollectiveOf(std::string_view name) {
  return Find<Collective>(kCollectives, name);
}
std::optional<Algorithm> AlgorithmOf(std::string_view name) {
  return Find<Algorithm>(kAlgorithms, name);
}
std::optional<Protocol> ProtocolOf(std::string_view name) {
  return Find<Protocol>(kProtocols, name);
}

std::string ToString(const CommChoice& choice) {
  std::string text(Name(choice.algorithm));
  text.append(" ").append(Name(choice.protocol));
  if (choice.channels > 0) text += ", " + std::to_string(choice.channels) + " channels";
  return text;
}

}  // namespace atunner::planning
