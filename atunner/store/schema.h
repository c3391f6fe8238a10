// The tables of a store, and how a file written by an earlier version becomes one of this version.
#pragma once

#include <span>
#include <string>

#include "atunner/base/files.h"
#include "atunner/base/result.h"
#include "atunner/model/candidate/renamed_parameters.h"

struct sqlite3;

namespace atunner {

inline constexpr int kSchemaVersion = 2;

/// The error of the last call on `handle`, with a hint where the user can do something about it.
std::unexpected<Error> StoreFailure(sqlite3* handle, const Path& file, std::string_view action);

/// kInvalidInput, and nothing is written, for a database with tables of another program and for a
/// store of a newer version. Otherwise makes the tables of an empty file, or migrates those of an
/// older version: within one transaction, so that the file stays as it was when that fails.
Status PrepareSchema(sqlite3* handle, const Path& file);

/// Puts today's names of parameters into the spaces of all runs, and the ids that follow from them
/// into their trials. Within one transaction.
Status RenameStoredParameters(sqlite3* handle, const Path& file,
                              std::span<const RenamedParameter> renamed);

}  // namespace atunner
