// The flags that name a task, and the request that they make.
#pragma once

#include <string>
#include <vector>

#include "atunner/jobs/requests/requests.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace atunner::cli {

struct TaskFlags {
  std::string operator_name;
  std::vector<std::string> shapes;
  std::string dtype = "float32";
  std::vector<std::string> attributes;
  std::string accuracy = "default";  ///< strict, default or fast
  std::string graph;                 ///< a graph in text form or a model, instead of an operator
  std::vector<std::string> dims;     ///< sizes of its symbols: B=4096, or B=1,64,4096

  Result<jobs::TaskRequest> Request() const;
};

/// A graph in text form, or the graph of a PyTorch program (.pt2 or .json).
Result<jobs::GraphText> ReadGraphFile(const std::string& path, const Dims& sizes = {});

/// "batch=4" for each open axis of a model, which has one size.
Result<Dims> SizesOfAxes(const std::vector<std::string>& flags);

/// --operator, --dtype, --attr and --accuracy. Returns --operator.
CLI::Option* AddOperator(CLI::App* verb, TaskFlags& flags);

}  // namespace atunner::cli
