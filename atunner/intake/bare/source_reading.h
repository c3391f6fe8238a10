// Reads one kernel of a bare source: which kernel, how it is launched and what its arguments are.
// See the example in bare_source.h. What cannot be inferred is asked for in one error with the
// lines to add.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "atunner/intake/bare/annotations.h"
#include "atunner/intake/cuda/cuda_syntax.h"
#include "atunner/intake/host/host_reading.h"
#include "atunner/model/kernel/launch_plan.h"
#include "atunner/model/space/parameter_space.h"

namespace atunner {

/// A launch as expression texts in the language of model/expr.
struct LaunchText {
  std::array<std::string, 3> grid = {"1", "1", "1"};
  std::array<std::string, 3> block = {"1", "1", "1"};
  std::array<std::string, 3> cluster = {"1", "1", "1"};
  std::string shared = "0";                ///< bytes
  std::vector<std::string> template_args;  ///< C++, or "{parameter}"
};

/// Cannot be moved: `host` and `kernel` point into `syntax`, which points into `text`.
struct SourceReading {
  SourceReading(std::string source, std::string name)
      : file(std::move(name)), text(std::move(source)), syntax(ParseCuda(text)) {}
  SourceReading(const SourceReading&) = delete;
  SourceReading& operator=(const SourceReading&) = delete;

  /// "file:line" of the kernel for messages, or the file before a kernel is chosen.
  std::string Where() const;
  /// The leaf of that name, if a host expression refers to it; else nullptr.
  const Leaf* FindLeaf(const std::string& name) const;
  /// Problem sizes: the stated ones and the literal values of the host's expressions, without those
  /// that are parameters of `space`.
  Dims SizesBeside(const ParameterSpace& space) const;

  std::string file;
  std::string text;  ///< the source after the rewrites
  CudaSyntax syntax;
  Annotations stated;
  const KernelDefinition* kernel = nullptr;
  const KernelLaunch* source_launch =
      nullptr;                      ///< nullptr if the source does not launch the kernel
  std::optional<HostReading> host;  ///< at the launch
  LaunchText launch;
  std::vector<ArgSpec> tensors;
  std::vector<ArgBinding> bindings;
  std::vector<std::string> notes;                      ///< messages about assumptions
  std::vector<SymbolCopy> symbols;                     ///< device variables that the host fills
  std::set<std::string, std::less<>> used_in_symbols;  ///< names whose values such variables hold
  std::set<std::string, std::less<>> used_in_sizes;    ///< names that decide a buffer's size
  std::set<std::string, std::less<>> used_in_scalars;  ///< names in the values of scalar arguments
};

/// Reads the kernel named `kernel`; empty: the only one, or the one that an annotation names.
/// `sizes` are stated beside the annotations.
Result<std::unique_ptr<SourceReading>> ReadSource(const std::string& text, const std::string& file,
                                                  const std::string& kernel, const Dims& sizes);

}  // namespace atunner
