#include "atunner/capture/placed_addresses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace atunner::capture {
namespace {

TEST(PlacedAddresses, GoWithTheirContents) {
  const TemporaryDirectory folder;
  BlobStore blobs(folder.path());
  const BlobId contents = blobs.Put(std::string(16, '\0')).value();
  const std::vector<PlacedAddress> addresses = {{0, 3, 0}, {8, 3, 4096}};
  const std::string name = PutAddresses(blobs, contents, addresses).value();
  EXPECT_NE(name, contents);
  EXPECT_EQ(ContentsOf(name), contents);
  EXPECT_EQ(AddressesOf(blobs, name).value(), addresses);
  EXPECT_EQ(PutAddresses(blobs, contents, {}).value(), contents);
  EXPECT_TRUE(AddressesOf(blobs, contents).value().empty());
}

TEST(PlacedAddresses, AnythingElseIsRefused) {
  const TemporaryDirectory folder;
  BlobStore blobs(folder.path());
  const BlobId contents = blobs.Put("contents").value();
  for (const char* text : {"[[0, 1]]", "[[0, 1, \"x\"]]", "no list"}) {
    const BlobId list = blobs.Put(text).value();
    EXPECT_FALSE(AddressesOf(blobs, contents + "+" + list)) << text;
  }
  EXPECT_FALSE(AddressesOf(blobs, contents + "+../records"));
}

}  // namespace
}  // namespace atunner::capture
