// `tune`: tunes a kernel that a .toml or a T1 .json describes.
#include "atunner/jobs/runs/tuning.h"
#include "faces/cli/flags/tuning_flags.h"
#include "faces/cli/verbs/tuning_output.h"

namespace atunner::cli {
namespace {

struct TuneFlags {
  std::string file;
  TuningFlags tuning;
};

Result<int> Tune(const TuneFlags& flags, const Context& context) {
  jobs::TuneRequest request;
  request.file = flags.file;
  ATUNNER_TRY(request.tuning, flags.tuning.Options(context.command));
  return RunTuning(
      context, [&](jobs::Services& services, const jobs::EventSink& events, std::stop_token stop) {
        return jobs::Tune(request, services, events, std::move(stop));
      });
}

}  // namespace

void AddTune(VerbList& verbs) {
  const auto flags = std::make_shared<TuneFlags>();
  CLI::App* verb = verbs.Add(
      "tune", "tune a kernel described by a .toml, or by a Kernel Tuner / BAT T1 .json",
      [flags](const Context& c) { return Tune(*flags, c); });
  verb->add_option("file", flags->file, "kernel.toml or space.json")->required();
  AddTuning(verb, flags->tuning);
}

}  // namespace atunner::cli
