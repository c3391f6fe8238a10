// The verbs of the command line. Each returns an exit code; errors are rendered once, in main.
#pragma once

#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/store/store.h"
#include "atunner/tune/tune_session.h"

namespace atunner::cli {

/// Flags every verb has.
struct Common {
  bool json = false;
  bool quiet = false;
  bool explain = false;
  std::string store;
};

struct OptimizeFlags {
  std::string operator_name;
  std::vector<std::string> shapes;
  std::string dtype = "float32";
  std::vector<std::string> attributes;
  std::string target = "auto";
  std::string strategy = "bayes";
  std::string budget = "60 trials";
  uint64_t seed = 1;
  std::string out;
  bool force_virtual = false;
  bool fresh = false;
  int compile_threads = 0;
};

Result<int> Optimize(const OptimizeFlags& flags, const Common& common, const std::string& command);
Result<int> SelfTest(const Common& common, const std::string& target);
Result<int> Devices(const Common& common);
Result<int> Doctor(const Common& common);
Result<int> Operators(const Common& common);
Result<int> History(const Common& common);
Result<int> ShowReport(const std::string& run, const Common& common);
Result<int> Export(const std::string& run, const std::string& format, const Common& common);

// Rendering, in render.cpp.
std::string FormatTime(double ns);
/// The run as Markdown: what was asked, device, evidence, baselines, best, rejected.
std::string RenderMarkdown(const RunRecord& run, const TuneResult& result, const KernelSpec& spec,
                           const ParameterSpace& space, const DeviceProfile& profile);
std::string RenderTable(const TuneResult& result, const KernelSpec& spec, const ParameterSpace& space,
                        const DeviceProfile& profile, Evidence evidence);

}  // namespace atunner::cli
