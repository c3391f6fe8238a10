// The base of the families' templates: a task, a device, a parameter space, and how their source is
// put together.
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
/// Bytes of an element.
inline int64_t BytesOf(DType dtype) { return static_cast<int64_t>(SizeOf(dtype)); }
/// A count or size as a double, for cost estimates.
constexpr double Real(int64_t value) { return static_cast<double>(value); }

/// A configuration whose values are looked up by name.
struct Chosen {
  const ParameterSpace& space;
  const Configuration& configuration;
  int64_t operator[](const char* name) const { return GetInt(space, configuration, name); }
  std::string Word(const char* name) const { return ToString(Get(space, configuration, name)); }
  operator const Configuration&() const {
    return configuration;
  }  // NOLINT(google-explicit-constructor)
};

/// An argument of a kernel, written as a word: "x" is a tensor of the task, "@x" a workspace of the
/// plan; "i32:…", "i64:…" and "f32:…" are scalars, as expressions over dims, attributes and
/// parameters. Example: {"x", "@partial_sums", "i64:rows"}. Other bindings convert implicitly.
struct Argument : ArgBinding {
  Argument(ArgBinding binding)
      : ArgBinding(std::move(binding)) {}  // NOLINT(google-explicit-constructor)
  Argument(const std::string& word);       // NOLINT(google-explicit-constructor)
  Argument(const char* word)
      : Argument(std::string(word)) {}  // NOLINT(google-explicit-constructor)
};
using Arguments = std::vector<Argument>;
void AddArguments(LaunchStep& step, const Arguments& arguments);
/// A launch of `blocks` blocks along x, an expression; the caller adds whatever else the step
/// needs.
LaunchStep Step(std::string entry, const std::string& blocks, const Expr& threads,
                const Arguments& arguments = {});

/// The constants at the head of a generated source: one line each, with a comment where the name
/// does not say enough.
class ConstantBlock {
 public:
  ConstantBlock& Int(std::string_view name, int64_t value, std::string_view comment = {});
  ConstantBlock& Bool(std::string_view name, bool value, std::string_view comment = {});
  /// For constants that the preprocessor needs.
  ConstantBlock& Define(std::string_view name, int64_t value);
  ConstantBlock& Line(std::string_view line);
  /// Integer parameters of these names, as constants with names in capitals.
  ConstantBlock& Ints(const Chosen& chosen, std::initializer_list<const char*> names);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// The text if it is wanted, else an empty one.
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
  /// The configuration of least Cost on the template's own device among those that Ways() lists; an
  /// empty one for an empty space.
  Configuration Default() const override;

 protected:
  int64_t dim(std::string_view name) const { return spec_.dims.find(name)->second; }
  bool half_precision() const { return element_ != DType::kFloat32; }

  void Add(const std::string& condition, const char* reason);
  /// Adds the constraint that `bytes`, an expression, fit into a block's shared memory.
  void AddShared(const std::string& bytes);
  /// The value of an expression over parameters and dims.
  int64_t Evaluate(const Expr& expression, const Configuration& configuration) const;
  Chosen chosen(const Configuration& configuration) const { return {space_, configuration}; }
  /// All values of all parameters.
  Choices AllValues() const;
  /// Sets of configurations that are worth starting from; Default() chooses among them.
  virtual std::vector<Choices> Ways() const { return {AllValues()}; }

  /// Comment, includes, element type and mma type, `constants`, then the texts.
  SourceUnit Emit(const Configuration& configuration, const ConstantBlock& constants,
                  std::initializer_list<std::string_view> texts) const;
  /// words.cuh, then the texts that are not empty.
  static std::string Joined(std::initializer_list<std::string_view> texts);
  /// The source: a comment with the title and the configuration, then `head` and `body`.
  SourceUnit Titled(const std::string& title, const Configuration& configuration,
                    const std::string& head, const std::string& body) const;
  /// For a task with one open size: any value of it; with a `reason` only values up to the task's
  /// own, for that reason.
  ValidSizes OpenSize(const char* reason = nullptr) const;
  /// A launch plan of these steps, whose expressions may use the configuration's parameters.
  LaunchPlan Plan(const Configuration& configuration, std::vector<LaunchStep> steps) const;

  KernelSpec spec_;
  DeviceProfile profile_;
  DType element_;  ///< element type of the result, called T in sources
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
