// The result of `system` as text, JSON and a page.
#pragma once

#include <string>

#include "atunner/jobs/system/system_run.h"
#include "atunner/model/json/json.h"

namespace atunner::jobs {

std::string TextOf(const SystemResult& result);
Json ToJson(const SystemResult& result);
/// One HTML page that needs no other file. All names from users' files are escaped. `measured` is
/// the text of a SystemMeasurement, or empty.
std::string PageOf(const SystemResult& result, const std::string& measured = "");

/// The keys of a configuration, with type and meaning.
std::string SystemKeysText();

}  // namespace atunner::jobs
