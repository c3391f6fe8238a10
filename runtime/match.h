// How well an artifact fits a device and a problem, and which of several fits best. Pure: no driver
// is needed.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "atunner/base/result.h"
#include "atunner/model/artifact/artifact.h"
#include "runtime/cuda_driver.h"

namespace atunner::loader {

/// Worst to best; the numbers are those of atunner.h.
enum class MatchQuality : uint8_t {
  kNone = 0,
  kCompatible = 1,    ///< runs, tuned for another architecture
  kArchitecture = 2,  ///< tuned for another GPU of the same compute capability
  kDevice = 3,        ///< tuned for this GPU, at another size
  kExact = 4,         ///< tuned for this GPU and this size
};

/// The problem to compute. An empty name or dtype means the one that all artifacts have.
struct Problem {
  std::string name;
  std::optional<DType> dtype;
  Dims dims;
  Attributes attributes;
};

enum class Image : uint8_t { kNone, kCubin, kPtx };

/// The image of the artifact that a device can run: its cubin if that fits, else its PTX.
Image RunnableImage(const Artifact& artifact, const DeviceFacts& facts);

struct Match {
  MatchQuality quality = MatchQuality::kNone;
  Image image = Image::kNone;
  bool same_size = false;
  double distance = 0;  ///< sum over dims of |log2(wanted / tuned for)|
  std::string text;     ///< one sentence: what fits or what does not
};

Match Examine(const Artifact& artifact, const DeviceFacts& facts, const Problem& problem);

struct Choice {
  size_t index = 0;
  Match match;
};

/// The best match of at least `least`. kNotFound says of each candidate why it does not serve;
/// kInvalidInput when the problem leaves open which of different operators, dtypes or attributes is
/// meant.
Result<Choice> ChooseArtifact(std::span<const Artifact* const> artifacts, const DeviceFacts& facts,
                              const Problem& problem, MatchQuality least);

/// "cols=4096 rows=8192".
std::string DimsText(const Dims& dims);

}  // namespace atunner::loader
