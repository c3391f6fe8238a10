#include "atunner/capture/record_order.h"

#include <nlohmann/json.hpp>

namespace atunner::capture {

Json ToJson(const RecordOrder& order) {
  return {{"capture", order.capture},
          {"launches_of_kernel", order.limits.launches_of_kernel},
          {"snapshot_bytes", order.limits.snapshot_bytes},
          {"all_snapshots_bytes", order.limits.all_snapshots_bytes}};
}

Result<RecordOrder> ReadRecordOrder(const std::string& text) {
  ATUNNER_TRY(const Json json, ParseJson(text, kRecordVariable));
  try {
    RecordOrder order{json.at("capture"), {}};
    auto& [launches, one, all] = order.limits;
    launches = json.value("launches_of_kernel", launches);
    one = json.value("snapshot_bytes", one);
    all = json.value("all_snapshots_bytes", all);
    return order;
  } catch (const Json::exception& error) {
    return Invalid(error.what(), kRecordVariable);
  }
}

}  // namespace atunner::capture
