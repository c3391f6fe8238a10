#include "atunner/jobs/captures/kernel_shares.h"

#include <algorithm>
#include <map>

#include "atunner/capture/capture_writer.h"
#include "atunner/intake/captured/captured_kernel.h"
#include "atunner/jobs/kernels/predict.h"

namespace atunner::jobs {
namespace {

using capture::CapturedLaunch;
using capture::LaunchGroup;

double ThreadsOf(const capture::LaunchConfiguration& shape) {
  return static_cast<double>(shape.grid.Count() * shape.block.Count());
}

/// Predicts the launches of one kernel.
class Predictions {
 public:
  Predictions(const capture::Capture& capture, const Path& folder, const Target& target,
              Compiler& compiler, Clock& clock, const std::stop_token& stop)
      : capture_(capture),
        blobs_(capture::BlobsOf(folder)),
        target_(target),
        compiler_(compiler),
        clock_(clock),
        stop_(stop) {}

  /// Seconds of the launch; an Error says why there is no prediction.
  Result<double> SecondsOf(const CapturedLaunch& launch) {
    ATUNNER_TRY(UserKernel kernel, KernelOfLaunch(capture_, launch, blobs_));
    ATUNNER_TRY(const auto schedule, MakeUserTemplate(kernel));
    ATUNNER_TRY(
        const std::vector<Prediction> predicted,
        PredictConfigurations(*schedule, target_, {schedule->Default()}, compiler_, clock_, stop_));
    if (predicted.empty()) return Fail(ErrorCode::kCancelled, "stopped");
    if (predicted[0].error) return std::unexpected(*predicted[0].error);
    return predicted[0].estimate->time_ns * 1e-9;
  }

 private:
  const capture::Capture& capture_;
  Path blobs_;
  const Target& target_;
  Compiler& compiler_;
  Clock& clock_;
  const std::stop_token& stop_;
};

/// A kernel's recorded launch whose grid and block are nearest to those of the group.
const CapturedLaunch* NearestTo(const LaunchGroup& group,
                                const std::vector<const CapturedLaunch*>& launches) {
  if (launches.empty()) return nullptr;
  return *std::ranges::min_element(launches, {}, [&](const CapturedLaunch* launch) {
    const double there = ThreadsOf(launch->configuration), here = ThreadsOf(group.configuration);
    return std::max(there, here) / std::max(1.0, std::min(there, here));
  });
}

/// Adds the times of a kernel's groups: those measured, else the predicted time of the nearest
/// recorded launch, by the number of threads.
void AddSeconds(const capture::Capture& capture, const Path& blobs, Predictions* predictions,
                KernelShare& share) {
  auto launches = capture.RepeatableLaunches(share.kernel);
  // E.g. the last step of a search writes nothing; an earlier one does.
  std::erase_if(launches, [&](const CapturedLaunch* launch) {
    return !KernelOfLaunch(capture, *launch, blobs);
  });
  std::map<const CapturedLaunch*, double> known;
  double most = -1;
  for (const LaunchGroup& group : capture.groups) {
    if (group.kernel != share.kernel) continue;
    double seconds = group.seconds;
    const CapturedLaunch* nearest = NearestTo(group, launches);
    if (seconds > 0) share.evidence = capture.head.evidence;
    if (seconds == 0 && predictions != nullptr && nearest != nullptr) {
      if (!known.contains(nearest)) {
        const auto predicted = predictions->SecondsOf(*nearest);
        known[nearest] = predicted.value_or(0);
        if (!predicted && share.obstacle.empty()) share.obstacle = predicted.error().what;
      }
      seconds = known[nearest] * static_cast<double>(group.launches) *
                ThreadsOf(group.configuration) / ThreadsOf(nearest->configuration);
    }
    share.seconds += seconds;
    if (nearest != nullptr && seconds > most) most = seconds, share.launch = nearest;
  }
}

std::string ObstacleOf(const capture::Capture& capture, const Path& blobs,
                       const KernelShare& share) {
  std::string obstacle = "none of its launches was recorded";
  for (const CapturedLaunch& launch : capture.launches) {
    if (launch.kernel != share.kernel) continue;
    const auto kernel = KernelOfLaunch(capture, launch, blobs);
    if (kernel) return "";
    obstacle = kernel.error().what;
  }
  return obstacle;
}

}  // namespace

Result<std::vector<KernelShare>> SharesOf(const capture::Capture& capture, const Path& folder,
                                          const Target& target, bool predict, Services& services,
                                          const EventSink& events, const std::stop_token& stop) {
  std::unique_ptr<Compiler> compiler;
  if (predict) {
    auto opened = services.compilers.Open(kCompileTimeoutSeconds);
    if (opened)
      compiler = *std::move(opened);
    else
      events(NoteEvent{"times are not predicted: " + opened.error().what});
  }
  std::optional<Predictions> predictions;
  if (compiler != nullptr)
    predictions.emplace(capture, folder, target, *compiler, services.clock, stop);
  std::vector<KernelShare> shares;
  double all = 0;
  for (size_t kernel = 0; kernel < capture.kernels.size(); ++kernel) {
    KernelShare& share = shares.emplace_back();
    share.kernel = kernel;
    share.obstacle = ObstacleOf(capture, capture::BlobsOf(folder), share);
    for (const LaunchGroup& group : capture.groups) {
      if (group.kernel != kernel) continue;
      share.launches += group.launches;
      ++share.configurations;
    }
    AddSeconds(capture, capture::BlobsOf(folder), predictions ? &*predictions : nullptr, share);
    all += share.seconds;
  }
  for (KernelShare& share : shares) share.share = all > 0 ? share.seconds / all : 0;
  std::ranges::stable_sort(shares, std::ranges::greater{}, [](const KernelShare& share) {
    return std::pair(share.seconds, share.launches);
  });
  return shares;
}

}  // namespace atunner::jobs
