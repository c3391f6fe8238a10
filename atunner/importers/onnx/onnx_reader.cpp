// Messages of onnx.proto. Each function reads one kind of message; `number` is the field's number
// there.
#include <fmt/format.h>

#include <utility>

#include "atunner/importers/onnx/onnx_model.h"
#include "atunner/importers/onnx/wire.h"

namespace atunner::importers {
namespace {

constexpr int kDeepest = 64;  ///< messages inside of each other: graphs of control flow

/// Reads messages; the first damage is remembered.
class Reader {
 public:
  bool damaged() const { return damaged_; }

  template <class Visit>
  void Fields(std::string_view message, Visit visit) {
    if (depth_ >= kDeepest) {
      damaged_ = true;
      return;
    }
    ++depth_;
    WireReader reader(message);
    for (WireField field; !damaged_ && reader.Next(field);) visit(field);
    damaged_ = damaged_ || reader.damaged();
    --depth_;
  }

  OnnxTensor Tensor(std::string_view message);
  OnnxAttribute Attribute(std::string_view message);
  OnnxNode Node(std::string_view message);
  OnnxValueInfo ValueInfo(std::string_view message);
  OnnxGraph Graph(std::string_view message);
  OnnxFunction Function(std::string_view message);
  OnnxModel Model(std::string_view message);

 private:
  void Wholes(const WireField& field, std::vector<int64_t>& list) {
    damaged_ = damaged_ || !AppendWholes(field, list);
  }
  std::pair<std::string, std::string> Entry(std::string_view message);
  void Opset(std::string_view message, std::map<std::string, int64_t>& opsets);
  void Shape(std::string_view message, OnnxValueInfo& info);
  void Type(std::string_view message, OnnxValueInfo& info);

  bool damaged_ = false;
  int depth_ = 0;
};

std::string DomainOf(std::string_view text) { return text == "ai.onnx" ? "" : std::string(text); }

std::pair<std::string, std::string> Reader::Entry(std::string_view message) {
  std::pair<std::string, std::string> entry;
  Fields(message, [&](const WireField& field) {
    if (field.number == 1) entry.first = field.bytes;
    if (field.number == 2) entry.second = field.bytes;
  });
  return entry;
}

OnnxTensor Reader::Tensor(std::string_view message) {
  OnnxTensor tensor;
  Fields(message, [&](const WireField& field) {
    switch (field.number) {
      case 1:
        return Wholes(field, tensor.dims);
      case 2:
        tensor.data_type = field.Signed();
        break;
      case 4:
        damaged_ = damaged_ || !AppendFloats(field, tensor.reals);
        break;
      case 5:   // int32_data
      case 7:   // int64_data
      case 11:  // uint64_data
        return Wholes(field, tensor.wholes);
      case 6:
        tensor.has_text = true;
        break;
      case 8:
        tensor.name = field.bytes;
        break;
      case 9:
        tensor.raw = field.bytes;
        break;
      case 10:
        damaged_ = damaged_ || !AppendDoubles(field, tensor.reals);
        break;
      case 13:
        tensor.external.insert(Entry(field.bytes));
        break;
      default:
        break;
    }
  });
  return tensor;
}

OnnxAttribute Reader::Attribute(std::string_view message) {
  OnnxAttribute attribute;
  Fields(message, [&](const WireField& field) {
    switch (field.number) {
      case 1:
        attribute.name = field.bytes;
        break;
      case 2:
        attribute.real = static_cast<double>(field.Float());
        break;
      case 3:
        attribute.whole = field.Signed();
        break;
      case 4:
        attribute.text = field.bytes;
        break;
      case 5:
        attribute.tensor = Tensor(field.bytes);
        break;
      case 6:
        attribute.graph = std::make_shared<OnnxGraph>(Graph(field.bytes));
        break;
      case 7:
        damaged_ = damaged_ || !AppendFloats(field, attribute.reals);
        break;
      case 8:
        return Wholes(field, attribute.wholes);
      case 9:
        attribute.texts.emplace_back(field.bytes);
        break;
      case 20:
        attribute.type = field.Signed();
        break;
      case 21:
        attribute.refers_to = field.bytes;
        break;
      default:
        break;
    }
  });
  return attribute;
}

OnnxNode Reader::Node(std::string_view message) {
  OnnxNode node;
  Fields(message, [&](const WireField& field) {
    if (field.number == 1) node.inputs.emplace_back(field.bytes);
    if (field.number == 2) node.outputs.emplace_back(field.bytes);
    if (field.number == 3) node.name = field.bytes;
    if (field.number == 4) node.op_type = field.bytes;
    if (field.number == 5) node.attributes.push_back(Attribute(field.bytes));
    if (field.number == 7) node.domain = DomainOf(field.bytes);
  });
  return node;
}

void Reader::Shape(std::string_view message, OnnxValueInfo& info) {
  info.dims.emplace();
  Fields(message, [&](const WireField& field) {
    if (field.number != 1) return;
    OnnxDim& dim = info.dims->emplace_back();
    bool stated = false;
    Fields(field.bytes, [&](const WireField& inner) {
      stated = true;
      if (inner.number == 1) dim.size = inner.Signed();
      if (inner.number == 2) dim.symbol = inner.bytes;
    });
    if (!stated) dim.symbol = fmt::format("dim{}", info.dims->size() - 1);
  });
}

void Reader::Type(std::string_view message, OnnxValueInfo& info) {
  Fields(message, [&](const WireField& field) {
    if (field.number != 1) return;  // sequences, maps, optionals, sparse tensors
    info.is_tensor = true;
    Fields(field.bytes, [&](const WireField& inner) {
      if (inner.number == 1) info.data_type = inner.Signed();
      if (inner.number == 2) Shape(inner.bytes, info);
    });
  });
}

OnnxValueInfo Reader::ValueInfo(std::string_view message) {
  OnnxValueInfo info;
  Fields(message, [&](const WireField& field) {
    if (field.number == 1) info.name = field.bytes;
    if (field.number == 2) Type(field.bytes, info);
  });
  return info;
}

OnnxGraph Reader::Graph(std::string_view message) {
  OnnxGraph graph;
  Fields(message, [&](const WireField& field) {
    if (field.number == 1) graph.nodes.push_back(Node(field.bytes));
    if (field.number == 5) graph.initializers.push_back(Tensor(field.bytes));
    if (field.number == 11) graph.inputs.push_back(ValueInfo(field.bytes));
    if (field.number == 12) graph.outputs.push_back(ValueInfo(field.bytes));
    if (field.number == 15) graph.has_sparse = true;
  });
  return graph;
}

void Reader::Opset(std::string_view message, std::map<std::string, int64_t>& opsets) {
  std::string domain;
  int64_t version = 0;
  Fields(message, [&](const WireField& field) {
    if (field.number == 1) domain = DomainOf(field.bytes);
    if (field.number == 2) version = field.Signed();
  });
  opsets[domain] = version;
}

OnnxFunction Reader::Function(std::string_view message) {
  OnnxFunction function;
  Fields(message, [&](const WireField& field) {
    if (field.number == 1) function.name = field.bytes;
    if (field.number == 4) function.inputs.emplace_back(field.bytes);
    if (field.number == 5) function.outputs.emplace_back(field.bytes);
    if (field.number == 7) function.nodes.push_back(Node(field.bytes));
    if (field.number == 9) Opset(field.bytes, function.opsets);
    if (field.number == 10) function.domain = DomainOf(field.bytes);
    if (field.number == 11) function.defaults.push_back(Attribute(field.bytes));
  });
  return function;
}

OnnxModel Reader::Model(std::string_view message) {
  OnnxModel model;
  Fields(message, [&](const WireField& field) {
    if (field.number == 1) model.ir_version = field.Signed();
    if (field.number == 7) model.graph = Graph(field.bytes);
    if (field.number == 8) Opset(field.bytes, model.opsets);
    if (field.number == 25) model.functions.push_back(Function(field.bytes));
  });
  return model;
}

}  // namespace

std::string OnnxNode::Title() const {
  if (name.empty() && !outputs.empty()) return fmt::format("'{}' ({})", outputs[0], op_type);
  return fmt::format("'{}' ({})", name, op_type);
}

Result<OnnxModel> ReadOnnx(std::string_view bytes, const std::string& where) {
  Reader reader;
  OnnxModel model = reader.Model(bytes);
  if (reader.damaged()) return Invalid("the ONNX model is damaged or cut off", where);
  if (model.ir_version < 1 || model.graph.outputs.empty())
    return Invalid("the file is no ONNX model: it has no version or no results", where);
  return model;
}

Result<OnnxTensor> ReadOnnxTensor(std::string_view bytes, const std::string& where) {
  Reader reader;
  OnnxTensor tensor = reader.Tensor(bytes);
  if (reader.damaged()) return Invalid("the tensor is damaged or cut off", where);
  return tensor;
}

bool LooksLikeOnnx(std::string_view start) {
  return start.size() >= 4 && start[0] == 0x08 && start[1] > 0 && start[1] < 0x40;
}

}  // namespace atunner::importers
