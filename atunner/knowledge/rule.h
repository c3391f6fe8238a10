// Rules: at which bottleneck which change is worth a try, its expected effect, and the page of the
// handbook that explains it. They only rank ideas; the judge decides.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/model/json/json.h"

namespace atunner::knowledge {

/// The limits that rules know:
///   memory     DRAM traffic            l2          traffic of L2
///   shared     shared memory and L1    arithmetic  multiply-adds outside tensor cores
///   tensor     tensor cores            special     special functions
///   issue      instruction issue       latency     waits that too few warps hide
///   barrier    waits at barriers       occupancy   too few resident warps
///   registers  spills                  fetch       instruction cache
///   launch     the launch itself       divergence  inactive threads
std::span<const std::string_view> Bottlenecks();

enum class Move : uint8_t { kLarger, kSmaller, kOther };
std::string_view Name(Move move);  // "larger", "smaller", "other"

struct Rule {
  std::string_view id;
  std::string_view when;
  std::string_view parameters;
  Move move = Move::kOther;
  double weight = 0;
  std::string_view page;
  std::string_view idea;
  std::string_view effect;

  bool HelpsAgainst(std::string_view bottleneck) const;
  bool IsAbout(std::string_view parameter) const;
};

std::span<const Rule> Rules();
/// nullptr for an unknown id.
const Rule* FindRule(std::string_view id);
/// {"id": …, "when": […], "idea": …, …}.
Json ToJson(const Rule& rule);

}  // namespace atunner::knowledge
