// The judge that works in this process, with one device.
#pragma once

#include <memory>

#include "atunner/base/random.h"
#include "atunner/compile/compiler.h"
#include "atunner/device/device.h"
#include "atunner/judge/judge.h"
#include "atunner/judge/prediction_buffers.h"
#include "atunner/measure/harness.h"
#include "atunner/verify/launch/poison.h"
#include "atunner/verify/verifier.h"

namespace atunner {

/// A predicting device gives estimates, a timed one measurements. Device and compiler must outlive
/// the judge.
class LocalJudge : public Judge {
 public:
  /// `timed` and `predicting` are the same object as `device`, or null when the device cannot do
  /// that.
  LocalJudge(Device& device, TimedDevice* timed, PredictingDevice* predicting, Compiler& compiler)
      : device_(device), timed_(timed), predicting_(predicting), compiler_(compiler) {}

  Status Begin(const JudgeTask& task) override;
  Result<JudgeAnswer> Examine(const CandidateKernel& candidate, const JudgeOrder& order) override;
  Result<Comparison> Compare(const CandidateKernel& baseline, const CandidateKernel& candidate,
                             int pairs, uint64_t seed) override;
  Result<Baseline> CompareVendor(const std::string& name, const CandidateKernel& candidate,
                                 int pairs, uint64_t seed) override;
  Result<std::vector<LaunchMetrics>> Count(const CandidateKernel& candidate,
                                           std::span<const std::string> metrics,
                                           uint64_t seed) override;

 private:
  Result<std::unique_ptr<Verifier>> MakeVerifier(uint64_t seed) const;
  /// The seed of inputs for what an order calls `seed`.
  uint64_t Secret(uint64_t seed) const { return Mix64(task_.reproducible ? seed : seed ^ secret_); }
  /// The session's verifier. Another seed gets a new one, so that a re-verification uses new
  /// inputs.
  Result<Verifier*> VerifierFor(uint64_t seed);
  Result<std::unique_ptr<TimedKernel>> Prove(Verifier& verifier, const CandidateKernel& candidate,
                                             VerifyLevel level);
  Status Measure(Verifier& verifier, const VerifiedKernel& kernel, const JudgeOrder& order,
                 JudgeAnswer& answer);
  Status Predict(const CandidateKernel& candidate, LoadedModule& module, JudgeAnswer& answer);
  /// Predicts a candidate that was too large to be verified; does nothing for other refusals.
  Status PredictUnchecked(const CandidateKernel& candidate, JudgeAnswer& answer);

  Device& device_;
  TimedDevice* timed_;
  PredictingDevice* predicting_;
  Compiler& compiler_;
  JudgeTask task_;
  std::unique_ptr<Verifier> verifier_;
  uint64_t verifier_seed_ = 0;
  /// Mixed into all seeds of inputs, unless the task is reproducible.
  const uint64_t secret_ = SecretBits();
  std::unique_ptr<Harness> harness_;
  std::unique_ptr<PredictionBuffers> predict_buffers_;
};

}  // namespace atunner
