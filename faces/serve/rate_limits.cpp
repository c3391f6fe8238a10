#include "faces/serve/rate_limits.h"

#include <algorithm>
#include <cstddef>

namespace atunner::serve {
namespace {

constexpr size_t kMostBuckets = 10000;
constexpr double kForgetSeconds = 60;

}  // namespace

double RateLimits::Left(const std::string& name, double rate, double burst, double now) const {
  const auto found = buckets_.find(name);
  if (found == buckets_.end()) return burst;
  return std::min(burst, found->second.left + (now - found->second.at) * rate);
}

bool RateLimits::Take(const std::string& name, double rate, double burst, double now) {
  const std::scoped_lock lock(mutex_);
  const double left = Left(name, rate, burst, now);
  if (left < 1) return false;
  if (buckets_.size() >= kMostBuckets) ForgetOld(now);
  buckets_[name] = {left - 1, now};
  return true;
}

void RateLimits::ForgetOld(double now) {
  std::erase_if(buckets_, [&](const auto& one) { return now - one.second.at > kForgetSeconds; });
}

}  // namespace atunner::serve
