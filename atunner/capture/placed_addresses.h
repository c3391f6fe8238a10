// Addresses inside captured contents.
//
// Captured memory may hold addresses of other captured memory: tables of pointers, linked nodes.
// The contents have zeros there; a second blob lists what belongs there. The name of both together
// is "CONTENTS+LIST", e.g. "3f2a…+91bc…", which a task keeps in Fill::digest.
//
// Example: a table of two pointers to the rows of argument 3 has the list
//
//     [[0, 3, 0], [8, 3, 4096]]
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "atunner/capture/blob_store.h"

namespace atunner::capture {

/// Eight bytes at `at` hold the address of byte `offset` of the task's argument `argument`.
struct PlacedAddress {
  uint64_t at = 0;
  uint64_t argument = 0;
  uint64_t offset = 0;
  bool operator==(const PlacedAddress&) const = default;
};

/// Stores the list. Returns the name of the contents with it, `contents` itself for an empty list.
Result<std::string> PutAddresses(BlobStore& blobs, const BlobId& contents,
                                 const std::vector<PlacedAddress>& addresses);
/// The contents' own name.
BlobId ContentsOf(const std::string& name);
/// The list; empty for contents without one. kInvalidInput for a blob that is no list.
Result<std::vector<PlacedAddress>> AddressesOf(const BlobStore& blobs, const std::string& name);

}  // namespace atunner::capture
