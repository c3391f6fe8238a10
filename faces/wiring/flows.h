// The files of this user that flows and knowledge are kept in.
#pragma once

#include <memory>
#include <string>

#include "atunner/knowledge/document_index.h"
#include "atunner/workflow/checkpoint.h"

namespace atunner {

/// The checkpoints of flows: "flows.db" in the user's data folder; with a store of its own
/// (`store_file` is not empty) that file's name with ".flows" appended.
Result<std::unique_ptr<workflow::Checkpoints>> OpenFlows(const std::string& store_file);

/// The handbook and the documents that the user added: "knowledge.db" in the user's data folder.
Result<std::unique_ptr<knowledge::DocumentIndex>> OpenKnowledge();

}  // namespace atunner
