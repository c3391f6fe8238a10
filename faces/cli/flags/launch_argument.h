// A kernel's arguments as they are written on the command line: values, and memory with what is in
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/model/json/json.h"
#include "atunner/model/kernel/launch_plan.h"
#include "atunner/model/kernel/texture.h"
#include "atunner/model/value/dtype.h"

namespace atunner::cli {

/// `5`, `-1.5`: a number of the parameter's type; `0x3f800000`: its bits. `f32=1,2,3,4`: values
/// that lie side by side, all of the parameter. `f32:1,2,3`: memory that holds these values.
/// `f32[1000]`: memory of so many elements that nothing was written to; `f32[1000]:0,1`: the same,
/// the values over and over. `f32@x.bin`: memory with the file's bytes. `texture:f32[64,32]`,
/// `surface:u8x4[16]`: a texture or surface object of so many texels of one, two or four channels,
/// with random content.
struct LaunchArgument {
  std::string text;
  std::optional<DType> dtype;  ///< none: a bare number
  bool memory = false;         ///< the parameter is its address
  size_t elements = 0;         ///< of the memory
  /// Values, packed; empty: memory that nothing was written to
  std::vector<std::byte> content;
  std::optional<TextureSpec> texture;  ///< then `content` are its texels
  bool surface = false;
};

/// "4", "4,2" or "4,2,1", none of them zero. kInvalidInput names `flag`.
Result<Dim3> ParseDim3(const std::string& flag, const std::string& text);

/// kInvalidInput says what is wrong with `text`; kNotFound names a file that is missing.
Result<LaunchArgument> ParseLaunchArgument(const std::string& text);

/// The type of a parameter in PTX: scalars have a type, structures and 16-bit floats only bytes.
struct Parameter {
  size_t bytes = 0;
  enum class Kind { kBits, kFloat, kInteger } kind = Kind::kBits;
};

/// The parameter's bytes from an argument that is no memory. kInvalidInput where they do not fit.
Result<std::vector<std::byte>> ValueBytes(const LaunchArgument& argument,
                                          const Parameter& parameter);

/// Element `index` of packed `bytes`: the shortest number that is read back as the same; "nan",
/// "inf".
std::string ElementText(DType dtype, const std::vector<std::byte>& bytes, size_t index);
/// The element as a JSON number, or as text where JSON has no such number ("nan").
Json ElementJson(DType dtype, const std::vector<std::byte>& bytes, size_t index);

}  // namespace atunner::cli
