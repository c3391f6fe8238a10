// Reads the JSON of an exported program: the file `models/model.json` of a .pt2 archive.
#pragma once

#include <string>
#include <string_view>

#include "atunner/base/result.h"
#include "atunner/importers/program/exported_program.h"
#include "atunner/importers/program/foreign_json.h"

namespace atunner::importers {

/// kInvalidInput with the place in the JSON if a field is missing or has another type;
/// kUnsupported for another schema, symbolic sizes and inputs that are no tensors. Unknown fields
/// are ignored, as the schema's rules ask.
Result<ExportedProgram> ReadProgram(std::string_view text, const std::string& where);

/// PyTorch's number of an element type: 7 is float32.
std::optional<DType> DTypeOfNumber(int64_t number);

/// A size as the JSON has it: 8, or {"as_int": 8}. nullopt for a symbolic one.
std::optional<int64_t> SizeFromJson(const ForeignJson& json);

}  // namespace atunner::importers
