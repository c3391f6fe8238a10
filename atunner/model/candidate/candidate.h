// A proposal of how to compute a task, before it is compiled: one configuration of a schedule
// template, a whole kernel as CUDA C++, or a whole kernel as PTX. Whoever proposed it, it is
// compiled, verified and timed in the same way.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "atunner/base/digest.h"
#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/model/space/parameter_space.h"

namespace atunner {

/// A kernel in CUDA C++ with its launch plan; its `source.language` is kCudaCpp.
struct SourceCandidate {
  RenderedKernel kernel;
};

/// A kernel in PTX with its launch plan; its `source.language` is kPtx. NVRTC is not used for it.
struct PtxCandidate {
  RenderedKernel kernel;
};

/// The origin of a candidate.
struct Provenance {
  /// "default", "user", or a kind and a name: "search:bayes", "rewrite:unroll", "llm:NAME".
  std::string proposer;
  std::string reason;  ///< one sentence for people, or ""
  /// Id of the candidate that this one was derived from.
  std::optional<Digest> parent = std::nullopt;
  bool operator==(const Provenance&) const = default;
};

enum class CandidateKind : uint8_t { kConfiguration, kSource, kPtx };
std::string_view Name(CandidateKind kind);  // "configuration", "source", "ptx"

/// The id is a content hash. It does not depend on the provenance, so that the same proposal made
/// twice has the same id. Make candidates with the functions below, which compute it.
struct Candidate {
  std::variant<Configuration, SourceCandidate, PtxCandidate> what;
  Provenance provenance;
  Digest id;

  CandidateKind kind() const { return static_cast<CandidateKind>(what.index()); }
  /// nullptr unless the candidate is a configuration.
  const Configuration* configuration() const { return std::get_if<Configuration>(&what); }
  /// The complete kernel; nullptr when the candidate is a configuration.
  const RenderedKernel* kernel() const;
  /// "threads=128, unroll=4" (names from `space`), "CUDA source 3f2a51c0" or "PTX 3f2a51c0".
  std::string Describe(const ParameterSpace& space) const;
};

/// The id hashes the names and values of the parameters, ordered by name: the same configuration of
/// the same space has the same id in every run, also after its parameters were listed in another
/// order.
Candidate MakeCandidate(const ParameterSpace& space, Configuration configuration,
                        Provenance provenance);
/// Sets the language to kCudaCpp. The id hashes the source unit and the launch plan.
Candidate MakeSourceCandidate(RenderedKernel kernel, Provenance provenance);
/// Sets the language to kPtx.
Candidate MakePtxCandidate(RenderedKernel kernel, Provenance provenance);

}  // namespace atunner
