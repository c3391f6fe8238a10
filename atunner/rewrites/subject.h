// A kernel in its source with its launch: what a rewrite looks at.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/intake/cuda/cuda_syntax.h"
#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/rewrites/tree/statement.h"

namespace atunner::rewrites {

/// `int row = blockIdx.x * blockDim.x + threadIdx.x;`
struct ThreadIndex {
  std::string name;
  char axis = 'x';
  TokenRange value;  ///< behind the =
};

class Subject {
 public:
  /// The kernel that the plan's only step launches. kUnsupported for several steps, a template, and
  /// a kernel that the text does not define.
  static Result<std::unique_ptr<const Subject>> Read(const RenderedKernel& kernel,
                                                     const KernelSpec& spec);

  const CudaSyntax& syntax() const { return syntax_; }
  const KernelDefinition& kernel() const { return *kernel_; }
  const std::vector<Statement>& body() const { return body_; }
  const std::vector<ThreadIndex>& indices() const { return indices_; }
  const ThreadIndex* IndexOn(char axis) const;
  const ConcreteStep& launch() const { return launch_; }
  /// Each pointer refers to a buffer of its own.
  bool has_distinct_buffers() const { return has_distinct_buffers_; }

  std::string Text(TokenRange range) const { return std::string(syntax_.Text(range)); }
  bool Mentions(TokenRange range, std::string_view name) const {
    return rewrites::Mentions(syntax_, range, name);
  }
  bool BodyMentions(std::string_view name) const { return Mentions(kernel_->body, name); }
  /// The number of elements behind a pointer parameter at the launch's sizes; nullopt if unknown.
  std::optional<int64_t> ElementsOf(const std::string& parameter) const;
  /// A parameter by name; nullptr if there is none.
  const KernelParameter* FindParameter(std::string_view name) const;
  /// A name that the kernel does not use: `wanted`, or wanted_2, …
  std::string FreshName(const std::string& wanted) const;

 private:
  Subject(const RenderedKernel& kernel, ConcreteStep launch);
  void FindIndices();
  void CountElements(const KernelSpec& spec);

  std::string text_;
  CudaSyntax syntax_;
  ConcreteStep launch_;
  const KernelDefinition* kernel_ = nullptr;
  std::vector<Statement> body_;
  std::vector<ThreadIndex> indices_;
  bool has_distinct_buffers_ = false;
  std::map<std::string, int64_t> elements_;  ///< by parameter
};

}  // namespace atunner::rewrites
