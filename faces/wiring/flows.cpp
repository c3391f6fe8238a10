#include "faces/wiring/flows.h"

#include "atunner/base/files.h"
#include "atunner/workflow/sqlite_checkpoints.h"

namespace atunner {

Result<std::unique_ptr<workflow::Checkpoints>> OpenFlows(const std::string& store_file) {
  return workflow::SqliteCheckpoints::Open(store_file.empty() ? UserDataDirectory() / "flows.db"
                                                              : Path(store_file + ".flows"));
}

Result<std::unique_ptr<knowledge::DocumentIndex>> OpenKnowledge() {
  return knowledge::DocumentIndex::Open(UserDataDirectory() / "knowledge.db");
}

}  // namespace atunner
