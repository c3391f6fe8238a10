// Messages between the two processes of `sanitize -- PROGRAM`: the command line sends an order to
// the library inside the program, which sends back its findings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "atunner/capture/applied.h"
#include "atunner/capture/record_order.h"
#include "atunner/device/device.h"
#include "atunner/model/json/json.h"

namespace atunner::program {

/// The environment variable that holds Order as JSON.
inline constexpr const char* kOrderVariable = "ATUNNER_PROGRAM";

/// The device to simulate, and the hazards to look for.
struct Order {
  DeviceProfile profile;
  uint8_t groups = kAllHazards;  ///< bits of HazardGroup
  double timeout_seconds = 60;   ///< per launch
  /// Per launch of a program that is recorded: then it goes on with the blocks that ran.
  double recorded_launch_seconds = 10;
  /// A program that is recorded ends at its first launch after this time.
  double recorded_seconds = 60;
  /// It ends earlier when so much time has passed, and half of it without a new kernel or grid.
  double quiet_seconds = 15;
  uint64_t max_instructions = uint64_t{1} << 28;
  /// A file to which each process appends its findings, one line each time that they grew.
  std::string report;
  std::optional<capture::RecordOrder> capture;
  std::optional<capture::ApplyOrder> apply;
};
Json ToJson(const Order& order);
Result<Order> ReadOrder(const std::string& text);

struct Findings {
  uint64_t launches = 0;
  uint64_t blocks = 0;
  std::vector<Hazard> hazards;  ///< one per kind and source line, with its number of occurrences
  /// Wrong calls and kernels that could not run, each message once.
  std::vector<std::string> errors;

  /// Adds or counts a hazard; true if it is a new one.
  bool Add(Hazard hazard);
  bool AddError(const std::string& error);
  void Merge(const Findings& other);
};
Json ToJson(const Findings& findings);
/// The last line of each process in the report, merged.
Result<Findings> ReadReport(const std::string& text);

}  // namespace atunner::program
