// What the families' templates share: a task, a device, a space, and the way their source is put
// together.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "atunner/model/schedule/schedule_template.h"
#include "atunner/model/value/device_profile.h"

namespace atunner {

std::vector<Value> Integers(std::initializer_list<int64_t> values);
/// a / b rounded up; both positive.
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
/// 1, 2, 4, … up to `most`, as far as `serves(value)` allows.
template <class Serves>
std::vector<Value> PowersOfTwo(int64_t most, const Serves& serves) {
  std::vector<Value> values;
  for (int64_t value = 1; value <= most && serves(value); value *= 2) values.emplace_back(value);
  return values;
}
/// Of an element.
inline int64_t BytesOf(DType dtype) { return static_cast<int64_t>(SizeOf(dtype)); }
/// Counts and sizes in a cost.
constexpr double Real(int64_t value) { return static_cast<double>(value); }

/// A configuration whose values are asked for by name.
struct Chosen {
  const ParameterSpace& space;
  const Configuration& configuration;
  int64_t operator[](const char* name) const { return GetInt(space, configuration, name); }
  std::string Word(const char* name) const { return ToString(Get(space, configuration, name)); }
  operator const Configuration&() const {
    return configuration;
  }  // NOLINT(google-explicit-constructor)
};

/// An argument of a kernel, as a word: "x" is a tensor of the task, "@x" a workspace of the plan;
/// "i32:…", "i64:…" and "f32:…" are scalars, as expressions over dims, attributes and parameters.
/// What has no word comes as it is.
struct Argument : ArgBinding {
  Argument(ArgBinding binding)
      : ArgBinding(std::move(binding)) {}  // NOLINT(google-explicit-constructor)
  Argument(const std::string& word);       // NOLINT(google-explicit-constructor)
  Argument(const char* word)
      : Argument(std::string(word)) {}  // NOLINT(google-explicit-constructor)
};
using Arguments = std::vector<Argument>;
void AddArguments(LaunchStep& step, const Arguments& arguments);
/// A launch of `blocks`, an expression, along x; what else a step has its maker adds.
LaunchStep Step(std::string entry, const std::string& blocks, const Expr& threads,
                const Arguments& arguments = {});

/// Constants that head an emitted source: one line each, with a comment where the name does not say
/// enough.
class ConstantBlock {
 public:
  ConstantBlock& Int(std::string_view name, int64_t value, std::string_view comment = {});
  ConstantBlock& Bool(std::string_view name, bool value, std::string_view comment = {});
  /// For what the preprocessor decides.
  ConstantBlock& Define(std::string_view name, int64_t value);
  ConstantBlock& Line(std::string_view line);
  /// Integers of the parameters of these names, in capitals.
  ConstantBlock& Ints(const Chosen& chosen, std::initializer_list<const char*> names);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// The text where it is wanted, else none.
constexpr std::string_view TextIf(bool wanted, std::string_view text) {
  return wanted ? text : std::string_view();
}

/// "tile_m" as "TILE_M".
std::string Capitals(std::string_view name);

/// Values for each parameter of a space.
using Choices = std::vector<std::vector<Value>>;

class BoundTemplate : public ScheduleTemplate {
 public:
  BoundTemplate(const KernelSpec& spec, const DeviceProfile& profile)
      : spec_(spec), profile_(profile), element_(spec.compute_dtype) {}

  const KernelSpec& spec() const override { return spec_; }
  const ParameterSpace& space() const override { return space_; }
  std::optional<RenderedKernel> Naive() const override;
  /// Among the ways to start, the configuration of least Cost on the template's own device; an
  /// empty one for an empty space.
  Configuration Default() const override;

 protected:
  int64_t dim(std::string_view name) const { return spec_.dims.find(name)->second; }
  bool half_precision() const { return element_ != DType::kFloat32; }

  void Add(const std::string& condition, const char* reason);
  /// A condition that so many `bytes`, an expression, are no more than a block may have.
  void AddShared(const std::string& bytes);
  /// Of an expression over parameters and dims.
  int64_t Evaluate(const Expr& expression, const Configuration& configuration) const;
  Chosen chosen(const Configuration& configuration) const { return {space_, configuration}; }
  /// All that there are.
  Choices AllValues() const;
  /// What is worth starting from.
  virtual std::vector<Choices> Ways() const { return {AllValues()}; }

  /// Comment, includes, element type and mma type, `constants`, then the texts.
  SourceUnit Emit(const Configuration& configuration, const ConstantBlock& constants,
                  std::initializer_list<std::string_view> texts) const;
  /// words.cuh, then the texts that are not empty.
  static std::string Joined(std::initializer_list<std::string_view> texts);
  /// A comment of the title and the configuration, then `head` and `body`.
  SourceUnit Titled(const std::string& title, const Configuration& configuration,
                    const std::string& head, const std::string& body) const;
  /// Of a task with one open size: all of them; with a `reason` those up to the task's own, because
  /// of it.
  SizeFreedom OpenSize(const char* reason = nullptr) const;
  /// A plan of these steps, knowing the configuration's parameters.
  LaunchPlan Plan(const Configuration& configuration, std::vector<LaunchStep> steps) const;

  KernelSpec spec_;
  DeviceProfile profile_;
  DType element_;  ///< what sources call T: of the result
  ParameterSpace space_;
};

/// A reason for OpenSize.
inline constexpr const char* kElementNumbers = "elements of more may not be numbered by 32 bits";

/// For FreeSizes: a source that moves `step` elements at once is right only where rows are whole
/// multiples of them.
Constraint WholeSteps(std::string_view dim, int64_t step);

/// kUnsupported where `spec` needs tensor cores with asynchronous copies (16-bit types) and the
/// device has none.
Status NeedsAmpere(const KernelSpec& spec, const DeviceProfile& profile);

}  // namespace atunner
