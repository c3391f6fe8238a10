// Two-dimensional convolutions: images by channels, square filters, NCHW.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "atunner/recognition/kinds.h"

namespace atunner::recognition {
namespace {

struct ConvolutionSizes {
  int64_t images = 1, channels = 1, filters = 1, height = 1, width = 1, extent = 1;
  int64_t stride = 1, padding = 0;

  int64_t Out(int64_t size) const { return (size + 2 * padding - extent) / stride + 1; }
  int64_t Results() const { return images * filters * Out(height) * Out(width); }
};

Hypothesis HypothesisOf(const Facts& facts, const BufferFact& image, const BufferFact& filter,
                        const ConvolutionSizes& sizes, const std::string& form) {
  HypothesisWriter writer("convolution", form);
  std::string x = writer.Input(image, {sizes.images, sizes.channels, sizes.height, sizes.width});
  const std::string w = writer.Input(filter,
                                     {sizes.filters, sizes.channels, sizes.extent, sizes.extent});
  for (const int axis : {2, 3}) {
    if (sizes.padding > 0)
      x = writer.Line(
          fmt::format("pad({}, axis={}, low={}, high={})", x, axis, sizes.padding, sizes.padding));
  }
  for (const int axis : {2, 4})
    x = writer.Line(fmt::format("window({}, axis={}, size={}, stride={})", x, axis, sizes.extent,
                                sizes.stride));
  const std::string sums = writer.Line(
      fmt::format("contract({}, {}, equation=\"ncpuqv,kcuv->nkpq\")", x, w));
  return std::move(writer).Output(*facts.Output(), sums);
}

/// The square filters that the buffer can hold, with the strides and paddings by which the number
/// of results comes out.
void AddShapes(const Facts& facts, const BufferFact& image, const BufferFact& filter,
               ConvolutionSizes sizes, const std::string& form, std::vector<Hypothesis>& all) {
  constexpr int64_t kMostExtent = 15, kMostStride = 3;
  const int64_t planes = sizes.channels * sizes.filters;
  if (filter.elements % planes != 0) return;
  sizes.extent = std::llround(std::sqrt(static_cast<double>(filter.elements / planes)));
  if (sizes.extent * sizes.extent * planes != filter.elements || sizes.extent > kMostExtent ||
      sizes.extent > sizes.height || sizes.extent > sizes.width)
    return;
  for (sizes.stride = 1; sizes.stride <= kMostStride; ++sizes.stride) {
    for (sizes.padding = 0; sizes.padding <= sizes.extent / 2; ++sizes.padding) {
      if (sizes.Results() != facts.Output()->elements) continue;
      all.push_back(
          HypothesisOf(facts, image, filter, sizes,
                       fmt::format("convolution of {} and {}, {}, stride {}, padding {}",
                                   image.name, filter.name, form, sizes.stride, sizes.padding)));
    }
  }
}

void AddConvolutions(const Facts& facts, const BufferFact& image, const BufferFact& filter,
                     std::vector<Hypothesis>& all) {
  std::vector<SizeFact> counts = facts.sizes;
  counts.push_back({"1", 1});
  for (const SizeFact& channels : counts) {
    for (const SizeFact& filters : counts) {
      for (const SizeFact& height : facts.sizes) {
        for (const SizeFact& width : facts.sizes) {
          const int64_t each = channels.value * height.value * width.value;
          if (each < 1 || filters.value < 1 || image.elements % each != 0) continue;
          AddShapes(
              facts, image, filter,
              {image.elements / each, channels.value, filters.value, height.value, width.value},
              fmt::format("{} by {} by {}, filters: {}", channels.name, height.name, width.name,
                          filters.name),
              all);
        }
      }
    }
  }
}

}  // namespace

std::vector<Hypothesis> ConvolutionHypotheses(const Facts& facts) {
  std::vector<Hypothesis> all;
  for (const BufferFact* image : facts.Inputs()) {
    for (const BufferFact* filter : facts.Inputs()) {
      if (image == filter || image->dtype != filter->dtype ||
          image->dtype != facts.Output()->dtype || filter->elements == 1)
        continue;
      AddConvolutions(facts, *image, *filter, all);
    }
  }
  return all;
}

}  // namespace atunner::recognition
