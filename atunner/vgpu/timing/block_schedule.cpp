#include "atunner/vgpu/timing/block_schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

namespace atunner::vgpu {
namespace {

/// A resident block: how much of itself is left, and its pace alone.
struct Running {
  double left = 1;
  double start = 0;
  double path = 0;    ///< cycles, alone
  double demand = 0;  ///< cycles of the pipes
  double beside = 0;  ///< cycles of other units
  double slowdown = 1;
  /// Shares of the block's time in which it asks for the pipes, and for other units.
  double asked() const { return demand / path; }
  double asked_beside() const { return beside / path; }
};

/// One SM with the blocks that it runs, oldest first.
class Sm {
 public:
  explicit Sm(const SmModel& model) : model_(&model) {}

  size_t blocks() const { return running_.size(); }
  void Start(const BlockShare& share, double now) {
    Advance(now);
    constexpr double kLeast = 1;  // cycles: a block without a path ends, too
    running_.push_back({1, now, std::max(kLeast, model_->path * share.path),
                        model_->demand * share.work, model_->beside * share.work});
    SetPace();
  }
  /// When the first of the blocks ends.
  double FirstEnd() const {
    double least = std::numeric_limits<double>::infinity();
    for (const Running& r : running_) least = std::min(least, r.left * r.path * r.slowdown);
    return now_ + least;
  }
  /// Removes the blocks that have ended by `now`.
  void End(double now) {
    constexpr double kRounding = 1e-9;
    Advance(now);
    std::erase_if(running_, [](const Running& r) { return r.left <= kRounding; });
    SetPace();
  }

 private:
  void Advance(double now) {
    for (Running& r : running_) r.left -= (now - now_) / (r.slowdown * r.path);
    now_ = now;
  }

  /// Blocks that alone would ask the pipes for a share u of their time take (1 + u^p)^(1/p) times
  /// as long, and at least as long as the units beside the warps.
  void SetPace() {
    if (running_.empty()) return;
    double asked = 0, beside = 0;
    for (const Running& r : running_) {
      asked += r.asked();
      beside += r.asked_beside();
    }
    const double p = model_->sharpness(running_.size());
    const double larger = std::max(1.0, asked), smaller = std::min(1.0, asked);
    const double all = std::max(larger * std::pow(1 + std::pow(smaller / larger, p), 1 / p),
                                beside);
    for (Running& r : running_) r.slowdown = all;
    if (running_.size() > 1 && running_[0].start < running_[1].start) PreferFirst(all, asked);
  }

  /// The oldest block runs as if it were alone; the others share what it leaves of the pipes.
  void PreferFirst(double all, double asked) {
    Running& first = running_.front();
    const double p = model_->sharpness(1);
    const double alone = std::max(std::pow(1 + std::pow(first.asked(), p), 1 / p),
                                  first.asked_beside());
    const double delivered = asked / all, left = delivered - first.asked() / alone;
    const double others = asked - first.asked();
    if (alone >= all || left <= 0 || others <= 0) return;
    first.slowdown = alone;
    for (size_t i = 1; i < running_.size(); ++i)
      running_[i].slowdown = std::max(all, others / left);
  }

  const SmModel* model_;
  std::vector<Running> running_;
  double now_ = 0;
};

}  // namespace

double Makespan(std::span<const BlockShare> blocks, const SmModel& model) {
  std::vector<Sm> sms(std::max<uint64_t>(model.sms, 1), Sm(model));
  const uint64_t resident = std::max<uint64_t>(model.resident, 1);
  size_t next = 0;
  for (uint64_t round = 0; round < resident; ++round) {
    for (size_t s = 0; s < sms.size() && next < blocks.size(); ++s) sms[s].Start(blocks[next++], 0);
  }
  using Event = std::pair<double, size_t>;  // the first end of a block on an SM
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  for (size_t s = 0; s < sms.size(); ++s) {
    if (sms[s].blocks() > 0) events.emplace(sms[s].FirstEnd(), s);
  }
  double end = 0;
  while (!events.empty()) {
    const auto [now, s] = events.top();
    events.pop();
    end = std::max(end, now);
    sms[s].End(now);
    while (sms[s].blocks() < resident && next < blocks.size()) sms[s].Start(blocks[next++], now);
    if (sms[s].blocks() > 0) events.emplace(sms[s].FirstEnd(), s);
  }
  return end;
}

}  // namespace atunner::vgpu
