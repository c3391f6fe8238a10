// Kernels by a language model: what it is shown, what it may answer, and what is made of the
// answer.
//
// It sees the task in words (names, types and shapes of arguments), the current kernel with its
// launch, the device's limits, the bottleneck, pages of the handbook, and earlier proposals with
// their outcomes. It never sees the oracle, tolerances, the judge or paths. Its answer is data: it
// can change the kernel's text and the sizes of its launch, and nothing else. The judge trusts it
// no more than any other candidate.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "atunner/llm/chat.h"
#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/model/value/device_profile.h"

namespace atunner::llm {

/// An earlier proposal and its outcome, as feedback.
struct Outcome {
  std::string title;
  std::string result;  ///< "1.2x faster", "wrong-result: …", "not compiled: …"
};

struct ProposalContext {
  const KernelSpec& spec;
  const DeviceProfile& profile;
  const RenderedKernel& kernel;    ///< the one to improve
  std::string facts;               ///< sentences on work, limits and the bottleneck
  std::vector<std::string> pages;  ///< of the handbook
  std::vector<Outcome> earlier;
};

struct Proposal {
  std::string title;
  std::string why;
  RenderedKernel kernel;
};

/// The request. Texts from outside are bounded in length.
ChatRequest PromptFor(const ProposalContext& context);

/// The kernel of an answer. kInvalidInput, with words for the model, for an answer that is no such
/// JSON, a patch that does not apply, an include that the current kernel does not have, or a launch
/// that is no expression.
Result<Proposal> ReadProposal(const std::string& answer, const RenderedKernel& current);

/// True feedback of at most `bytes` bytes: without paths of this machine and control characters.
std::string Feedback(const std::string& message, size_t bytes = 1500);

/// kInvalidInput for directives that read files beyond those of `current`: another #include, or
/// #embed, #import, __has_include in any spelling that the preprocessor takes.
Status CheckIncludes(const std::string& source, const std::string& current);

}  // namespace atunner::llm
