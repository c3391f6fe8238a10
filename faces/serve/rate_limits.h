// How many requests a caller may make, and how many wrong secrets an address may try.
#pragma once

#include <mutex>
#include <string>
#include <unordered_map>

namespace atunner::serve {

/// Token buckets by name: `rate` a second on average, `burst` at once. Safe to use from several
/// threads.
class RateLimits {
 public:
  /// True if one more is allowed at time `now` (seconds); it is counted then.
  bool Take(const std::string& name, double rate, double burst, double now);

 private:
  struct Bucket {
    double left = 0;
    double at = 0;
  };
  /// What is in the bucket of this name at `now`; a new one is full.
  double Left(const std::string& name, double rate, double burst, double now) const;
  /// Forgets full buckets once there are many: an attacker may use many addresses.
  void ForgetOld(double now);

  std::mutex mutex_;
  std::unordered_map<std::string, Bucket> buckets_;
};

}  // namespace atunner::serve
