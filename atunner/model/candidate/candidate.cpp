#include "atunner/model/candidate/candidate.h"

#include <utility>

namespace atunner {

std::string_view Name(CandidateKind kind) {
  switch (kind) {
    case CandidateKind::kConfiguration:
      return "configuration";
    case CandidateKind::kSource:
      return "source";
    case CandidateKind::kPtx:
      return "ptx";
  }
  return "configuration";
}

const RenderedKernel* Candidate::kernel() const {
  if (const auto* source = std::get_if<SourceCandidate>(&what)) return &source->kernel;
  if (const auto* ptx = std::get_if<PtxCandidate>(&what)) return &ptx->kernel;
  return nullptr;
}

std::string Candidate::Describe(const ParameterSpace& space) const {
  constexpr size_t kShown = 8;  // digits of the id: enough to tell the candidates of a run apart
  if (const Configuration* values = configuration()) return space.Describe(*values);
  return (kind() == CandidateKind::kSource ? "CUDA source " : "PTX ") +
         id.ToHex().substr(0, kShown);
}

Candidate MakeCandidate(const ParameterSpace& space, Configuration configuration,
                        Provenance provenance) {
  const Digest id = space.DigestOfConfiguration(configuration);
  return {std::move(configuration), std::move(provenance), id};
}

Candidate MakeSourceCandidate(RenderedKernel kernel, Provenance provenance) {
  kernel.source.language = Language::kCudaCpp;
  const Digest id = kernel.ContentDigest();
  return {SourceCandidate{std::move(kernel)}, std::move(provenance), id};
}

Candidate MakePtxCandidate(RenderedKernel kernel, Provenance provenance) {
  kernel.source.language = Language::kPtx;
  const Digest id = kernel.ContentDigest();
  return {PtxCandidate{std::move(kernel)}, std::move(provenance), id};
}

}  // namespace atunner
