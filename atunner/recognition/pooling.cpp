// Largest elements and means of square windows of images.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "atunner/recognition/kinds.h"

namespace atunner::recognition {
namespace {

struct Pooling {
  int64_t height = 1, width = 1, extent = 2, stride = 2;
  int64_t Out(int64_t size) const { return (size - extent) / stride + 1; }
};

void AddPooling(const Facts& facts, const BufferFact& x, const Pooling& sizes,
                const std::string& form, std::vector<Hypothesis>& all) {
  const int64_t planes = x.elements / (sizes.height * sizes.width);
  if (planes * sizes.Out(sizes.height) * sizes.Out(sizes.width) != facts.Output()->elements) return;
  for (const char* op : {"max", "mean"}) {
    HypothesisWriter writer(fmt::format("{} of windows", op),
                            fmt::format("{} of windows of {}, {}, extent {}, stride {}", op, x.name,
                                        form, sizes.extent, sizes.stride));
    std::string value = writer.Input(x, {planes, sizes.height, sizes.width});
    for (const int axis : {1, 3})
      value = writer.Line(fmt::format("window({}, axis={}, size={}, stride={})", value, axis,
                                      sizes.extent, sizes.stride));
    const std::string wide = writer.Wide(value, x);
    const std::string pooled = writer.Line(fmt::format("reduce_{}({}, axes=[2, 4])", op, wide));
    all.push_back(std::move(writer).Output(*facts.Output(), pooled));
  }
}

}  // namespace

std::vector<Hypothesis> PoolingHypotheses(const Facts& facts) {
  constexpr int64_t kMostExtent = 5;
  std::vector<Hypothesis> all;
  if (!IsFloat(facts.Output()->dtype)) return all;
  for (const BufferFact* x : facts.Inputs()) {
    for (const SizeFact& height : facts.sizes) {
      for (const SizeFact& width : facts.sizes) {
        if (height.value < 2 || width.value < 2 || x->elements % height.value != 0 ||
            x->elements / height.value % width.value != 0)
          continue;
        const std::string form = height.name + " by " + width.name;
        for (int64_t extent = 2; extent <= kMostExtent; ++extent) {
          if (extent > height.value || extent > width.value) continue;
          for (int64_t stride = 1; stride <= extent; ++stride)
            AddPooling(facts, *x, {height.value, width.value, extent, stride}, form, all);
        }
      }
    }
  }
  return all;
}

}  // namespace atunner::recognition
