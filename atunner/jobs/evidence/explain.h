// Why a kernel takes its time: one named bottleneck with evidence, and ideas against it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "atunner/jobs/evidence/profile.h"
#include "atunner/rewrites/rewrite.h"

namespace atunner::jobs {

/// A rewrite of the kernel's source that may help.
struct Idea {
  std::string rewrite;  ///< name in the catalogue
  std::string reason;
  evidence::Bottleneck removes = evidence::Bottleneck::kMemory;
  /// The gain of removing that bottleneck alone, by the time model; nullopt: it does not know
  std::optional<double> expected_gain;
  std::string obstacle;  ///< why it does not apply; "" if it does
  std::vector<rewrites::Proposal> proposals;
};

struct Explanation {
  KernelProfile profile;
  std::vector<Idea> ideas;  ///< the most promising first; those that do not apply last
};

/// The rewrites against what `launch` shows, which is a launch of `kernel`. A rewrite against none
/// of its findings is left out.
std::vector<Idea> IdeasFor(const RenderedKernel& kernel, const KernelSpec& spec,
                           const LaunchProfile& launch);

/// kInvalidInput where the kernel does not complete.
Result<Explanation> Explain(const ProfileRequest& request, Services& services,
                            const EventSink& events);

Json ToJson(const Idea& idea);
/// The profile's object with "ideas".
Json ToJson(const Explanation& explanation);

}  // namespace atunner::jobs
