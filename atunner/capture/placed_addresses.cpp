#include "atunner/capture/placed_addresses.h"

#include <nlohmann/json.hpp>

#include "atunner/model/json/json.h"

namespace atunner::capture {
namespace {

constexpr char kSeparator = '+';

}  // namespace

Result<std::string> PutAddresses(BlobStore& blobs, const BlobId& contents,
                                 const std::vector<PlacedAddress>& addresses) {
  if (addresses.empty()) return contents;
  Json list = Json::array();
  for (const PlacedAddress& one : addresses) list.push_back(Json{one.at, one.argument, one.offset});
  ATUNNER_TRY(const BlobId id, blobs.Put(DumpJson(list)));
  return contents + kSeparator + id;
}

BlobId ContentsOf(const std::string& name) { return name.substr(0, name.find(kSeparator)); }

Result<std::vector<PlacedAddress>> AddressesOf(const BlobStore& blobs, const std::string& name) {
  std::vector<PlacedAddress> addresses;
  const size_t separator = name.find(kSeparator);
  if (separator == std::string::npos) return addresses;
  const BlobId id = name.substr(separator + 1);
  ATUNNER_TRY(const std::string text, blobs.Get(id));
  try {
    for (const Json& one : Json::parse(text))
      addresses.push_back(
          {one.at(0).get<uint64_t>(), one.at(1).get<uint64_t>(), one.at(2).get<uint64_t>()});
  } catch (const Json::exception& error) {
    return Invalid(error.what(), "addresses " + id);
  }
  return addresses;
}

}  // namespace atunner::capture
