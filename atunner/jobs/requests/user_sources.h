// Kernels that users bring: found in files, read, and checked.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "atunner/intake/bare/bare_source.h"
#include "atunner/jobs/requests/events.h"
#include "atunner/model/schedule/schedule_template.h"

namespace atunner::jobs {

/// Reads a .cu, .toml or .json, as its ending says.
Result<UserKernel> ReadUserKernel(const std::string& file, const SourceOptions& options);

/// The names of the kernels to use of a file: `kernel` if it is not empty, else every kernel that a
/// .cu launches. A single empty name stands for the only kernel of a file.
std::vector<std::string> KernelsOf(const std::string& file, const std::string& kernel);

/// The kernel's template, after its data files and headers were found and checked. Its notes go to
/// `events`. `verified`: its output will be compared, so that it must have one.
Result<std::unique_ptr<ScheduleTemplate>> TemplateOf(UserKernel& kernel, const std::string& file,
                                                     const EventSink& events, bool verified = true);

}  // namespace atunner::jobs
