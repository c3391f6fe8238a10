// What a bare source says of one kernel: which it is, how it is launched, and what its arguments
// are. Asks for what cannot be inferred, all in one message that shows the lines to add.
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
#include "atunner/intake/host/host_scope.h"
#include "atunner/model/kernel/launch_plan.h"
#include "atunner/model/space/parameter_space.h"

namespace atunner {

/// A launch as texts in the language of model/expr.
struct LaunchText {
  std::array<std::string, 3> grid = {"1", "1", "1"};
  std::array<std::string, 3> block = {"1", "1", "1"};
  std::array<std::string, 3> cluster = {"1", "1", "1"};
  std::string shared = "0";                ///< bytes
  std::vector<std::string> template_args;  ///< C++, or "{parameter}"
};

/// Stays where it is: `scope` and `kernel` refer to `syntax`, which refers to `text`.
struct SourceReading {
  SourceReading(std::string source, std::string name)
      : file(std::move(name)), text(std::move(source)), syntax(ParseCuda(text)) {}
  SourceReading(const SourceReading&) = delete;
  SourceReading& operator=(const SourceReading&) = delete;

  std::string Where() const;
  /// The leaf of that name, when a host expression referred to one.
  const Leaf* FindLeaf(const std::string& name) const;
  /// Problem sizes: what was stated, and literal values of the host's expressions unless they are
  /// parameters.
  Dims SizesBeside(const ParameterSpace& space) const;

  std::string file;
  std::string text;  ///< structures that are passed by value taken apart
  CudaSyntax syntax;
  Annotations stated;
  const KernelDefinition* kernel = nullptr;
  const KernelLaunch* source_launch = nullptr;  ///< none when the source launches it nowhere
  std::optional<HostScope> scope;
  LaunchText launch;
  std::vector<ArgSpec> tensors;
  std::vector<ArgBinding> bindings;
  std::vector<std::string> notes;                      ///< what was taken for granted, for people
  std::vector<SymbolCopy> symbols;                     ///< device variables that the host fills
  std::set<std::string, std::less<>> used_in_symbols;  ///< names whose values such variables hold
  std::set<std::string, std::less<>> used_in_sizes;    ///< names that decide a buffer's size
  std::set<std::string, std::less<>> used_in_scalars;
  std::map<std::pair<std::string, std::string>, std::string> objects;  ///< of SourceApart
};

/// `kernel` names which one; empty: the only one, or the one an annotation names.
Result<std::unique_ptr<SourceReading>> ReadSource(const std::string& text, const std::string& file,
                                                  const std::string& kernel);

}  // namespace atunner
