// Answers of language models: whatever they hold, nothing but the kernel's text and launch changes.
#include <cstdint>
#include <string>
#include <string_view>

#include "atunner/llm/proposal.h"

namespace atunner::llm {

void FuzzProposal(std::string_view text) {
  RenderedKernel current;
  current.source.text = "#include <cuda_fp16.h>\n__global__ void k() {}\n";
  current.plan.steps.emplace_back();
  const std::string answer(text);
  if (const auto proposal = ReadProposal(answer, current)) {
    ATUNNER_CHECK(CheckIncludes(proposal->kernel.source.text, current.source.text).has_value());
    ATUNNER_CHECK(proposal->kernel.plan.steps.size() == 1);
    ATUNNER_CHECK(proposal->kernel.plan.steps[0].entry == current.plan.steps[0].entry);
    ATUNNER_CHECK(proposal->kernel.source.options == current.source.options);
  }
  (void)CheckIncludes(answer, current.source.text);
  ATUNNER_CHECK(Feedback(answer, 100).size() <= 100);
}

}  // namespace atunner::llm

#ifdef ATUNNER_FUZZER  // tests call the function above
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  atunner::llm::FuzzProposal({reinterpret_cast<const char*>(data), size});
  return 0;
}
#endif
