// The annotations (`// atunner: …` lines) of a source. docs/formats/annotations.md describes them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/intake/cuda/cuda_lexer.h"
#include "atunner/model/kernel/kernel_spec.h"

namespace atunner {

struct StatedArgument {
  Role role = Role::kInput;
  DType dtype = DType::kFloat32;
  std::string extents;  ///< "n, m"
};

struct StatedLaunch {
  std::string grid;  ///< "ceil_div(n, 256), 1"; empty = as in the source
  std::string block;
  std::string shared;
  std::string cluster;
};

struct Annotations {
  std::string kernel;
  std::string entry;  ///< "reduce<float, 256>"
  Dims sizes;
  std::map<std::string, std::vector<Value>, std::less<>> tunables;
  std::map<std::string, StatedArgument, std::less<>> arguments;
  std::map<std::string, std::string, std::less<>> scalars;
  std::map<std::string, Fill, std::less<>> fills;
  StatedLaunch launch;
  std::vector<std::string> constraints;
  std::vector<Dims> checks;
  Tolerance tolerance;
  std::string flops;
  std::string bytes;
  std::vector<std::string> options;
};

/// Parses all annotations. kInvalidInput names file and line and shows how the line is written.
Result<Annotations> ParseAnnotations(const std::vector<Annotation>& lines, const std::string& file);

/// Parses "zeros", "constant 3", "iota", "uniform 0 1", "normal" (the default), "indices END",
/// "offsets END", "generator EXPRESSION" or "file data.bin". The first three may begin with
/// "exact", see IsExact.
Result<Fill> ParseFill(const std::string& text);

}  // namespace atunner
