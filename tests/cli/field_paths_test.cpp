#include "faces/cli/output/field_paths.h"

#include <gtest/gtest.h>

namespace atunner::cli {
namespace {

TEST(FieldPaths, BecomeTheFlagsThatSetTheField) {
  const std::pair<const char*, const char*> cases[] = {
      {"request.shapes", "--input-shape"},
      {"request.shapes[1]", "--input-shape"},
      {"request.shapes[1] of softmax", "--input-shape of softmax"},
      {"request.attributes.eps", "--attr eps"},
      {"request.attributes of conv2d", "--attr of conv2d"},
      {"request.dtype", "--dtype"},
      {"request.dims.B", "--dim B"},
      {"request.target", "--target-gpu"},
      {"request.compile_threads", "--compile-threads"},
      {"request.no_transfer: from nothing", "--no-transfer: from nothing"},
      {"leave energy out of request.objective.", "leave energy out of --objective."},
      {"request.shapes 8,64 and request.dims.n_1", "--input-shape 8,64 and --dim n_1"},
      {"request.shapes[x]", "--input-shape[x]"},
  };
  for (const auto& [path, flag] : cases) EXPECT_EQ(WithFlags(path), flag);
}

TEST(FieldPaths, LeavesOtherTextAlone) {
  for (const char* text : {"", "request.", "a request. And more", "myrequest.shapes", "request",
                           "kernel.toml:12: no such size"})
    EXPECT_EQ(WithFlags(text), text);
}

TEST(FieldPaths, AreTranslatedInEveryTextOfAnError) {
  const Error error = WithFlags(Error{ErrorCode::kInvalidInput, "request.seed is below 0",
                                      "request.seed", "leave out request.seed"});
  EXPECT_EQ(error.ToString(),
            Error(ErrorCode::kInvalidInput, "--seed is below 0", "--seed", "leave out --seed")
                .ToString());
}

}  // namespace
}  // namespace atunner::cli
