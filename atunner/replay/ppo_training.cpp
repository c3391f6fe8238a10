#include "atunner/replay/ppo_training.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "atunner/replay/baseline.h"

namespace atunner {
namespace {

constexpr double kClip = 0.2;
// Weight of later steps in generalised advantage estimation. Rewards are not discounted, because
// episodes end.
constexpr double kLambda = 0.95;
constexpr double kEntropy = 0.003;
constexpr double kRate = 3e-3;
constexpr int kEpochs = 4;
constexpr size_t kMinibatch = 256;
constexpr size_t kCriticFeatures = 5;
constexpr size_t kCriticHidden = 16;

using State = std::array<float, kCriticFeatures>;

/// One decision of an episode, with the figures that the update needs.
struct Sample {
  PolicyStep step;
  State state;
  double log_probability = 0;
  double advantage = 0;
  double target = 0;  ///< value that the critic shall give the state
};

class Adam {
 public:
  explicit Adam(size_t count) : mean_(count), square_(count) {}
  /// Moves the parameters against the gradient.
  void Step(std::vector<float>& parameters, const std::vector<double>& gradient) {
    ++steps_;
    const double rate = kRate * std::sqrt(1 - std::pow(0.999, steps_)) /
                        (1 - std::pow(0.9, steps_));
    for (size_t i = 0; i < parameters.size(); ++i) {
      mean_[i] = 0.9 * mean_[i] + 0.1 * gradient[i];
      square_[i] = 0.999 * square_[i] + 0.001 * gradient[i] * gradient[i];
      parameters[i] -= static_cast<float>(rate * mean_[i] / (std::sqrt(square_[i]) + 1e-8));
    }
  }

 private:
  std::vector<double> mean_;
  std::vector<double> square_;
  int steps_ = 0;
};

std::vector<float> RandomParameters(size_t inputs, size_t hidden, Random& random) {
  std::vector<float> parameters(Mlp::ParameterCount(inputs, hidden));
  for (float& p : parameters)
    p = static_cast<float>(random.Normal() / std::sqrt(static_cast<double>(inputs)));
  // The output layer begins at zero: the first policy is uniform, so it explores.
  std::fill(parameters.end() - static_cast<long>(hidden) - 1, parameters.end(), 0.0f);
  return parameters;
}

std::vector<double> Softmax(const Mlp& actor, const PolicyStep& step) {
  std::vector<double> p;
  for (const PolicyFeatures& features : step.candidates) p.push_back(actor(features));
  const double most = *std::ranges::max_element(p);
  for (double& one : p) one = std::exp(one - most);
  const double all = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& one : p) one /= all;
  return p;
}

class Trainer {
 public:
  Trainer(std::span<const RecordedSpace* const> spaces, const TrainingOptions& options)
      : spaces_(spaces),
        options_(options),
        random_(options.seed),
        policy_{Mlp(kPolicyFeatures, kPolicyHidden,
                    RandomParameters(kPolicyFeatures, kPolicyHidden, random_))},
        critic_(kCriticFeatures, kCriticHidden,
                RandomParameters(kCriticFeatures, kCriticHidden, random_)) {
    for (const RecordedSpace* space : spaces) {
      std::vector<double> times;
      for (const auto& time : space->time_ms) {
        if (time) times.push_back(*time);
      }
      std::ranges::sort(times);
      best_.push_back(std::log(times.front()));
      range_.push_back(std::max(1e-6, std::log(times[times.size() / 2]) - best_.back()));
    }
  }

  /// Runs the episodes of one iteration and updates the networks. Returns their mean return.
  double Iterate() {
    samples_.clear();
    double sum = 0;
    for (int i = 0; i < options_.episodes; ++i) sum += Episode();
    Standardise();
    for (int epoch = 0; epoch < kEpochs; ++epoch) Improve();
    return sum / options_.episodes;
  }
  const Policy& policy() const { return policy_; }

 private:
  /// Runs one episode, appends its decisions to the samples and returns its return. The reward of a
  /// step is −(log best so far − log best) / (log median − log best) / number of steps.
  double Episode() {
    const size_t which = random_.Below(spaces_.size());
    const RecordedSpace& space = *spaces_[which];
    std::vector<PolicyStep> trace;
    const auto search = MakePolicySearch("ppo", space.index, {.seed = random_.Next()}, policy_,
                                         &trace);
    std::vector<double> left;        // distance from the best, after each evaluation
    std::vector<size_t> decided_at;  // index of the evaluation that each decision chose
    double best = 1;
    for (size_t i = 0; i < options_.steps; ++i) {
      const auto asked = search->Ask(1);
      if (asked.empty()) break;
      if (trace.size() > decided_at.size()) decided_at.push_back(i);
      const auto& time = space.time_ms[space.index->IndexOf(asked[0])];
      search->Tell({asked[0], WithNoise(time)});
      if (time)
        best = std::min(best, std::max(0.0, (std::log(*time) - best_[which]) / range_[which]));
      left.push_back(best);
    }
    Append(std::move(trace), decided_at, left);
    return -std::accumulate(left.begin(), left.end(), 0.0) / static_cast<double>(left.size());
  }

  std::optional<double> WithNoise(std::optional<double> time) {
    if (!time) return std::nullopt;
    return *time * std::exp(options_.noise * random_.Normal());
  }

  /// Appends the decisions of an episode to the samples. `left` is the distance from the best after
  /// each evaluation, `decided_at` the evaluation of each decision.
  void Append(std::vector<PolicyStep> trace, const std::vector<size_t>& decided_at,
              const std::vector<double>& left) {
    const size_t first = samples_.size();
    const auto steps = static_cast<double>(left.size());
    for (size_t i = 0; i < trace.size(); ++i) {
      Sample& sample = samples_.emplace_back();
      sample.step = std::move(trace[i]);
      sample.log_probability = std::log(Softmax(policy_.actor, sample.step)[sample.step.chosen]);
      const PolicyFeatures& any = sample.step.candidates.front();
      const auto rest = static_cast<float>(1 - static_cast<double>(decided_at[i]) / steps);
      sample.state = {rest, static_cast<float>(left[decided_at[i] - 1]), any[12], any[13], any[14]};
    }
    AddAdvantages(first, decided_at, left);
  }

  /// Generalised advantage estimation over the samples from `first` on, backwards in time.
  void AddAdvantages(size_t first, const std::vector<size_t>& decided_at,
                     const std::vector<double>& left) {
    const auto steps = static_cast<double>(left.size());
    double advantage = 0;
    double next_value = 0;
    for (size_t i = samples_.size(); i-- > first;) {
      Sample& sample = samples_[i];
      const double value = critic_(sample.state);
      const double reward = -left[decided_at[i - first]] / steps;
      advantage = reward + next_value - value + kLambda * advantage;
      next_value = value;
      sample.advantage = advantage;
      sample.target = advantage + value;
    }
  }

  /// Gives the advantages a mean of 0 and a standard deviation of 1.
  void Standardise() {
    double sum = 0;
    double squares = 0;
    for (const Sample& sample : samples_) {
      sum += sample.advantage;
      squares += sample.advantage * sample.advantage;
    }
    const auto n = static_cast<double>(std::max<size_t>(samples_.size(), 1));
    const double mean = sum / n;
    const double deviation = std::sqrt(std::max(1e-16, squares / n - mean * mean));
    for (Sample& sample : samples_) sample.advantage = (sample.advantage - mean) / deviation;
  }

  /// One epoch: every sample once, in random order, a step of Adam per minibatch.
  void Improve() {
    std::vector<size_t> order(samples_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.Below(i)]);
    for (size_t from = 0; from < order.size(); from += kMinibatch) {
      const size_t count = std::min(kMinibatch, order.size() - from);
      std::vector<double> actor(policy_.actor.parameters().size());
      std::vector<double> critic(critic_.parameters().size());
      for (size_t i = from; i < from + count; ++i) {
        const Sample& sample = samples_[order[i]];
        AddActorGradient(sample, 1.0 / static_cast<double>(count), actor);
        const double off = critic_(sample.state) - sample.target;
        critic_.Backward(sample.state, off / static_cast<double>(count), critic);
      }
      actor_adam_.Step(policy_.actor.parameters(), actor);
      critic_adam_.Step(critic_.parameters(), critic);
    }
  }

  /// Adds the gradient of −(clipped objective + weighted entropy) of one sample.
  void AddActorGradient(const Sample& sample, double weight, std::vector<double>& gradient) const {
    const std::vector<double> p = Softmax(policy_.actor, sample.step);
    const double ratio = std::exp(std::log(p[sample.step.chosen]) - sample.log_probability);
    const bool clipped = sample.advantage > 0 ? ratio > 1 + kClip : ratio < 1 - kClip;
    const double pull = clipped ? 0 : -sample.advantage * ratio;
    double entropy = 0;
    for (double one : p) entropy -= one * std::log(std::max(one, 1e-12));
    for (size_t k = 0; k < p.size(); ++k) {
      const double towards = (k == sample.step.chosen ? 1.0 : 0.0) - p[k];
      const double spread = kEntropy * p[k] * (std::log(std::max(p[k], 1e-12)) + entropy);
      policy_.actor.Backward(sample.step.candidates[k], weight * (pull * towards + spread),
                             gradient);
    }
  }

  std::span<const RecordedSpace* const> spaces_;
  TrainingOptions options_;
  Random random_;
  Policy policy_;
  Mlp critic_;
  Adam actor_adam_{Mlp::ParameterCount(kPolicyFeatures, kPolicyHidden)};
  Adam critic_adam_{Mlp::ParameterCount(kCriticFeatures, kCriticHidden)};
  std::vector<double> best_;   ///< logarithm of the shortest time of each space
  std::vector<double> range_;  ///< logarithm of (median time / shortest time) of each space
  std::vector<Sample> samples_;
};

}  // namespace

Result<Policy> TrainPolicy(std::span<const RecordedSpace* const> spaces,
                           const TrainingOptions& options, const TrainingListener& listener) {
  if (spaces.empty()) return Invalid("there is no space to train on");
  for (const RecordedSpace* space : spaces) {
    if (const auto baseline = BaselineOf(space->time_ms); !baseline)
      return std::unexpected(baseline.error());
  }
  Trainer trainer(spaces, options);
  for (int i = 0; i < options.iterations; ++i) listener(i, trainer.Iterate());
  return trainer.policy();
}

}  // namespace atunner
