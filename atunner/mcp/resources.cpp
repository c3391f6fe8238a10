#include "atunner/mcp/resources.h"

#include <fmt/format.h>

#include <utility>

#include "atunner/device/profiles.h"
#include "atunner/jobs/runs/reports.h"
#include "atunner/operators/operator.h"

namespace atunner::mcp {
namespace {

constexpr int kNewestRuns = 20;
constexpr size_t kLargestSource = size_t{16} << 20;
constexpr std::string_view kOperators = "atunner://operators";
constexpr std::string_view kOperator = "atunner://operator/";
constexpr std::string_view kRun = "atunner://run/";
constexpr std::string_view kText = "atunner://text/";

std::string OperatorText(const OperatorInfo& info) {
  std::string text = fmt::format("# {}\n\n{}\n\nShapes: {}\n", info.name, info.summary,
                                 info.shape_help);
  for (const AttributeInfo& attribute : info.attributes)
    text += fmt::format("- attribute `{}` (default {}): {}\n", attribute.name,
                        ToString(attribute.fallback), attribute.meaning);
  return text;
}

std::string OperatorList() {
  std::string text;
  for (const Operator* op : AllOperators())
    text += fmt::format("{}: {}\n", op->info().name, op->info().summary);
  return text;
}

std::unexpected<Error> Unknown(const std::string& uri) {
  return Fail(ErrorCode::kNotFound, "there is no such resource", uri,
              "resources/list and resources/templates/list name them");
}

}  // namespace

std::vector<std::string> KnownValues(const std::string& subject, const std::string& argument) {
  std::vector<std::string> values;
  if (subject.starts_with(kOperator)) {
    for (const Operator* op : AllOperators()) values.push_back(op->info().name);
  } else if (argument == "gpu" || argument == "from" || argument == "to") {
    for (const DeviceProfile& profile : KnownProfiles()) values.push_back(profile.name);
  }
  return values;
}

Result<std::vector<ResourceInfo>> WorkbenchResources::List() {
  std::vector<ResourceInfo> resources = {
      {std::string(kOperators), "operators", "every operator in one line", "text/plain"}};
  ATUNNER_TRY(const auto store, workbench_.services().stores.OpenExisting());
  ATUNNER_TRY(const std::vector<RunRecord> runs, store->Runs(kNewestRuns));
  for (const RunRecord& run : runs) {
    resources.push_back({fmt::format("{}{}/report", kRun, run.id), run.id + " report",
                         run.command.substr(0, 200), "text/markdown"});
    if (Exists(workbench_.services().runs / run.id / "kernel.cu"))
      resources.push_back({fmt::format("{}{}/kernel", kRun, run.id), run.id + " best kernel",
                           "CUDA C++ of the best kernel", "text/x-cuda"});
  }
  return resources;
}

std::vector<ResourceInfo> WorkbenchResources::Templates() {
  return {
      {std::string(kOperator) + "{name}", "operator", "specification of an operator",
       "text/markdown"},
      {std::string(kRun) + "{run}/report", "report", "what a run found, and its evidence",
       "text/markdown"},
      {std::string(kRun) + "{run}/kernel", "best kernel", "CUDA C++ of a run's best kernel",
       "text/x-cuda"},
      {std::string(kText) + "{number}", "text", "a long text of an earlier answer", "text/plain"}};
}

Result<ResourceText> WorkbenchResources::ReadRun(const std::string& run, std::string_view what) {
  ATUNNER_TRY(const auto store, workbench_.services().stores.OpenExisting());
  ATUNNER_TRY(const RunRecord record, store->FindRun(run));
  if (what == "report") {
    ATUNNER_TRY(std::string text,
                jobs::MakeReportText({record.id, jobs::ReportRequest::Format::kMarkdown},
                                     workbench_.services()));
    return ResourceText{"text/markdown", std::move(text)};
  }
  ATUNNER_TRY(std::string text,
              ReadFile(workbench_.services().runs / record.id / "kernel.cu", kLargestSource));
  return ResourceText{"text/x-cuda", std::move(text)};
}

Result<ResourceText> WorkbenchResources::Read(const std::string& uri) {
  if (uri == kOperators) return ResourceText{"text/plain", OperatorList()};
  if (uri.starts_with(kOperator)) {
    const Operator* op = FindOperator(uri.substr(kOperator.size()));
    if (op == nullptr) return Unknown(uri);
    return ResourceText{"text/markdown", OperatorText(op->info())};
  }
  if (uri.starts_with(kText)) {
    ATUNNER_TRY(std::string text, workbench_.texts().Read(uri));
    return ResourceText{"text/plain", std::move(text)};
  }
  if (uri.starts_with(kRun)) {
    const size_t slash = uri.rfind('/');
    const std::string what = uri.substr(slash + 1);
    if (slash > kRun.size() && (what == "report" || what == "kernel"))
      return ReadRun(uri.substr(kRun.size(), slash - kRun.size()), what);
  }
  return Unknown(uri);
}

}  // namespace atunner::mcp
