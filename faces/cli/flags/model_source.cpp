#include "faces/cli/flags/model_source.h"

#include <utility>

#include "atunner/base/files.h"
#include "atunner/graph/text.h"
#include "atunner/importers/user_python.h"

namespace atunner::cli {

Result<std::optional<importers::ExportedModel>> ExportIfPython(std::string& file) {
  if (!importers::IsPythonFile(file)) return std::nullopt;
  ATUNNER_TRY(importers::ExportedModel exported, importers::ExportPythonModel(file));
  file = exported.archive.string();
  return exported;
}

Result<ModelSource> ReadModelSource(const std::string& name, const Dims& sizes) {
  std::string path = name;
  ATUNNER_TRY(const auto exported, ExportIfPython(path));
  if (importers::IsModelFile(path)) {
    ATUNNER_TRY(importers::ImportedModel model, importers::ImportModel(path, {sizes, {}}));
    graph::ValidGraph graph = model.graph;
    return ModelSource{std::move(graph), std::move(model)};
  }
  ATUNNER_TRY(const std::string text, ReadFile(path));
  ATUNNER_TRY(graph::ValidGraph graph, graph::Parse(text, path));
  return ModelSource{std::move(graph), std::nullopt};
}

std::vector<fusion::InputFact> InputFacts(const ModelSource& source) {
  std::vector<fusion::InputFact> facts;
  if (!source.model || source.model->trains()) return facts;
  for (const importers::ModelInput& input : source.model->inputs)
    facts.push_back({.weight = input.kind != importers::InputKind::kUser});
  return facts;
}

}  // namespace atunner::cli
