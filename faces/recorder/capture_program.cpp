#include "faces/recorder/capture_program.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "atunner/capture/capture_reader.h"
#include "atunner/capture/capture_writer.h"
#include "atunner/compile/nvcc_program.h"
#include "faces/program/findings.h"
#include "faces/recorder/order.h"

namespace atunner::recorder {
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

/// On the virtual GPU.
Result<CapturedProgram> Simulate(const CaptureRequest& request,
                                 const std::vector<std::string>& command, const Path& folder) {
  ATUNNER_TRY(const TemporaryDirectory temporary, TemporaryDirectory::Make());
  const Path report = temporary.path() / "report";
  ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(report, ""));
  program::Order order;
  order.profile = request.profile;
  order.groups = static_cast<uint8_t>(HazardGroup::kMemory);
  order.report = report.string();
  order.capture = RecordOrder{folder.string(), request.limits};
  ATUNNER_TRY(const program::Ending ending, program::RunUnder(order, command, request.apart));
  ATUNNER_TRY(const std::string text, ReadFile(report));
  ATUNNER_TRY(program::Findings findings, program::ReadReport(text));
  return CapturedProgram{folder, ending, std::move(findings.errors)};
}

/// On the GPU of this machine.
Result<CapturedProgram> Run(const CaptureRequest& request, const std::vector<std::string>& command,
                            const Path& folder) {
  const RecordOrder order{folder.string(), request.limits};
  ATUNNER_TRY(
      const program::Ending ending,
      program::RunBehind("libatunner_record.so", {{kRecordVariable, DumpJson(ToJson(order))}},
                         command, request.apart));
  return CapturedProgram{folder, ending, {}};
}

Result<CapturedProgram> Record(const CaptureRequest& request,
                               const std::vector<std::string>& command, const Path& folder) {
  ATUNNER_RETURN_IF_ERROR(
      capture::BeginCapture(folder, {command[0],
                                     {command.begin() + 1, command.end()},
                                     request.profile.name,
                                     request.real ? Evidence::kMeasured : Evidence::kPredicted}));
  const Path whole = std::filesystem::absolute(folder);
  auto captured = request.real ? Run(request, command, whole) : Simulate(request, command, whole);
  if (!captured) return Discard(folder, captured.error());
  ATUNNER_RETURN_IF_ERROR(capture::CaptureWriter(folder).Append(
      capture::CaptureEnding{captured->ending.exit_code, captured->ending.signal}));
  captured->folder = folder;
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
  if (!captured.errors.empty())
    why += ": " + captured.errors.front();
  else if (!captured.ending.well())
    why += ": " + captured.ending.ToString();
  return Discard(folder, {ErrorCode::kInvalidInput, why, named.string(),
                          "give the arguments with which it does; a program without its symbols "
                          "must be built with nvcc -cudart shared"});
}

}  // namespace atunner::recorder
