#include "atunner/search/strategies/population.h"

#include <algorithm>
#include <cmath>

namespace atunner {
namespace {

constexpr size_t kPopulation = 20;

struct Member {
  uint64_t at = 0;
  double value = INFINITY;
};

using Position = std::vector<double>;

class Population : public Strategy {
 public:
  using Strategy::Strategy;

 protected:
  Position PositionOf(uint64_t at) const {
    const auto positions = index().PositionsAt(at);
    return {positions.begin(), positions.end()};
  }
  size_t ValueCount(size_t parameter) const {
    return index().space().parameters[parameter].values.size();
  }
  const Member& Any(const std::vector<Member>& members) {
    return members[random().Below(members.size())];
  }
};

class Genetic : public Population {
 public:
  using Population::Population;

 protected:
  std::optional<uint64_t> Propose() override {
    if (members_.size() < kPopulation) return std::nullopt;
    const Position mother = PositionOf(Tournament());
    Position child = PositionOf(Tournament());
    for (size_t p = 0; p < child.size(); ++p) {
      if (random().Below(2)) child[p] = mother[p];
      if (random().Below(child.size()) == 0)
        child[p] = static_cast<double>(random().Below(ValueCount(p)));
    }
    return index().Near(child);
  }

  void OnObserved(uint64_t at, std::optional<double> log_time) override {
    if (!log_time) return;
    if (members_.size() < kPopulation) {
      members_.push_back({at, *log_time});
      return;
    }
    const auto worst = std::ranges::max_element(members_, {}, &Member::value);
    if (*log_time < worst->value) *worst = {at, *log_time};
  }

 private:
  uint64_t Tournament() {
    const Member& a = Any(members_);
    const Member& b = Any(members_);
    return a.value < b.value ? a.at : b.at;
  }

  std::vector<Member> members_;
};

class Differential : public Population {
 public:
  using Population::Population;

 protected:
  std::optional<uint64_t> Propose() override {
    if (members_.size() < kPopulation) return std::nullopt;
    const size_t target = next_++ % kPopulation;
    const Position best = PositionOf(ranking().begin()->second);
    const Position a = PositionOf(Any(members_).at);
    const Position b = PositionOf(Any(members_).at);
    Position trial = PositionOf(members_[target].at);
    const size_t certain = random().Below(trial.size());
    const double weight = random().Uniform(0.4, 1.0);
    for (size_t p = 0; p < trial.size(); ++p) {
      if (p != certain && random().Uniform() > kCrossover) continue;
      trial[p] = best[p] + weight * (a[p] - b[p]) + random().Uniform(-0.5, 0.5);
    }
    const uint64_t at = index().Near(trial);
    if (!IsAsked(at)) targets_[at] = target;
    return at;
  }

  void OnObserved(uint64_t at, std::optional<double> log_time) override {
    if (!log_time) return;
    if (members_.size() < kPopulation) {
      members_.push_back({at, *log_time});
      return;
    }
    const auto target = targets_.find(at);
    Member& rival =
        members_[target == targets_.end() ? random().Below(kPopulation) : target->second];
    if (*log_time < rival.value) rival = {at, *log_time};
  }

 private:
  static constexpr double kCrossover = 0.7;

  std::vector<Member> members_;
  std::unordered_map<uint64_t, size_t> targets_;
  size_t next_ = 0;
};

class ParticleSwarm : public Population {
 public:
  using Population::Population;

 protected:
  std::optional<uint64_t> Propose() override {
    if (particles_.size() < kPopulation) return std::nullopt;
    const Position best = PositionOf(ranking().begin()->second);
    Particle& particle = particles_[next_++ % kPopulation];
    const Position own = PositionOf(particle.best.at);
    for (size_t p = 0; p < best.size(); ++p) {
      // Clerc and Kennedy's constriction.
      particle.velocity[p] = 0.729 * particle.velocity[p] +
                             1.494 * random().Uniform() * (own[p] - particle.place[p]) +
                             1.494 * random().Uniform() * (best[p] - particle.place[p]) +
                             random().Uniform(-0.3, 0.3);
      const auto top = static_cast<double>(ValueCount(p) - 1);
      particle.place[p] = std::clamp(particle.place[p] + particle.velocity[p], 0.0, top);
    }
    const uint64_t at = index().Near(particle.place);
    if (!IsAsked(at))
      flying_[at] = (next_ - 1) % kPopulation;
    else if (const auto* result = ResultOf(at);
             result != nullptr && *result && **result < particle.best.value)
      particle.best = {at, **result};
    return at;
  }

  void OnObserved(uint64_t at, std::optional<double> log_time) override {
    if (!log_time) return;
    if (particles_.size() < kPopulation) {
      particles_.push_back({PositionOf(at), Position(index().parameters(), 0.0), {at, *log_time}});
      return;
    }
    const auto particle = flying_.find(at);
    if (particle == flying_.end()) return;
    Member& best = particles_[particle->second].best;
    if (*log_time < best.value) best = {at, *log_time};
  }

 private:
  struct Particle {
    Position place;
    Position velocity;
    Member best;
  };
  std::vector<Particle> particles_;
  std::unordered_map<uint64_t, size_t> flying_;
  size_t next_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> MakeGenetic(std::string name, std::shared_ptr<const SpaceIndex> index,
                                      SearchOptions options) {
  return std::make_unique<Genetic>(std::move(name), std::move(index), std::move(options));
}

std::unique_ptr<Strategy> MakeDifferential(std::string name,
                                           std::shared_ptr<const SpaceIndex> index,
                                           SearchOptions options) {
  return std::make_unique<Differential>(std::move(name), std::move(index), std::move(options));
}

std::unique_ptr<Strategy> MakeParticleSwarm(std::string name,
                                            std::shared_ptr<const SpaceIndex> index,
                                            SearchOptions options) {
  return std::make_unique<ParticleSwarm>(std::move(name), std::move(index), std::move(options));
}

}  // namespace atunner
