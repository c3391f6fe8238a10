// Tunables of a captured kernel in its source.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "atunner/intake/captured/access_types.h"
#include "atunner/intake/captured/captured_kernel.h"
#include "atunner/intake/captured/definition.h"
#include "atunner/intake/captured/launch_tunables.h"
#include "atunner/intake/cuda/cuda_syntax.h"
#include "atunner/intake/cuda/kernel_body.h"
#include "atunner/intake/expression_text.h"
#include "atunner/intake/rewrite/macro_launches.h"

namespace atunner {
namespace {

constexpr const char* kAnonymous = "(anonymous namespace)";

std::vector<Value> Around(int64_t value) {
  std::set<int64_t> values = {value};
  for (const int64_t factor : {2, 4}) {
    if (value % factor == 0 && value / factor >= 1) values.insert(value / factor);
    values.insert(value * factor);
  }
  return {values.begin(), values.end()};
}

std::vector<Value> ThreadCounts(int64_t value, bool flat) {
  std::set<int64_t> values = {value};
  const auto usual = flat ? std::vector<int64_t>{32, 64, 128, 256, 512, 1024}
                          : std::vector<int64_t>{4, 8, 16, 32};
  values.insert(usual.begin(), usual.end());
  return {values.begin(), values.end()};
}

/// "256u", "(int)4", "true": the number of a template argument; nullopt for a type.
std::optional<int64_t> NumberOf(std::string text) {
  if (text == "true" || text == "false") return std::nullopt;
  if (text.starts_with('(')) text = text.substr(text.find(')') + 1);
  while (!text.empty() && (text.back() == 'u' || text.back() == 'l')) text.pop_back();
  return LiteralOf(text);
}

class SourceTunables {
 public:
  SourceTunables(UserKernel& kernel, const CudaSyntax& syntax, const KernelDefinition& definition,
                 const std::string& ptx)
      : kernel_(kernel), syntax_(syntax), definition_(definition), step_(kernel.plan.steps[0]) {
    for (size_t axis = 0; axis < 3; ++axis) {
      block_[axis] = Now(step_.block[axis]);
      grid_[axis] = Now(step_.grid[axis]);
    }
    const auto module = ptx::Parse(ptx);
    const ptx::Function* entry = module ? module->Find(step_.entry) : nullptr;
    const Dim3 block{static_cast<uint32_t>(block_[0]), static_cast<uint32_t>(block_[1]),
                     static_cast<uint32_t>(block_[2])};
    if (entry != nullptr) accesses_ = FindAccesses(*entry, block);
    given_ = {{static_cast<uint32_t>(grid_[0]), static_cast<uint32_t>(grid_[1]),
               static_cast<uint32_t>(grid_[2])},
              block,
              static_cast<uint32_t>(Now(step_.shared_bytes))};
  }

  void Run(const capture::Signature& signature) {
    free_block_ = FixLaunch(kernel_, given_);  // until the source says what may vary
    NameArguments();
    SetEntry(signature);
    Constants();
    if (!follows_) FreeBlock();
    Limit();
    Unrolls();
  }

 private:
  int64_t Now(const Expr& expr) const {
    const std::vector<std::string> names = kernel_.space.Names();
    return expr.EvaluateInt(Bindings(kernel_.spec.dims).Add(names, kernel_.initial.values))
        .value_or(1);
  }
  bool flat() const { return block_[1] == 1 && block_[2] == 1; }

  /// Arguments get the names of the source's parameters.
  void NameArguments() {
    for (size_t i = 0; i < definition_.parameters.size() && i < step_.args.size(); ++i) {
      const std::string& name = definition_.parameters[i].name;
      const std::string old = fmt::format("p{}", i);
      if (name.empty() || kernel_.spec.FindArg(name) != nullptr) continue;
      for (ArgSpec& arg : kernel_.spec.args) {
        if (arg.name == old) arg.name = name;
      }
      for (ArgBinding& binding : step_.args) {
        if (binding.name == old) binding.name = name;
        for (ParameterBytes::Pointer& pointer : binding.raw.pointers) {
          if (pointer.name == old) pointer.name = name;
        }
      }
    }
  }

  void SetEntry(const capture::Signature& signature) {
    step_.entry = definition_.qualified;
    for (size_t i = 0; i < signature.template_args.size(); ++i)
      step_.entry += (i == 0 ? "<" : ", ") + TemplateArgument(i, signature.template_args[i]);
    if (!signature.template_args.empty()) step_.entry += ">";
  }

  std::string TemplateArgument(size_t i, const std::string& text) {
    const auto number = NumberOf(text);
    if (!number || i >= definition_.templates.size() || definition_.templates[i].type == "bool" ||
        definition_.templates[i].name.empty())
      return text;
    AddTunable(definition_.templates[i].name, *number, {Injection::Kind::kLaunch, 0, 0, ""},
               "template argument");
    return "{" + definition_.templates[i].name + "}";
  }

  /// Guarded macros are the author's own tunables; constants that equal the block's extent and are
  /// used in the kernel decide it.
  void Constants() {
    for (const FileConstant& constant : syntax_.constants) {
      const auto value = LiteralOf(constant.value);
      if (!value || *value <= 0 || constant.kind == FileConstant::Kind::kEnumerator ||
          constant.length == 0 || !Uses(syntax_, definition_, constant.name))
        continue;
      const bool of_block = *value == block_[0] && *value > 1;
      if (!constant.guarded && !of_block) continue;
      AddTunable(constant.name, *value,
                 {Injection::Kind::kReplace, constant.offset, constant.length, ""},
                 of_block ? "threads of a block" : "");
    }
  }

  /// Adds a parameter; the block follows one that has its extent.
  void AddTunable(const std::string& name, int64_t value, Injection injection,
                  std::string meaning) {
    if (kernel_.space.Find(name) >= 0) return;
    const bool of_block = value == block_[0] && value > 1 && !follows_;
    Add(name, of_block ? ThreadCounts(value, flat()) : Around(value), value, std::move(injection),
        std::move(meaning));
    if (!of_block) return;
    follows_ = true;
    for (size_t axis = 0; axis < 3; ++axis) {
      if (block_[axis] == value) Follow(axis, name);
    }
  }

  void Follow(size_t axis, const std::string& name) {
    step_.block[axis] = Expr::MustParse(name);
    if (accesses_.block_scales_index[axis])
      step_.grid[axis] = Expr::MustParse(
          fmt::format("ceil_div({}, {})", block_[axis] * grid_[axis], name));
    if (axis == 0) {
      const int64_t shared = Now(step_.shared_bytes);
      if (shared != 0 && shared % block_[0] == 0)
        step_.shared_bytes = Expr::MustParse(fmt::format("{} * {}", shared / block_[0], name));
    }
  }

  void FreeBlock() {
    if (!free_block_) return;
    if (const auto extent = FixedSharedArray(syntax_, definition_, kernel_.space.Names())) {
      kernel_.notes.push_back("the block is not tuned: its shared array [" + *extent +
                              "] is of one size");
      return;
    }
    FreeLaunch(kernel_, accesses_, given_);
  }

  void Add(const std::string& name, std::vector<Value> values, int64_t initial, Injection injection,
           std::string meaning) {
    AddParameter(kernel_, {name, std::move(values), std::move(meaning)}, initial,
                 std::move(injection));
  }

  /// Innermost loops that the source leaves to the compiler.
  void Unrolls() {
    constexpr size_t kMostLoops = 2;
    const std::vector<size_t> loops = LoopsWithoutPragma(syntax_, definition_);
    for (size_t i = 0; i < std::min(kMostLoops, loops.size()); ++i) {
      const Token& loop = syntax_.token(loops[i]);
      Add(fmt::format("unroll_{}", i + 1),
          {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{4}, int64_t{8}}, 0,
          {Injection::Kind::kUnroll, loop.offset, 0, ""},
          fmt::format("unrolled iterations of the loop in line {}; 0 = the compiler's choice",
                      loop.line));
    }
  }

  /// A block has at most 1024 threads, and no more than the kernel is compiled for.
  void Limit() {
    const std::string threads = fmt::format("({}) * ({}) * ({})", step_.block[0].text(),
                                            step_.block[1].text(), step_.block[2].text());
    const auto bound = LiteralOf(LaunchBound(syntax_, definition_));
    if (!step_.block[0].Names().empty())
      kernel_.space.constraints.push_back(
          {Expr::MustParse(fmt::format("{} <= {}", threads, bound.value_or(1024))),
           bound ? "__launch_bounds__" : "a block has at most 1024 threads"});
  }

  UserKernel& kernel_;
  const CudaSyntax& syntax_;
  const KernelDefinition& definition_;
  LaunchStep& step_;
  std::array<int64_t, 3> block_{}, grid_{};
  KernelAccesses accesses_;
  GivenLaunch given_;
  bool follows_ = false, free_block_ = false;
};

}  // namespace

Status UseSource(UserKernel& kernel, const std::string& readable, const std::string& text,
                 const std::string& file) {
  const capture::Signature signature = capture::ParseSignature(readable);
  for (const std::string& argument : signature.template_args) {
    if (argument.contains("{lambda") || argument.contains("__nv_dl_wrapper") ||
        argument.contains(kAnonymous))
      return Invalid("the template argument " + argument + " has no name outside of the program",
                     file);
  }
  const std::string expanded = WithLaunchesExpanded(text);
  const CudaSyntax syntax = ParseCuda(expanded);
  const KernelDefinition* definition = FindDefinition(syntax, signature);
  if (definition == nullptr) return Invalid("kernel '" + readable + "' is not defined here", file);
  const std::string ptx = std::exchange(kernel.source.text, CompilableText(syntax));
  kernel.source.name = Path(file).filename().string();
  kernel.source.language = Language::kCudaCpp;
  SourceTunables(kernel, syntax, *definition, ptx).Run(signature);
  return {};
}

}  // namespace atunner
