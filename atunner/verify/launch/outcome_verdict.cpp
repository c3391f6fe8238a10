#include "atunner/verify/launch/outcome_verdict.h"

#include <fmt/format.h>

namespace atunner {
namespace {

VerdictKind VerdictOf(const Hazard& hazard) {
  switch (hazard.kind) {
    case Hazard::Kind::kOutOfBounds:
    case Hazard::Kind::kMisaligned:
      return VerdictKind::kOutOfBounds;
    case Hazard::Kind::kUninitialisedShared:
    case Hazard::Kind::kUninitialisedGlobal:
    case Hazard::Kind::kUninitialisedLocal:
    case Hazard::Kind::kUninitialisedRegister:
    case Hazard::Kind::kAsyncCopyInFlight:
    case Hazard::Kind::kInvalidShuffle:
    case Hazard::Kind::kRace:
      return VerdictKind::kRace;
    case Hazard::Kind::kDivergentBarrier:
    case Hazard::Kind::kDeadlock:
      return VerdictKind::kDeadlock;
    case Hazard::Kind::kInstructionBudget:
      return VerdictKind::kTimeout;
    case Hazard::Kind::kTrap:
    case Hazard::Kind::kLeak:
      return VerdictKind::kCrash;
  }
  return VerdictKind::kCrash;
}

}  // namespace

std::pair<VerdictKind, std::string> VerdictOf(const LaunchOutcome& outcome) {
  if (!outcome.hazards.empty()) {
    const Hazard& first = outcome.hazards.front();
    std::string text = fmt::format("{}: {}", Name(first.kind), first.detail);
    if (!first.where.empty()) text = first.where + ": " + text;
    return {VerdictOf(first), text};
  }
  switch (outcome.kind) {
    case LaunchOutcome::Kind::kRefused:
      return {VerdictKind::kLaunchFailure, outcome.message};
    case LaunchOutcome::Kind::kTimeout:
      return {VerdictKind::kTimeout, outcome.message};
    case LaunchOutcome::Kind::kUnsupported:
      return {VerdictKind::kUnsupported, outcome.message};
    default:
      return {VerdictKind::kCrash, outcome.message};
  }
}

}  // namespace atunner
