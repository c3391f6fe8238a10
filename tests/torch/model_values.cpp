// What models mean to atunner, for whoever wants to compare: each line of standard input is a
// request, each line of standard output its answer. A request names a file, or holds the JSON of a
// PyTorch program; outputs are computed in float64.
//   {"path": "model.json", "inputs": {"x": [1, …]}}
//   {"path": "model.onnx", "inputs": {…}, "bound": {"shape": {"dtype": "int64", "shape": [2],
//    "values": [3, 4]}}}                           constants in the place of inputs
//   {"program": {…}, "inputs": {"x": [1, …]}}
// Without a program or a path the answer is the list of operators that are known.
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "atunner/graph/evaluate/evaluate.h"
#include "atunner/importers/aten/aten_table.h"
#include "atunner/importers/import_model.h"
#include "atunner/importers/onnx/onnx_table.h"
#include "atunner/importers/program/program_reader.h"

namespace atunner::importers {
namespace {

using nlohmann::json;

/// JSON has no infinities and no NaN: these are "inf", "-inf" and "nan".
double NumberOf(const json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  return value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>();
}
json JsonOf(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Result<ImportedModel> ModelOf(const json& request) {
  if (request.contains("path")) {
    ImportOptions options;
    const json bindings = request.value("bound", json::object());
    for (const auto& [name, tensor] : bindings.items()) {
      const auto dtype = ParseDType(tensor.at("dtype").get<std::string>());
      if (!dtype) return Invalid("an unknown type", name);
      graph::Tensor& bound = options.bound[name];
      bound = {*dtype, tensor.at("shape"), {}};
      for (const json& value : tensor.at("values"))
        bound.cells.push_back(graph::CellOf(*dtype, NumberOf(value)));
    }
    return ImportModel(request["path"].get<std::string>(), options);
  }
  ModelFile file;
  ATUNNER_TRY(file.program, ReadProgram(request.at("program").dump(), "program"));
  return ImportProgram(file, "program");
}

Result<json> OutputsOf(const ImportedModel& model, const json& given) {
  std::vector<graph::Tensor> inputs;
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    const graph::TensorType& type = model.graph.node(model.graph.inputs()[i]).type;
    graph::Tensor& input = inputs.emplace_back(graph::Tensor{type.dtype, {}, {}});
    for (const graph::Extent& extent : type.shape) input.shape.push_back(extent.factor());
    if (!given.contains(model.inputs[i].name))
      return Invalid("no values are given for the input", model.inputs[i].name);
    for (const json& value : given[model.inputs[i].name])
      input.cells.push_back(graph::CellOf(type.dtype, NumberOf(value)));
  }
  ATUNNER_TRY(const auto outputs, graph::Evaluate(model.graph, inputs));
  json all = json::array();
  for (const graph::Tensor& output : outputs) {
    json values = json::array();
    for (const double value : output.Reals()) values.push_back(JsonOf(value));
    all.push_back(std::move(values));
  }
  return json{{"outputs", std::move(all)}};
}

Result<json> Answer(const json& request) {
  if (!request.contains("path") && !request.contains("program"))
    return json{{"operators", AtenTargets()}, {"onnx", OnnxOperators()}};
  ATUNNER_TRY(const ImportedModel model, ModelOf(request));
  return OutputsOf(model, request.value("inputs", json::object()));
}

}  // namespace
}  // namespace atunner::importers

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto answer = atunner::importers::Answer(nlohmann::json::parse(line));
    const nlohmann::json text = answer ? *answer
                                       : nlohmann::json{{"error", answer.error().ToString()}};
    std::cout << text.dump() << std::endl;
  }
  return 0;
}
