// A foreign plan.json; what is accepted keeps the rules of plans, can be written, and is then
// accepted again, the same.
#include <cstdint>
#include <string>
#include <string_view>

#include "atunner/model/plan/execution_plan.h"

namespace atunner {

void FuzzPlan(std::string_view text) {
  const auto plan = ParsePlan(text, "plan.json");
  if (!plan) return;
  const std::string once = PlanText(*plan);
  const auto again = ParsePlan(once, "plan.json");
  if (again) ATUNNER_CHECK(PlanText(*again) == once);
}

}  // namespace atunner

#ifdef ATUNNER_FUZZER  // tests call the function above
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  atunner::FuzzPlan({reinterpret_cast<const char*>(data), size});
  return 0;
}
#endif
