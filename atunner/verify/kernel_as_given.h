// A user's kernel in its default configuration as its own reference: its results, converted to
// float64.
#pragma once

#include <memory>
#include <string>

#include "atunner/verify/reference_source.h"

namespace atunner {

class KernelAsGiven : public ReferenceSource {
 public:
  /// kInvalidInput if the task names no kernel or it does not compile.
  static Result<std::unique_ptr<KernelAsGiven>> Make(const OracleContext& context);

  std::string Describe(const Dims&) const override { return "the kernel as given"; }
  Status ComputePart(const TaskBuffers& buffers, const RangeOf& wide, int64_t part) override;
  Program& program() { return *program_; }

 private:
  explicit KernelAsGiven(const OracleContext& context) : context_(context) {}

  OracleContext context_;
  std::unique_ptr<Program> program_;
};

}  // namespace atunner
