#include "atunner/trace/findings/finding.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace atunner::trace {

std::vector<Rule> AllRules() {
  std::vector<Rule> rules;
  for (const auto& group :
       {IdleRules(), KernelRules(), OperatorRules(), CopyRules(), CommunicationRules(), RunRules()})
    rules.insert(rules.end(), group.begin(), group.end());
  return rules;
}

std::vector<Finding> FindAll(const FindingInput& input) {
  std::vector<Finding> findings;
  for (const Rule& rule : AllRules()) {
    auto finding = rule.find(input);
    if (!finding) continue;
    finding->rule = rule.name;
    findings.push_back(*std::move(finding));
  }
  std::ranges::stable_sort(findings, std::greater<>(), &Finding::gain);
  return findings;
}

}  // namespace atunner::trace
