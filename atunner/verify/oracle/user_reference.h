// The reference of a user's task: the kernel as given, carried in float64 where that can be done.
//
// Where it cannot (no shadow, too little memory) or where the shadow and the kernel differ grossly
// (the kernel takes numbers apart by their bits), the kernel's own results are the reference.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "atunner/verify/oracle/kernel_as_given.h"
#include "atunner/verify/oracle/reference_source.h"
#include "atunner/verify/oracle/shadow_run.h"

namespace atunner {

class UserReference : public ReferenceSource {
 public:
  static Result<std::unique_ptr<UserReference>> Make(const OracleContext& context);

  std::string Describe(const Dims& dims) const override;
  Status ComputePart(const TaskBuffers& buffers, const RangeOf& wide, int64_t part) override;
  bool IsExact(const Dims& dims) const override;
  DType StoredType(DType output) const override { return given_->StoredType(output); }
  bool Repeats() const override;
  Status Try(const TaskBuffers& buffers, double seconds) override {
    return given_->Try(buffers, seconds);
  }
  Program& given() { return given_->program(); }

 private:
  using Results = std::map<std::string, std::vector<double>>;
  explicit UserReference(const OracleContext& context) : context_(context) {}
  /// The shadow's results; empty if the kernel's own are to be taken.
  Result<Results> RunShadow(const TaskBuffers& buffers);
  /// Puts the shadow's results in place of the kernel's own. Decides at the first instance of a
  /// size whether the two belong to the same computation.
  Status Replace(const TaskBuffers& buffers, const RangeOf& wide, const Results& results);

  OracleContext context_;
  std::unique_ptr<KernelAsGiven> given_;
  std::unique_ptr<ShadowRun> shadow_;  ///< nullptr if there is none
  bool adds_by_atomics_ = false;
  bool carries_floats_ = true;  ///< whether any output is a float
  std::string no_shadow_;       ///< why there is none
  /// Sizes whose references were computed: why the shadow does not serve there, "" if it does.
  std::map<Dims, std::string> obstacles_;
};

}  // namespace atunner
