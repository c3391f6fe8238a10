#include "faces/recorder/apply_program.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "atunner/capture/replacement.h"
#include "faces/program/findings.h"
#include "faces/recorder/order.h"

namespace atunner::recorder {

std::vector<Path> ReplacementsIn(const Path& folder) {
  if (Exists(folder / capture::kReplacementFile)) return {folder};
  std::vector<Path> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (Exists(entry.path() / capture::kReplacementFile)) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

Result<AppliedProgram> ApplyProgram(const ApplyRequest& request) {
  if (request.command.empty())
    return Invalid("nothing to run", "", "atunner apply FOLDER -- PROGRAM ARGUMENTS");
  ATUNNER_TRY(const TemporaryDirectory temporary, TemporaryDirectory::Make());
  capture::ApplyOrder order;
  for (const Path& folder : ReplacementsIn(request.folder))
    order.folders.push_back(std::filesystem::absolute(folder).string());
  if (order.folders.empty())
    return Fail(ErrorCode::kNotFound, "there is no tuned kernel of a program",
                request.folder.string(), "`atunner optimize APP.capture` makes them");
  order.report = (temporary.path() / "applied").string();
  ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(order.report, ""));
  AppliedProgram applied;
  if (request.real) {
    ATUNNER_TRY(applied.ending,
                program::RunBehind("libatunner_record.so",
                                   {{capture::kApplyVariable, DumpJson(capture::ToJson(order))}},
                                   request.command, request.apart));
  } else {
    program::Order simulated;
    simulated.profile = request.profile;
    simulated.groups = static_cast<uint8_t>(HazardGroup::kMemory);
    simulated.apply = order;
    ATUNNER_TRY(applied.ending, program::RunUnder(simulated, request.command, request.apart));
  }
  ATUNNER_TRY(const std::string text, ReadFile(order.report));
  ATUNNER_TRY(applied.report, capture::ReadAppliedReport(text));
  return applied;
}

}  // namespace atunner::recorder
