// Reads some hundred randomly damaged kernel files of users, as the fuzzer (intake_fuzz.cpp) does.
#include <gtest/gtest.h>

#include <set>

#include "atunner/base/files.h"
#include "atunner/base/mutation_test.h"

namespace atunner {

bool FuzzIntake(const std::string& text);  // intake_fuzz.cpp

namespace {

/// Sample files of users: T1, TOML and bare sources.
std::set<Path> Files() {
  std::set<Path> files;
  for (const char* folder : {"atunner/intake/testdata", "atunner/intake/testdata/t1",
                             "examples/kernels", "tests/examples/t1_features"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(Path(ATUNNER_SOURCE_DIR) / folder)) {
      const std::string kind = entry.path().extension();
      if (kind == ".json" || kind == ".toml" || kind == ".cu") files.insert(entry.path());
    }
  }
  return files;
}

/// A damaged file is refused or read as another kernel; the program must not crash.
TEST(Damage, IsRefusedOrReadAsSomethingElse) {
  int refused = 0, accepted = 0;
  for (const Path& file : Files()) {
    const std::string good = ReadFile(file).value_or("");
    ASSERT_FALSE(good.empty()) << file;
    Random random(11);
    for (int i = 0; i < 100; ++i) ++(FuzzIntake(Mutated(good, random)) ? accepted : refused);
  }
  EXPECT_GT(refused, 500);
  EXPECT_GT(accepted, 50);
}

}  // namespace
}  // namespace atunner
