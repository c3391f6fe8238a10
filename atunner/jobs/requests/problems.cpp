#include "atunner/jobs/requests/problems.h"

#include "atunner/codegen/template/family.h"
#include "atunner/jobs/requests/tasks.h"
#include "atunner/jobs/requests/user_sources.h"

namespace atunner::jobs {

Result<std::unique_ptr<ScheduleTemplate>> OpenProblem(const ProblemRequest& request,
                                                      const Target& target,
                                                      const EventSink& events) {
  if (request.file.empty() != request.task.has_value())
    return Invalid("which problem is not clear", "request",
                   "name an operator, a graph, or the file of a kernel");
  if (request.task) {
    ATUNNER_TRY(const KernelSpec spec, SpecOf(*request.task));
    return MakeTemplate(spec, target.profile);
  }
  SourceOptions options;
  options.kernel = request.kernel;
  options.extra_tunables = true;
  options.multiprocessors = target.profile.sms;
  const std::string file = request.file.string();
  ATUNNER_TRY(UserKernel kernel, ReadUserKernel(file, options));
  return TemplateOf(kernel, file, events);
}

}  // namespace atunner::jobs
