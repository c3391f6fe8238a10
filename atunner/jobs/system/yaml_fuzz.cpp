// Foreign configurations: whatever the bytes, a configuration or a message.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "atunner/base/result.h"
#include "atunner/jobs/system/system_config.h"
#include "atunner/jobs/system/yaml.h"

#ifndef ATUNNER_FUZZER
#include <gtest/gtest.h>

#include "atunner/base/mutation_test.h"
#endif

namespace atunner::jobs {
namespace {

bool UseYaml(std::string_view bytes) {
  if (!ParseYaml(bytes)) return false;
  const auto config = ParseSystemConfig(bytes);
  if (config) ATUNNER_CHECK(!config->model.empty() && !config->gpus.empty());
  return true;
}

}  // namespace
}  // namespace atunner::jobs

#ifdef ATUNNER_FUZZER
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)atunner::jobs::UseYaml({reinterpret_cast<const char*>(data), size});
  return 0;
}
#else
namespace atunner::jobs {
namespace {

TEST(YamlFuzz, DamagedConfigurations) {
  const std::string good =
      "model: {file: model.json}\nhardware:\n  gpus: 8xH200\nobjective: weights\n"
      "weights:\n  throughput: 1.5\n  memory: 2\nlimits: {memory_gb: 40}\n";
  ASSERT_TRUE(UseYaml(good));
  ASSERT_TRUE(ParseSystemConfig(good));
  Random random(5);
  int accepted = 0;
  for (int i = 0; i < 1500; ++i) accepted += UseYaml(Mutated(good, random)) ? 1 : 0;
  EXPECT_GT(accepted, 10);
  EXPECT_LT(accepted, 1490);
}

}  // namespace
}  // namespace atunner::jobs
#endif
