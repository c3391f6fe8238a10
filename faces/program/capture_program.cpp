#include "faces/program/capture_program.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "atunner/capture/capture_reader.h"
#include "atunner/capture/capture_writer.h"
#include "atunner/compile/nvcc_program.h"

namespace atunner::program {
namespace {

constexpr int kNewestPtx = 90;  // that the virtual GPU executes

int ArchOf(const DeviceProfile& profile) {
  return std::min(kNewestPtx, profile.cc_major * 10 + profile.cc_minor);
}

/// A program with nothing to record leaves no folder behind.
std::unexpected<Error> Discard(const Path& folder, Error error) {
  std::error_code ignored;
  std::filesystem::remove_all(capture::BlobsOf(folder), ignored);
  std::filesystem::remove(capture::RecordsOf(folder), ignored);
  std::filesystem::remove(folder, ignored);
  return std::unexpected(std::move(error));
}

Result<CapturedProgram> Record(const CaptureRequest& request,
                               const std::vector<std::string>& command, const Path& folder) {
  ATUNNER_TRY(const TemporaryDirectory temporary, TemporaryDirectory::Make());
  const Path report = temporary.path() / "report";
  ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(report, ""));
  ATUNNER_RETURN_IF_ERROR(capture::BeginCapture(folder, {command[0],
                                                         {command.begin() + 1, command.end()},
                                                         request.profile.name,
                                                         Evidence::kPredicted}));
  Order order;
  order.profile = request.profile;
  order.groups = static_cast<uint8_t>(HazardGroup::kMemory);
  order.report = report.string();
  order.capture = CaptureOrder{std::filesystem::absolute(folder).string(), request.limits};
  auto ending = RunUnder(order, command, request.apart);
  if (!ending) return Discard(folder, ending.error());
  ATUNNER_TRY(const std::string text, ReadFile(report));
  CapturedProgram captured{folder, *ending, {}};
  ATUNNER_TRY(captured.findings, ReadReport(text));
  ATUNNER_RETURN_IF_ERROR(capture::CaptureWriter(folder).Append(
      capture::CaptureEnding{ending->exit_code, ending->signal}));
  return captured;
}

}  // namespace

Result<CapturedProgram> CaptureProgram(const CaptureRequest& request) {
  ATUNNER_TRY(const TemporaryDirectory temporary, TemporaryDirectory::Make());
  std::vector<std::string> command = request.command;
  Path named = request.source;
  if (!request.source.empty()) {
    const Path program = temporary.path() / request.source.stem();
    ATUNNER_RETURN_IF_ERROR(
        BuildProgram({request.source, request.nvcc_options, ArchOf(request.profile), program}));
    command.insert(command.begin(), program.string());
  } else if (command.empty()) {
    return Invalid("nothing to run", "", "atunner capture -- PROGRAM ARGUMENTS");
  } else {
    named = command[0];
  }
  const Path folder = request.out.empty() ? Path(named.stem().string() + ".capture") : request.out;
  ATUNNER_TRY(CapturedProgram captured, Record(request, command, folder));
  ATUNNER_TRY(const capture::Capture found, capture::ReadCapture(folder));
  if (!found.groups.empty()) return captured;
  std::string why = "the program launched no kernel that could be recorded";
  if (!captured.findings.errors.empty())
    why += ": " + captured.findings.errors.front();
  else if (!captured.ending.well())
    why += ": " + captured.ending.ToString();
  return Discard(folder, {ErrorCode::kInvalidInput, why, named.string(),
                          "give the arguments with which it does; a program without its symbols "
                          "must be built with nvcc -cudart shared"});
}

}  // namespace atunner::program
