// Tasks of every family, and configurations drawn from their spaces.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "atunner/base/random.h"
#include "atunner/codegen/template/family.h"
#include "atunner/device/profiles.h"
#include "atunner/operators/operator.h"
#include "atunner/search/space/space_index.h"

namespace atunner {

struct FamilyTask {
  const char* op;
  std::vector<std::vector<int64_t>> shapes;
  Attributes attributes;
};

inline KernelSpec SpecOf(const FamilyTask& task, DType dtype) {
  return FindOperator(task.op)->Instantiate({task.shapes, dtype, task.attributes}).value();
}

inline std::string Describe(const FamilyTask& task, DType dtype) {
  std::string text = std::string(task.op) + " " + std::string(Name(dtype));
  for (const auto& shape : task.shapes) {
    text += " ";
    for (int64_t extent : shape) text += std::to_string(extent) + ",";
  }
  for (const auto& [name, value] : task.attributes) text += " " + name + "=" + ToString(value);
  return text;
}

constexpr DType kTaskTypes[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};

/// `count` different configurations at most, the default first.
inline std::vector<Configuration> DrawConfigurations(const ScheduleTemplate& schedule, size_t count,
                                                     uint64_t seed) {
  const auto index = SpaceIndex::Build(schedule.space(), schedule.spec().dims);
  EXPECT_TRUE(index.has_value()) << index.error().ToString();
  std::vector<Configuration> drawn = {schedule.Default()};
  Random random(seed);
  for (int tries = 0; drawn.size() < count && tries < 100; ++tries) {
    Configuration one = index->At(index->Draw(random));
    if (std::ranges::find(drawn, one) == drawn.end()) drawn.push_back(std::move(one));
  }
  return drawn;
}

/// The default with other values; a failure where the space does not allow them.
inline Configuration WithValues(const ScheduleTemplate& schedule,
                                const std::vector<std::pair<const char*, int64_t>>& values) {
  Configuration one = schedule.Default();
  for (const auto& [name, value] : values)
    one.values[static_cast<size_t>(schedule.space().Find(name))] = value;
  EXPECT_TRUE(schedule.space().Allows(one, schedule.spec().dims).value())
      << schedule.space().Describe(one);
  return one;
}

/// Values of tile_m, tile_n, group_rows, alternate, stages, split_k, persistent, in_cluster.
using ProductSchedule = std::array<int64_t, 8>;

inline std::vector<Configuration> ProductSchedules(const ScheduleTemplate& schedule,
                                                   const std::vector<ProductSchedule>& rows) {
  constexpr const char* kNames[] = {"tile_m", "tile_n",  "group_rows", "alternate",
                                    "stages", "split_k", "persistent", "in_cluster"};
  std::vector<Configuration> made;
  for (const ProductSchedule& row : rows) {
    std::vector<std::pair<const char*, int64_t>> values;
    for (size_t i = 0; i < row.size(); ++i) values.emplace_back(kNames[i], row[i]);
    made.push_back(WithValues(schedule, values));
  }
  return made;
}

}  // namespace atunner
