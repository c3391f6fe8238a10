// The finished product of a run, in the format that libatunner_runtime loads
// (docs/formats/artifact.md).
#pragma once

#include "atunner/base/files.h"
#include "atunner/model/artifact/artifact.h"
#include "atunner/model/schedule/schedule_template.h"
#include "atunner/store/store.h"
#include "atunner/tune/tune_session.h"

namespace atunner::jobs {

/// The manifest of a run's winner. The result must have a winner.
Artifact MakeArtifact(const RunRecord& run, const TuneResult& result,
                      const ScheduleTemplate& schedule, const DeviceProfile& profile);

/// Writes the winner's artifact to `folder`, or the report alone where no correct kernel was found
/// (an artifact that is there already then stays).
Status WriteArtifact(const Path& folder, const RunRecord& run, const TuneResult& result,
                     const ScheduleTemplate& schedule, const DeviceProfile& profile);

}  // namespace atunner::jobs
