// A user's kernel in its default configuration as its own reference: its results, converted to
// float64. 64-bit integers are kept as they are.
//
// What the kernel leaves unwritten, every candidate must. An element that holds its poison after
// the run may be unwritten, or a result that is equal by chance. Then a second run over the flipped
// poison, which differs everywhere, decides.
#pragma once

#include <memory>
#include <string>

#include "atunner/verify/oracle/reference_source.h"

namespace atunner {

class KernelAsGiven : public ReferenceSource {
 public:
  /// kInvalidInput if the task names no kernel or it does not compile.
  static Result<std::unique_ptr<KernelAsGiven>> Make(const OracleContext& context);

  std::string Describe(const Dims&) const override { return "the kernel as given"; }
  DType StoredType(DType output) const override;
  Status ComputePart(const TaskBuffers& buffers, const RangeOf& wide, int64_t part) override;
  Status Try(const TaskBuffers& buffers, double seconds) override;
  Program& program() { return *program_; }

 private:
  explicit KernelAsGiven(const OracleContext& context) : context_(context) {}
  /// `seconds`: wall clock on a virtual GPU.
  Status Run(const TaskBuffers& buffers, const Poison& poison, double seconds = 600);

  OracleContext context_;
  std::unique_ptr<Program> program_;
};

}  // namespace atunner
