// What the two processes of `sanitize -- PROGRAM` tell each other: the command line says what to
// look for, the library inside of the program what it found.
#pragma once

#include <string>
#include <vector>

#include "atunner/device/device.h"
#include "atunner/model/json/json.h"

namespace atunner::program {

/// The environment variable that holds Order as JSON.
inline constexpr const char* kOrderVariable = "ATUNNER_PROGRAM";

/// What to be, and what to look for.
struct Order {
  DeviceProfile profile;
  uint8_t groups = kAllHazards;  ///< HazardGroups
  double timeout_seconds = 60;   ///< of one launch
  uint64_t max_instructions = uint64_t{1} << 28;
  /// A file: each process appends its findings, a line each time that they grew
  std::string report;
};
Json ToJson(const Order& order);
Result<Order> ReadOrder(const std::string& text);

struct Findings {
  uint64_t launches = 0;
  uint64_t blocks = 0;
  std::vector<Hazard> hazards;  ///< one for each kind and place, counted
  /// Calls that were wrong, kernels that could not run; each once
  std::vector<std::string> errors;

  /// Adds what it does not know yet; true when there was any.
  bool Add(Hazard hazard);
  bool AddError(const std::string& error);
  void Merge(const Findings& other);
};
Json ToJson(const Findings& findings);
/// The last line of each process that wrote to the report, together.
Result<Findings> ReadReport(const std::string& text);

}  // namespace atunner::program
