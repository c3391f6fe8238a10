#include "atunner/model/trial/verdict.h"

#include <algorithm>

namespace atunner {

std::string_view Name(VerdictKind kind) {
  switch (kind) {
#define ATUNNER_VERDICT(id, name) \
  case VerdictKind::id:           \
    return name;
#include "atunner/model/trial/verdict.def"
#undef ATUNNER_VERDICT
  }
  return "inconclusive";
}

double Verdict::WorstError() const {
  double worst = 0;
  for (const CheckRecord& check : checks) worst = std::max(worst, check.error);
  return worst;
}

}  // namespace atunner
