#include "atunner/rewrites/subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace atunner::rewrites {
namespace {

/// The axis of "blockIdx.x * blockDim.x + threadIdx.x" in any order; 0 for another text.
char AxisOfIndex(const std::string& text) {
  for (const char axis : {'x', 'y', 'z'}) {
    const std::string product = fmt::format("blockIdx . {0} * blockDim . {0}", axis),
                      reversed = fmt::format("blockDim . {0} * blockIdx . {0}", axis);
    for (const std::string& one : {product, reversed}) {
      const std::string thread = fmt::format("threadIdx . {}", axis);
      if (text == fmt::format("{} + {}", one, thread) ||
          text == fmt::format("{} + {}", thread, one) ||
          text == fmt::format("( {} ) + {}", one, thread) ||
          text == fmt::format("{} + ( {} )", thread, one))
        return axis;
    }
  }
  return 0;
}

bool HasDistinctBuffers(const ConcreteStep& step) {
  std::set<std::string> names;
  for (const ConcreteArg& arg : step.args) {
    const bool pointer = arg.kind == ArgBinding::Kind::kTensor ||
                         arg.kind == ArgBinding::Kind::kWorkspace;
    if (pointer && !names.insert(arg.name).second) return false;
    if (arg.kind == ArgBinding::Kind::kBytes) return false;
  }
  return true;
}

}  // namespace

Subject::Subject(const RenderedKernel& kernel, ConcreteStep launch)
    : text_(kernel.source.text), syntax_(ParseCuda(text_)), launch_(std::move(launch)) {
  const std::string name = launch_.entry.substr(0, launch_.entry.find('<'));
  const auto found = std::ranges::find_if(syntax_.kernels, [&](const KernelDefinition& one) {
    return one.qualified == name || one.name == name;
  });
  if (found == syntax_.kernels.end()) return;
  kernel_ = &*found;
  body_ = ParseStatements(syntax_, kernel_->body);
  has_distinct_buffers_ = HasDistinctBuffers(launch_);
  FindIndices();
}

Result<std::unique_ptr<const Subject>> Subject::Read(const RenderedKernel& kernel,
                                                     const KernelSpec& spec) {
  if (kernel.source.language != Language::kCudaCpp)
    return Fail(ErrorCode::kUnsupported, "there is no source, only PTX");
  ATUNNER_TRY(const ConcretePlan plan, Resolve(kernel.plan, spec.dims, spec.attributes));
  if (plan.steps.size() != 1)
    return Fail(ErrorCode::kUnsupported, "several launches are not rewritten yet");
  std::unique_ptr<Subject> subject(new Subject(kernel, plan.steps.front()));
  if (subject->kernel_ == nullptr)
    return Fail(ErrorCode::kUnsupported,
                "the source does not define '" + plan.steps.front().entry + "'");
  subject->CountElements(spec);
  return subject;
}

void Subject::FindIndices() {
  for (const Statement& statement : body_) {
    if (statement.kind != Statement::Kind::kDeclaration) continue;
    const TokenRange left = UpTo(syntax_, statement.range, "=");
    const TokenRange value{std::min(left.end + 1, statement.range.end - 1),
                           statement.range.end - 1};
    if (left.empty() || value.empty()) continue;
    if (const char axis = AxisOfIndex(Joined(syntax_, value)))
      indices_.push_back({std::string(syntax_.token(left.end - 1).text), axis, value});
  }
}

void Subject::CountElements(const KernelSpec& spec) {
  for (size_t i = 0; i < launch_.args.size() && i < kernel_->parameters.size(); ++i) {
    const ArgSpec* arg = spec.FindArg(launch_.args[i].name);
    if (arg == nullptr || arg->role == Role::kScalar) continue;
    if (const auto shape = ShapeOf(*arg, spec, spec.dims))
      elements_[kernel_->parameters[i].name] = shape->elements;
  }
}

std::optional<int64_t> Subject::ElementsOf(const std::string& parameter) const {
  const auto found = elements_.find(parameter);
  return found == elements_.end() ? std::nullopt : std::optional(found->second);
}

const ThreadIndex* Subject::IndexOn(char axis) const {
  const auto found = std::ranges::find(indices_, axis, &ThreadIndex::axis);
  return found == indices_.end() ? nullptr : &*found;
}

const KernelParameter* Subject::FindParameter(std::string_view name) const {
  const auto found = std::ranges::find(kernel_->parameters, name, &KernelParameter::name);
  return found == kernel_->parameters.end() ? nullptr : &*found;
}

std::string Subject::FreshName(const std::string& wanted) const {
  const auto used = [&](const std::string& name) {
    return rewrites::Mentions(syntax_, {0, syntax_.lexed.tokens.size()}, name);
  };
  std::string name = wanted;
  for (int i = 2; used(name); ++i) name = wanted + "_" + std::to_string(i);
  return name;
}

}  // namespace atunner::rewrites
