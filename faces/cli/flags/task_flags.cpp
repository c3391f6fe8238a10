#include "faces/cli/flags/task_flags.h"

#include <CLI/CLI.hpp>

#include "atunner/base/files.h"
#include "atunner/graph/text.h"
#include "atunner/importers/import_model.h"
#include "faces/cli/flags/parse.h"

namespace atunner::cli {
Result<Dims> SizesOfAxes(const std::vector<std::string>& flags) {
  Dims sizes;
  for (const std::string& flag : flags) {
    ATUNNER_TRY(const auto parsed, ParseDim(flag));
    if (parsed.second.size() != 1)
      return Invalid("an axis of a model has one size", "--dim " + flag);
    sizes[parsed.first] = parsed.second[0];
  }
  return sizes;
}

namespace {

Status ReadGraph(const TaskFlags& flags, jobs::TaskRequest& request) {
  if (importers::IsOnnxFile(flags.graph)) {
    ATUNNER_TRY(const Dims sizes, SizesOfAxes(flags.dims));
    ATUNNER_TRY(request.graph, ReadGraphFile(flags.graph, sizes));
    return {};
  }
  ATUNNER_TRY(request.graph, ReadGraphFile(flags.graph));
  for (const std::string& dim : flags.dims) {
    ATUNNER_TRY(auto parsed, ParseDim(dim));
    request.dims.push_back(std::move(parsed));
  }
  return {};
}

}  // namespace

Result<jobs::GraphText> ReadGraphFile(const std::string& path, const Dims& sizes) {
  if (importers::IsModelFile(path)) {
    ATUNNER_TRY(const importers::ImportedModel model, importers::ImportModel(path, {sizes, {}}));
    return jobs::GraphText{graph::Print(model.graph), path};
  }
  ATUNNER_TRY(std::string text, ReadFile(path));
  return jobs::GraphText{std::move(text), path};
}

Result<jobs::TaskRequest> TaskFlags::Request() const {
  jobs::TaskRequest request;
  if (!graph.empty()) {
    ATUNNER_RETURN_IF_ERROR(ReadGraph(*this, request));
  } else {
    request.operator_name = operator_name;
    ATUNNER_TRY(request.dtype, ParseDTypeFlag(dtype));
    for (const std::string& text : shapes) {
      ATUNNER_TRY(std::vector<int64_t> shape, ParseShape(text, "--input-shape"));
      request.shapes.push_back(std::move(shape));
    }
    ATUNNER_TRY(request.attributes, ParseAttributes(attributes));
  }
  ATUNNER_TRY(request.accuracy, ParseAccuracyFlag(accuracy));
  return request;
}

CLI::Option* AddOperator(CLI::App* verb, TaskFlags& flags) {
  verb->add_option("--dtype", flags.dtype, "float32, float16 or bfloat16");
  verb->add_option("--attr", flags.attributes, "operator attribute, key=value");
  verb->add_option("--accuracy", flags.accuracy,
                   "strict: no further from float64 than the plain kernel; default: 4 times; "
                   "fast: TF32 and the like");
  return verb->add_option("--operator", flags.operator_name,
                          "operator to compute (`atunner operators` lists them)");
}

}  // namespace atunner::cli
