// An ONNX model as typed values, without what does not concern the computation. Tensors refer to
// the bytes of the file.
// Field numbers and meaning: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/graph/evaluate/evaluate.h"
#include "atunner/model/value/dtype.h"

namespace atunner::importers {

/// TensorProto.DataType as atunner's type; nullopt for text, complex numbers and types of 4 bits,
/// and for unsigned 64-bit integers.
std::optional<DType> OnnxDType(int64_t data_type);

/// A tensor of the file. Its elements are in `raw`, in one of the lists, or in another file.
struct OnnxTensor {
  std::string name;
  int64_t data_type = 0;
  std::vector<int64_t> dims;
  std::string_view raw;         ///< little-endian; empty if a list holds the elements
  std::vector<int64_t> wholes;  ///< int32_data, int64_data or uint64_data
  std::vector<double> reals;    ///< float_data or double_data
  bool has_text = false;        ///< string_data
  /// "location", "offset" and "length" of external data.
  std::map<std::string, std::string, std::less<>> external;

  int64_t Count() const;
};

struct OnnxGraph;

struct OnnxAttribute {
  std::string name;
  int64_t type = 0;
  double real = 0;
  int64_t whole = 0;
  std::string text;
  std::optional<OnnxTensor> tensor;
  std::shared_ptr<OnnxGraph> graph;
  std::vector<double> reals;
  std::vector<int64_t> wholes;
  std::vector<std::string> texts;
  std::string refers_to;  ///< in a function: the attribute of the call that gives the value
};

struct OnnxNode {
  std::string op_type;  ///< "Conv"
  std::string domain;   ///< empty for "ai.onnx"
  std::string name;
  std::vector<std::string> inputs;   ///< empty names are inputs that are left out
  std::vector<std::string> outputs;  ///< empty names are outputs that nobody uses
  std::vector<OnnxAttribute> attributes;

  /// "'conv1' (Conv)"; without a name that of the first output.
  std::string Title() const;
};

/// An axis: a size, or the name of one that is open.
struct OnnxDim {
  int64_t size = 0;
  std::string symbol;
};

struct OnnxValueInfo {
  std::string name;
  int64_t data_type = 0;
  bool is_tensor = false;
  std::optional<std::vector<OnnxDim>> dims;  ///< nullopt: the rank is not stated
};

struct OnnxGraph {
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> initializers;
  bool has_sparse = false;
  std::vector<OnnxValueInfo> inputs, outputs;
};

/// A function of the model, by which nodes of other domains are defined.
struct OnnxFunction {
  std::string name, domain;
  std::vector<std::string> inputs, outputs;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxAttribute> defaults;
  std::map<std::string, int64_t> opsets;
};

struct OnnxModel {
  int64_t ir_version = 0;
  std::map<std::string, int64_t> opsets;  ///< by domain; that of ONNX is ""
  OnnxGraph graph;
  std::vector<OnnxFunction> functions;
};

/// Reads a model, which refers to `bytes` from then on. kInvalidInput if the bytes are no ONNX
/// model or are damaged.
Result<OnnxModel> ReadOnnx(std::string_view bytes, const std::string& where);
/// Reads a single tensor, as the inputs of ONNX's own tests are stored.
Result<OnnxTensor> ReadOnnxTensor(std::string_view bytes, const std::string& where);

/// kInvalidInput for external data outside of the model's folder.
Status CheckLocation(const OnnxTensor& tensor);

/// The elements of a tensor whose data is in the model file, or in a file of `folder`.
/// kUnsupported for types that atunner lacks; kInvalidInput if the elements do not fit the shape.
Result<graph::Tensor> ValuesOf(const OnnxTensor& tensor, const std::string& folder);

/// True if the first bytes of a file are those of an ONNX model: field 1, the version of its
/// format, comes first.
bool LooksLikeOnnx(std::string_view start);

}  // namespace atunner::importers
