// A PyTorch program as `torch.export` writes it: typed values of its JSON (schema major 8), without
// what does not concern the computation.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "atunner/model/value/dtype.h"

namespace atunner::importers {

/// A value of the program by its name.
struct TensorRef {
  std::string name;
  bool operator==(const TensorRef&) const = default;
};
using TensorRefs = std::vector<std::optional<TensorRef>>;

/// An element type by PyTorch's number. `dtype` is empty for types that atunner lacks (complex).
struct ScalarType {
  std::optional<DType> dtype;
  bool operator==(const ScalarType&) const = default;
};

/// What no computation depends on, such as a device, a layout or a memory format; or what the
/// reader does not know, such as a subgraph. `kind` is the JSON's word for it: "as_device".
struct Opaque {
  std::string kind;
  bool operator==(const Opaque&) const = default;
};

/// An argument of an operator. monostate is Python's None.
using Argument = std::variant<std::monostate, TensorRef, TensorRefs, bool, std::vector<bool>,
                              int64_t, std::vector<int64_t>, double, std::vector<double>,
                              std::string, ScalarType, Opaque>;

struct NamedArgument {
  std::string name;
  Argument value;
};

struct ProgramNode {
  std::string target;  ///< "aten.add.Tensor", without "torch.ops."
  std::vector<NamedArgument> arguments;
  TensorRefs outputs;  ///< empty places are results that nobody uses
  /// The name that messages use: that of the first output.
  std::string Name() const;
};

struct TensorMeta {
  ScalarType type;
  std::vector<int64_t> sizes;
};

enum class InputKind : uint8_t { kUser, kParameter, kBuffer, kConstant };

struct ProgramInput {
  InputKind kind = InputKind::kUser;
  std::string name;            ///< the value's name in the graph
  std::string qualified_name;  ///< "layers.0.weight"; empty for inputs of users
};

/// What a result is in a program. Gradients and losses are results of training steps.
enum class OutputRole : uint8_t { kResult, kLoss, kGradient, kUpdate };

struct ProgramOutput {
  std::string name;  ///< the value's name in the graph
  OutputRole role = OutputRole::kResult;
  /// kUpdate: the parameter, buffer or input whose new value it is; kGradient: the parameter or
  /// input by which the loss is differentiated; else empty
  std::string of;
};

struct ExportedProgram {
  std::vector<ProgramNode> nodes;
  std::map<std::string, TensorMeta, std::less<>> tensors;
  std::vector<ProgramInput> inputs;
  std::vector<ProgramOutput> outputs;
  std::vector<std::string> notes;  ///< what a user should know about how the file was read
};

}  // namespace atunner::importers
