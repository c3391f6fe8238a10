#include "runtime/match.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <tuple>
#include <vector>

namespace atunner::loader {
namespace {

/// "sm_90a" taken apart.
struct Arch {
  int major = 0;
  int minor = 0;
  char suffix = '\0';  ///< 'a': this very capability only; 'f': this family; none: onwards
};

Arch ParseArch(std::string_view text) {
  const size_t digits = std::min(text.find_first_of("0123456789"), text.size());
  int number = 0;
  const auto [end, error] = std::from_chars(text.data() + digits, text.data() + text.size(),
                                            number);
  const char suffix = error == std::errc() && end != text.data() + text.size() ? *end : '\0';
  return {number / 10, number % 10, suffix};
}

bool HasFile(const Artifact& artifact, std::string_view file) {
  const auto at = artifact.digests.find(file);
  return at != artifact.digests.end() && at->second != DigestOf(std::string_view());
}

bool SameName(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b,
                            [](char x, char y) { return std::tolower(x) == std::tolower(y); });
}

/// The first thing about the problem that the artifact does not compute, apart from sizes.
std::optional<std::string> OtherTask(const Artifact& artifact, const Problem& problem) {
  if (!problem.name.empty() && problem.name != artifact.name) return "computes " + artifact.name;
  if (problem.dtype && *problem.dtype != artifact.spec.compute_dtype)
    return "computes in " + std::string(Name(artifact.spec.compute_dtype));
  for (const auto& [name, value] : problem.attributes) {
    const auto at = artifact.spec.attributes.find(name);
    if (at == artifact.spec.attributes.end()) return "has no attribute '" + name + "'";
    if (!LooselyEqual(at->second, value))
      return "was made for " + name + "=" + ToString(at->second);
  }
  return std::nullopt;
}

/// Why the device cannot hold the launch, if so.
std::optional<std::string> TooLarge(const Artifact& artifact, const DeviceFacts& facts,
                                    const Dims& dims) {
  const auto plan = Resolve(artifact.plan, dims, artifact.spec.attributes);
  if (!plan) return plan.error().ToString();
  for (const ConcreteStep& step : plan->steps) {
    const auto resources = std::ranges::find(artifact.resources, step.entry,
                                             &KernelResources::entry);
    const uint64_t shared = uint64_t{step.shared_bytes} + resources->static_shared_bytes;
    if (shared > static_cast<uint64_t>(facts.shared_per_block)) {
      return "needs " + std::to_string(shared) + " bytes of shared memory per block, " +
             facts.name + " has " + std::to_string(facts.shared_per_block);
    }
    if (step.cluster.Count() > 1 && facts.cc_major < 9) return "needs thread block clusters";
  }
  return std::nullopt;
}

MatchQuality QualityOf(const Artifact& artifact, const DeviceFacts& facts, bool same_size) {
  if (artifact.cc_major != facts.cc_major || artifact.cc_minor != facts.cc_minor)
    return MatchQuality::kCompatible;
  if (!SameName(artifact.device, facts.name)) return MatchQuality::kArchitecture;
  return same_size ? MatchQuality::kExact : MatchQuality::kDevice;
}

std::string Capability(int major, int minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

std::string Sentence(const Artifact& artifact, const DeviceFacts& facts, const Match& match) {
  std::string text = "tuned for " + artifact.device;
  if (match.quality == MatchQuality::kArchitecture)
    text += " (compute capability " + Capability(artifact.cc_major, artifact.cc_minor) +
            " like this " + facts.name + ")";
  if (match.quality == MatchQuality::kCompatible)
    text += " (compute capability " + Capability(artifact.cc_major, artifact.cc_minor) + "; this " +
            facts.name + " has " + Capability(facts.cc_major, facts.cc_minor) + ")";
  text += match.same_size ? " at this size"
                          : " at another size (" + DimsText(artifact.spec.dims) + ")";
  return text + ", " + std::string(Name(artifact.evidence));
}

double Distance(const Dims& tuned, const Dims& wanted) {
  double sum = 0;
  for (const auto& [name, extent] : tuned)
    sum += std::fabs(std::log2(static_cast<double>(wanted.at(name)) / static_cast<double>(extent)));
  return sum;
}

double TimeOf(const Artifact& artifact) { return artifact.trial.ObjectiveNs().value_or(INFINITY); }

/// Smaller is better.
auto Rank(const Artifact& artifact, const Match& match) {
  return std::tuple(-static_cast<int>(match.quality), !match.same_size, match.distance,
                    match.image != Image::kCubin, artifact.evidence != Evidence::kMeasured,
                    TimeOf(artifact));
}

std::string Joined(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// An attribute the caller left open and in which the candidates differ: silently taking one would
/// compute something else than intended.
Status CheckAttributes(std::span<const Artifact* const> artifacts, const Problem& problem) {
  std::map<std::string, std::set<std::string>> values;
  for (const Artifact* artifact : artifacts) {
    for (const auto& [name, value] : artifact->spec.attributes)
      values[name].insert(ToString(value));
  }
  for (const auto& [name, found] : values) {
    if (found.size() > 1 && !problem.attributes.contains(name))
      return Invalid("the artifacts differ in the attribute '" + name + "': " + Joined(found), "",
                     "say which");
  }
  return {};
}

Status CheckUnambiguous(std::span<const Artifact* const> artifacts, const Problem& problem) {
  std::set<std::string> names;
  std::set<std::string> dtypes;
  for (const Artifact* artifact : artifacts) {
    names.insert(artifact->name);
    dtypes.insert(std::string(Name(artifact->spec.compute_dtype)));
  }
  if (names.size() > 1)
    return Invalid("the artifacts compute different things: " + Joined(names), "",
                   "give the problem's name");
  if (dtypes.size() > 1)
    return Invalid("the artifacts compute in different types: " + Joined(dtypes), "",
                   "give the problem's dtype");
  return CheckAttributes(artifacts, problem);
}

}  // namespace

std::string DimsText(const Dims& dims) {
  std::string text;
  for (const auto& [name, extent] : dims)
    text += (text.empty() ? "" : " ") + name + "=" + std::to_string(extent);
  return text;
}

Image RunnableImage(const Artifact& artifact, const DeviceFacts& facts) {
  const Arch arch = ParseArch(artifact.arch);
  const bool same_family = arch.major == facts.cc_major && facts.cc_minor >= arch.minor;
  const bool exact = same_family && facts.cc_minor == arch.minor;
  const bool onwards = std::tie(facts.cc_major, facts.cc_minor) >= std::tie(arch.major, arch.minor);
  // Binaries run within their major version, PTX on everything later; 'a' code only where it was
  // made for.
  const bool cubin = arch.suffix == 'a' ? exact : same_family;
  const bool ptx = arch.suffix == 'a' ? exact : arch.suffix == 'f' ? same_family : onwards;
  if (cubin && HasFile(artifact, "kernel.cubin")) return Image::kCubin;
  return ptx && HasFile(artifact, "kernel.ptx") ? Image::kPtx : Image::kNone;
}

Match Examine(const Artifact& artifact, const DeviceFacts& facts, const Problem& problem) {
  Match match;
  const auto refuse = [&](const std::string& why) {
    match.text = why;
    return match;
  };
  if (const auto other = OtherTask(artifact, problem)) return refuse(*other);
  const Status serves = Serves(artifact.valid_sizes, artifact.spec.dims, problem.dims,
                               artifact.spec.attributes);
  if (!serves) return refuse(serves.error().ToString());
  match.image = RunnableImage(artifact, facts);
  if (match.image == Image::kNone) {
    return refuse("is compiled for " + artifact.arch + ", " + facts.name +
                  " has compute capability " + Capability(facts.cc_major, facts.cc_minor));
  }
  if (const auto large = TooLarge(artifact, facts, problem.dims)) return refuse(*large);
  match.same_size = problem.dims == artifact.spec.dims;
  match.distance = Distance(artifact.spec.dims, problem.dims);
  match.quality = QualityOf(artifact, facts, match.same_size);
  match.text = Sentence(artifact, facts, match);
  return match;
}

Result<Choice> ChooseArtifact(std::span<const Artifact* const> artifacts, const DeviceFacts& facts,
                              const Problem& problem, MatchQuality least) {
  if (artifacts.empty()) return Fail(ErrorCode::kNotFound, "the set holds no artifact");
  std::vector<const Artifact*> same_task;
  std::optional<Choice> best;
  std::string refusals;
  for (size_t i = 0; i < artifacts.size(); ++i) {
    if (!OtherTask(*artifacts[i], problem)) same_task.push_back(artifacts[i]);
    Match match = Examine(*artifacts[i], facts, problem);
    if (match.quality == MatchQuality::kNone || match.quality < least) {
      refusals += "\n  " + artifacts[i]->name + " (" + artifacts[i]->run + "): " + match.text;
      continue;
    }
    if (!best || Rank(*artifacts[i], match) < Rank(*artifacts[best->index], best->match))
      best = Choice{i, std::move(match)};
  }
  ATUNNER_RETURN_IF_ERROR(CheckUnambiguous(same_task, problem));
  if (best) return *std::move(best);
  return Fail(ErrorCode::kNotFound,
              "no artifact serves " + (problem.name.empty() ? "the problem" : problem.name) +
                  " with " + DimsText(problem.dims) + " on " + facts.name + ":" + refusals,
              "", "tune for this size and GPU: `atunner optimize`");
}

}  // namespace atunner::loader
