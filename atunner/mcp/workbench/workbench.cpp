#include "atunner/mcp/workbench/workbench.h"

#include <utility>
#include <variant>

#include "atunner/base/digest.h"

namespace atunner::mcp {
namespace {

constexpr const char* kWithoutGpu = "A100";
constexpr size_t kDigestLetters = 8;

std::string IdOf(const ScheduleTemplate& schedule, const Target& target) {
  const std::vector<std::string> fields = {schedule.spec().ContentDigest().ToHex(),
                                           target.profile.name,
                                           std::string(Name(target.evidence()))};
  return schedule.spec().name + "-" + DigestOf(fields).ToHex().substr(0, kDigestLetters);
}

}  // namespace

Result<std::unique_ptr<Workbench>> Workbench::Make(jobs::Services& services,
                                                   WorkbenchSettings settings) {
  ATUNNER_TRY(TemporaryDirectory folder, TemporaryDirectory::Make());
  return std::unique_ptr<Workbench>(new Workbench(services, settings, std::move(folder)));
}

Result<Target> Workbench::TargetOf(const std::string& gpu) {
  if (!gpu.empty()) return services_.devices.Choose({gpu, false});
  return services_.devices.Choose({services_.devices.HasGpu() ? "auto" : kWithoutGpu, false});
}

Result<std::shared_ptr<const Problem>> Workbench::Register(const jobs::ProblemRequest& request,
                                                           const std::string& gpu) {
  Problem problem;
  problem.request = request;
  ATUNNER_TRY(problem.target, TargetOf(gpu));
  const jobs::EventSink events = [&](const jobs::Event& event) {
    if (const auto* note = std::get_if<jobs::NoteEvent>(&event))
      problem.notes.push_back(note->text);
  };
  ATUNNER_TRY(problem.schedule, jobs::OpenProblem(request, problem.target, events));
  problem.id = IdOf(*problem.schedule, problem.target);
  auto shared = std::make_shared<const Problem>(std::move(problem));
  const std::lock_guard lock(mutex_);
  return problems_.emplace(shared->id, shared).first->second;
}

Result<std::shared_ptr<const Problem>> Workbench::Find(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = problems_.find(id);
  if (found == problems_.end())
    return Fail(ErrorCode::kNotFound, "this session has no problem '" + id + "'",
                "arguments.problem", "call describe_problem first; it returns the id");
  return found->second;
}

Result<Path> Workbench::Write(const std::string& name, const std::string& text) {
  int number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = ++files_;
  }
  const Path folder = folder_.path() / std::to_string(number);
  ATUNNER_RETURN_IF_ERROR(MakeDirectories(folder));
  ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(folder / name, text));
  return folder / name;
}

}  // namespace atunner::mcp
