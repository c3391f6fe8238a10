#include "atunner/intake/bare_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "atunner/intake/annotations.h"
#include "atunner/intake/c_type.h"
#include "atunner/intake/host_scope.h"
#include "atunner/intake/kernel_body.h"
#include "atunner/intake/value_list.h"

namespace atunner {
namespace {

constexpr const char* kAxes[] = {"x", "y", "z"};
constexpr int64_t kLargestBlock = 1024;
constexpr int64_t kCheckElements = 40'000;  // of all buffers: well under a second on the virtual GPU
constexpr int64_t kSmallestHalved = 64;

using Names = std::vector<std::string>;

Names NamesOf(const std::string& text) {
  const auto expr = Expr::Parse(text);
  return expr ? expr->Names() : Names{};
}

bool Contains(const Names& names, std::string_view name) { return std::ranges::find(names, name) != names.end(); }

/// The text's value when it refers to nothing.
std::optional<int64_t> Literal(const std::string& text) {
  const auto expr = Expr::Parse(text);
  if (!expr || !expr->Names().empty()) return std::nullopt;
  const auto value = expr->EvaluateInt({});
  return value ? std::optional(*value) : std::nullopt;
}

/// Values around one that somebody chose: halves and doubles, or both states of a switch.
std::vector<Value> Around(const std::string& name, int64_t value) {
  const bool is_switch =
      value == 0 || (value == 1 && (name.starts_with("USE") || name.starts_with("use") || name.starts_with("ENABLE")));
  std::set<int64_t> values = {value};
  if (is_switch) {
    values = {0, 1};
  } else if (value > 0) {
    for (int64_t factor : {2, 4}) {
      if (value / factor >= 1) values.insert(value / factor);
      values.insert(value * factor);
    }
  }
  return {values.begin(), values.end()};
}

std::vector<Value> BlockValues(size_t axis, bool flat, int64_t value) {
  std::set<int64_t> values = {value};
  const std::vector<int64_t> usual = flat        ? std::vector<int64_t>{32, 64, 128, 256, 512, 1024}
                                     : axis == 0 ? std::vector<int64_t>{8, 16, 32, 64, 128, 256}
                                                 : std::vector<int64_t>{1, 2, 4, 8, 16, 32};
  values.insert(usual.begin(), usual.end());
  return {values.begin(), values.end()};
}

/// `text` with every number `from` replaced by a name; how many were.
std::string ReplaceNumber(const std::string& text, int64_t from, const std::string& to, int& count) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (!std::isdigit(static_cast<unsigned char>(text[i])) ||
        (i > 0 &&
         (std::isalnum(static_cast<unsigned char>(text[i - 1])) || text[i - 1] == '_' || text[i - 1] == '.'))) {
      out += text[i++];
      continue;
    }
    size_t end = i;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '.')) ++end;
    const std::string number = text.substr(i, end - i);
    if (number == std::to_string(from)) {
      out += to;
      ++count;
    } else {
      out += number;
    }
    i = end;
  }
  return out;
}

class Importer {
 public:
  Importer(const std::string& text, std::string name, const SourceOptions& options)
      : text_(text), file_(std::move(name)), options_(options), syntax_(ParseCuda(text_)) {}

  Result<UserKernel> Run() {
    ATUNNER_TRY(stated_, ParseAnnotations(syntax_.lexed.annotations, file_));
    ATUNNER_RETURN_IF_ERROR(ChooseKernel());
    scope_.emplace(syntax_, launch_ ? launch_->function : SIZE_MAX, launch_ ? launch_->token : 0, stated_.sizes);
    ReadTemplates();
    ReadLaunch();
    ReadArguments();
    if (!questions_.empty()) return Ask();
    ATUNNER_RETURN_IF_ERROR(FindTunables());
    return Assemble();
  }

 private:
  std::string Where() const { return kernel_ ? fmt::format("{}:{}", file_, kernel_->line) : file_; }

  void Question(const std::string& line) {
    if (!Contains(questions_, line)) questions_.push_back(line);
  }

  std::unexpected<Error> Ask() const {
    std::string lines;
    for (const std::string& line : questions_) lines += "\n  // atunner: " + line;
    return Invalid(fmt::format("the source does not say everything about kernel '{}'", kernel_->name), Where(),
                   "add above the kernel, with your values:" + lines);
  }

  // --- which kernel ---

  Status ChooseKernel() {
    if (syntax_.kernels.empty()) return Invalid("no __global__ kernel was found", file_);
    const std::string wanted = !options_.kernel.empty() ? options_.kernel : stated_.kernel;
    std::vector<const KernelDefinition*> launched;
    for (const KernelDefinition& kernel : syntax_.kernels) {
      if (!wanted.empty() ? kernel.name == wanted || kernel.qualified == wanted : LaunchOf(kernel) != nullptr)
        launched.push_back(&kernel);
    }
    if (wanted.empty() && launched.empty() && syntax_.kernels.size() == 1) launched.push_back(&syntax_.kernels.front());
    std::string names;
    for (const KernelDefinition& kernel : syntax_.kernels) names += (names.empty() ? "" : ", ") + kernel.name;
    if (!wanted.empty() && launched.empty())
      return Invalid("there is no kernel '" + wanted + "'", file_, "the file has " + names);
    if (launched.size() != 1) {
      return Invalid(
          fmt::format("the file has {} kernels: {}", syntax_.kernels.size(), names), file_,
          "say which to tune: --kernel NAME, or the line\n  // atunner: kernel = " + syntax_.kernels.front().name);
    }
    kernel_ = launched.front();
    launch_ = LaunchOf(*kernel_);
    return {};
  }

  const KernelLaunch* LaunchOf(const KernelDefinition& kernel) const {
    for (const KernelLaunch& launch : syntax_.launches) {
      if (launch.kernel == kernel.name || launch.kernel == kernel.qualified ||
          kernel.qualified.ends_with("::" + launch.kernel))
        return &launch;
    }
    return nullptr;
  }

  // --- templates ---

  void ReadTemplates() {
    for (size_t i = 0; i < kernel_->templates.size(); ++i) {
      const TemplateParameter& parameter = kernel_->templates[i];
      std::string text = parameter.fallback;
      if (launch_ && i < launch_->template_args.size()) {
        text = std::string(syntax_.Text(launch_->template_args[i]));
        if (auto value = scope_->Expression(launch_->template_args[i])) text = *value;
      } else if (text.empty()) {
        text = Deduced(parameter);
      }
      if (text.empty() && stated_.entry.empty()) Question("entry = " + kernel_->qualified + "<…>");
      template_args_.push_back(text);
      if (parameter.type == "typename" || parameter.type == "class") types_[parameter.name] = text;
    }
    if (!stated_.entry.empty()) ReadStatedEntry();
  }

  /// A type parameter that the compiler deduces from a buffer's type.
  std::string Deduced(const TemplateParameter& parameter) {
    if (!launch_) return "";
    for (size_t i = 0; i < kernel_->parameters.size() && i < launch_->arguments.size(); ++i) {
      if (kernel_->parameters[i].type != parameter.name || !kernel_->parameters[i].pointer) continue;
      if (auto buffer = scope_->BufferOf(launch_->arguments[i]); buffer && !buffer->type.empty()) return buffer->type;
    }
    return "";
  }

  void ReadStatedEntry() {
    const size_t open = stated_.entry.find('<');
    if (open == std::string::npos) return;
    const std::vector<std::string> pieces =
        SplitOutsideBrackets(stated_.entry.substr(open + 1, stated_.entry.rfind('>') - open - 1), ',');
    for (size_t i = 0; i < pieces.size() && i < template_args_.size(); ++i) {
      template_args_[i] = pieces[i];
      const TemplateParameter& parameter = kernel_->templates[i];
      if (parameter.type == "typename" || parameter.type == "class") types_[parameter.name] = pieces[i];
    }
  }

  std::optional<CType> TypeOf(std::string name) const {
    for (int i = 0; i < 4; ++i) {
      if (const auto known = ParseCType(name)) return known;
      if (const auto bound = types_.find(name); bound != types_.end()) {
        name = bound->second;
      } else if (const auto alias = syntax_.aliases.find(name); alias != syntax_.aliases.end()) {
        name = alias->second;
      } else if (const FileConstant* constant = syntax_.FindConstant(name)) {
        name = constant->value;  // #define REAL float
      } else {
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

  // --- launch ---

  void ReadLaunch() {
    block_ = Extents("block", stated_.launch.block, 1);
    grid_ = Extents("grid", stated_.launch.grid, 0);
    shared_ = "0";
    if (!stated_.launch.shared.empty()) {
      shared_ = stated_.launch.shared;
    } else if (launch_ && launch_->configuration.size() > 2) {
      if (auto bytes = scope_->Expression(launch_->configuration[2])) {
        shared_ = *bytes;
      } else {
        Question("shared = BYTES");
      }
    }
  }

  std::array<std::string, 3> Extents(const char* what, const std::string& text, size_t position) {
    std::array<std::string, 3> extents = {"1", "1", "1"};
    if (!text.empty()) {
      const std::vector<std::string> pieces = SplitOutsideBrackets(text, ',');
      for (size_t i = 0; i < pieces.size() && i < 3; ++i) extents[i] = pieces[i];
      return extents;
    }
    if (launch_ && position < launch_->configuration.size()) {
      if (auto found = scope_->Extents(launch_->configuration[position])) return *found;
    }
    Question(std::string(what) + (position == 1 ? " = 256" : " = ceil_div(n, 256)"));
    return extents;
  }

  // --- arguments ---

  void ReadArguments() {
    for (size_t i = 0; i < kernel_->parameters.size(); ++i) {
      const KernelParameter& parameter = kernel_->parameters[i];
      const bool given = launch_ && i < launch_->arguments.size();
      if (parameter.pointer) {
        Pointer(parameter, given ? std::optional(launch_->arguments[i]) : std::nullopt);
      } else {
        Scalar(parameter, given ? std::optional(launch_->arguments[i]) : std::nullopt);
      }
    }
  }

  void Pointer(const KernelParameter& parameter, std::optional<TokenRange> given) {
    ArgSpec arg;
    arg.name = parameter.name;
    arg.role = RoleOf(syntax_, *kernel_, parameter);
    const auto type = TypeOf(parameter.type);
    if (const auto fill = stated_.fills.find(parameter.name); fill != stated_.fills.end()) arg.fill = fill->second;
    if (const auto stated = stated_.arguments.find(parameter.name); stated != stated_.arguments.end()) {
      arg.role = stated->second.role;
      arg.dtype = stated->second.dtype;
      arg.shape.clear();
      for (const std::string& extent : SplitOutsideBrackets(stated->second.extents, ',')) AddExtent(arg, extent);
      return AddTensor(std::move(arg), "");
    }
    const std::string ask = fmt::format("arg {} {} {}[ELEMENTS]", parameter.name,
                                        arg.role == Role::kInput    ? "in"
                                        : arg.role == Role::kOutput ? "out"
                                                                    : "inout",
                                        type ? Name(type->dtype) : "float32");
    if (!type || !given) return Question(ask);
    if (IsNull(*given)) {
      bindings_.push_back(ArgBinding::Scalar(DType::kUInt64, Expr(0)));
      return;
    }
    const auto buffer = scope_->BufferOf(*given);
    if (!buffer) return Question(ask);
    arg.dtype = type->dtype;
    // Sums, counters and states begin at zero; what is only read is often zeroed for want of data.
    const bool stated = stated_.fills.contains(parameter.name);
    if (buffer->zeroed && !stated && !parameter.is_const) arg.fill.kind = Fill::Kind::kZeros;
    AddExtent(arg, fmt::format("({}) // {}", buffer->bytes, SizeOf(type->dtype)));
    AddTensor(std::move(arg), buffer->name);
  }

  bool IsNull(TokenRange range) const {
    const std::string_view text = syntax_.Text(range);
    return text == "nullptr" || text == "NULL" || text == "0";
  }

  void AddExtent(ArgSpec& arg, const std::string& text) {
    auto extent = Expr::Parse(text);
    if (!extent) return Question(fmt::format("arg {} in {}[ELEMENTS]", arg.name, Name(arg.dtype)));
    for (const std::string& name : extent->Names()) {
      used_in_sizes_.insert(name);
      if (!scope_->leaves().contains(name) && !stated_.sizes.contains(name)) Question("size " + name + " = VALUE");
    }
    arg.shape.push_back(*std::move(extent));
  }

  /// Two parameters that are given the same buffer share one tensor, which is then read and written.
  void AddTensor(ArgSpec arg, const std::string& buffer) {
    for (ArgSpec& known : tensors_) {
      if (buffer.empty() || buffers_[known.name] != buffer) continue;
      if (known.role != arg.role || arg.role != Role::kInput) known.role = Role::kInOut;
      bindings_.push_back(ArgBinding::Tensor(known.name));
      return;
    }
    buffers_[arg.name] = buffer;
    bindings_.push_back(ArgBinding::Tensor(arg.name));
    tensors_.push_back(std::move(arg));
  }

  void Scalar(const KernelParameter& parameter, std::optional<TokenRange> given) {
    const auto type = TypeOf(parameter.type);
    const auto stated = stated_.scalars.find(parameter.name);
    std::string text;
    if (stated != stated_.scalars.end()) {
      text = stated->second;
    } else if (given) {
      if (auto value = scope_->Expression(*given)) text = *value;
    }
    // A problem size of the same name needs no second line.
    if (text.empty() && stated_.sizes.contains(parameter.name)) text = parameter.name;
    const auto value = Expr::Parse(text);
    if (text.empty() || !value || !type || type->lanes != 1)
      return Question(fmt::format("arg {} = VALUE", parameter.name));
    for (const std::string& name : value->Names()) used_in_scalars_.insert(name);
    bindings_.push_back(ArgBinding::Scalar(type->dtype, *value));
  }

  // --- tunables ---

  void AddParameter(const std::string& name, std::vector<Value> values, int64_t initial, Injection injection,
                    std::string meaning) {
    if (kernel_out_.space.Find(name) >= 0) return;
    if (const auto stated = stated_.tunables.find(name); stated != stated_.tunables.end()) values = stated->second;
    if (std::ranges::find(values, Value(initial)) == values.end()) values.insert(values.begin(), Value(initial));
    kernel_out_.space.parameters.push_back({name, std::move(values), std::move(meaning)});
    kernel_out_.injections.push_back(std::move(injection));
    kernel_out_.initial.values.emplace_back(initial);
  }

  bool IsParameter(const std::string& name) const { return kernel_out_.space.Find(name) >= 0; }

  static Injection Replace(const FileConstant& constant) {
    return {Injection::Kind::kReplace, constant.offset, constant.length, ""};
  }

  Status FindTunables() {
    ATUNNER_RETURN_IF_ERROR(StatedTunables());
    TemplateTunables();
    ConstantTunables();
    BlockTunables();
    GridTunables();
    if (options_.extra_tunables)
      AddParameter("max_registers", {int64_t{0}, int64_t{32}, int64_t{64}, int64_t{128}}, 0,
                   {Injection::Kind::kOption, 0, 0, "--maxrregcount="},
                   "registers per thread the compiler may use; 0 = no limit");
    return {};
  }

  Status StatedTunables() {
    for (const auto& [name, values] : stated_.tunables) {
      const int at_template = TemplateIndex(name);
      if (const FileConstant* constant = syntax_.FindConstant(name)) {
        const auto initial = Literal(constant->value);
        if (!initial)
          return Invalid("'" + name + " = " + constant->value + "' is no integer that could be replaced",
                         file_ + ":" + std::to_string(constant->line));
        AddParameter(name, values, *initial, Replace(*constant), "");
      } else if (at_template >= 0) {
        const auto initial = Literal(template_args_[static_cast<size_t>(at_template)]);
        AddParameter(name, values, initial.value_or(static_cast<int64_t>(ToDouble(values.front()))),
                     {Injection::Kind::kLaunch, 0, 0, ""}, "");
        template_args_[static_cast<size_t>(at_template)] = "{" + name + "}";
      } else if (const auto leaf = scope_->leaves().find(name); leaf != scope_->leaves().end()) {
        AddParameter(name, values, leaf->second.value, {Injection::Kind::kLaunch, 0, 0, ""}, "");
      } else if (InExtents(block_, name) || InExtents(grid_, name)) {  // a name that the stated launch uses
        AddParameter(name, values, static_cast<int64_t>(ToDouble(values.front())), {Injection::Kind::kLaunch, 0, 0, ""},
                     "");
      } else if (name != "block_x" && name != "block_y" && name != "block_z" && name != "grid_x") {
        return Invalid("nothing in the source is called '" + name + "'", file_,
                       "tune a macro, a constant, a template parameter, or block_x, block_y");
      }
    }
    return {};
  }

  int TemplateIndex(const std::string& name) const {
    for (size_t i = 0; i < kernel_->templates.size(); ++i) {
      if (kernel_->templates[i].name == name) return static_cast<int>(i);
    }
    return -1;
  }

  /// k<256><<<grid, 256>>>: the argument becomes a parameter, and so does a block extent of the same number.
  void TemplateTunables() {
    for (size_t i = 0; i < kernel_->templates.size(); ++i) {
      const TemplateParameter& parameter = kernel_->templates[i];
      if (parameter.type == "typename" || parameter.type == "class" || parameter.type == "bool") continue;
      const std::string text = template_args_[i];
      const Names names = NamesOf(text);
      if (names.size() == 1 && names[0] == text) {  // a named constant
        const auto leaf = scope_->leaves().find(text);
        if (leaf == scope_->leaves().end() || used_in_sizes_.contains(text)) continue;
        const FileConstant* constant = leaf->second.of_file ? syntax_.FindConstant(text) : nullptr;
        if (constant && !Literal(constant->value)) continue;
        const bool block = IsBlockExtent(text);
        AddParameter(text, block ? BlockValues(0, FlatBlock(), leaf->second.value) : Around(text, leaf->second.value),
                     leaf->second.value, constant ? Replace(*constant) : Injection{Injection::Kind::kLaunch, 0, 0, ""},
                     "template argument");
        template_args_[i] = "{" + text + "}";
      } else if (const auto value = Literal(text)) {
        const bool block = IsBlockExtent(text);
        AddParameter(parameter.name, block ? BlockValues(0, FlatBlock(), *value) : Around(parameter.name, *value),
                     *value, {Injection::Kind::kLaunch, 0, 0, ""}, "template argument");
        template_args_[i] = "{" + parameter.name + "}";
        if (block) FollowLiteral(*value, parameter.name);
      }
    }
  }

  bool IsBlockExtent(const std::string& text) const {
    return std::ranges::find(block_, text) != block_.end() && text != "1";
  }
  bool FlatBlock() const { return block_[1] == "1" && block_[2] == "1"; }

  /// The launch's literal `value` and `value - 1` become the parameter.
  void FollowLiteral(int64_t value, const std::string& name) {
    int count = 0;
    for (std::array<std::string, 3>* extents : {&block_, &grid_}) {
      for (std::string& text : *extents) {
        text = ReplaceNumber(text, value, name, count);
        if (extents == &grid_) text = ReplaceNumber(text, value - 1, "(" + name + " - 1)", count);
      }
    }
    shared_ = ReplaceNumber(shared_, value, name, count);
  }

  /// Macros and constants: guarded ones are the author's own knobs; others when they decide the launch.
  void ConstantTunables() {
    for (const FileConstant& constant : syntax_.constants) {
      const auto value = Literal(constant.value);
      if (!value || used_in_sizes_.contains(constant.name) || used_in_scalars_.contains(constant.name)) continue;
      if (InSizesOf(constant.name)) continue;
      const bool in_kernel = Uses(syntax_, *kernel_, constant.name);
      const bool in_block = InExtents(block_, constant.name);
      const bool in_launch = in_block || InExtents(grid_, constant.name);
      if (!(constant.guarded ? in_kernel || in_launch : in_launch && in_kernel)) continue;
      AddParameter(
          constant.name,
          in_block ? BlockValues(BlockAxis(constant.name), FlatBlock(), *value) : Around(constant.name, *value), *value,
          Replace(constant), in_block ? "threads of a block" : "");
    }
  }

  /// Does another constant that decides a buffer's size or a scalar depend on this one?
  bool InSizesOf(const std::string& name) const {
    for (const FileConstant& other : syntax_.constants) {
      if (!used_in_sizes_.contains(other.name) && !used_in_scalars_.contains(other.name)) continue;
      if (Contains(NamesOf(other.value), name)) return true;
    }
    return false;
  }

  static bool InExtents(const std::array<std::string, 3>& extents, const std::string& name) {
    return std::ranges::any_of(extents, [&](const std::string& text) { return Contains(NamesOf(text), name); });
  }
  size_t BlockAxis(const std::string& name) const {
    for (size_t axis = 0; axis < 3; ++axis) {
      if (Contains(NamesOf(block_[axis]), name)) return axis;
    }
    return 0;
  }

  /// Why the number of threads must stay as it is; empty when it may vary.
  std::string BlockObstacle() const {
    for (size_t axis = 0; axis < 3; ++axis) {
      if (block_[axis] != "1" && !Reads(syntax_, *kernel_, "blockDim", kAxes[axis]))
        return fmt::format("its indexing does not use blockDim.{}", kAxes[axis]);
    }
    if (const auto extent = FixedSharedArray(syntax_, *kernel_, kernel_out_.space.Names()))
      return "its shared array [" + *extent + "] is of one size";
    return "";
  }

  void BlockTunables() {
    bool candidates = false;
    for (const std::string& text : block_) candidates |= text != "1" && !HasParameter(text);
    if (!candidates) return;
    if (const std::string obstacle = BlockObstacle(); !obstacle.empty()) {
      kernel_out_.notes.push_back("the block size is not tuned: " + obstacle);
      return;
    }
    for (size_t axis = 0; axis < 3; ++axis) OneBlockAxis(axis);
  }

  bool HasParameter(const std::string& text) const {
    return std::ranges::any_of(NamesOf(text), [&](const std::string& name) { return IsParameter(name); });
  }

  void OneBlockAxis(size_t axis) {
    std::string& text = block_[axis];
    if (text == "1" || HasParameter(text)) return;
    const bool strides = Reads(syntax_, *kernel_, "gridDim", kAxes[axis]);
    const std::string name = fmt::format("block_{}", kAxes[axis]);
    if (const auto value = Literal(text)) {
      int count = 0;
      std::string grid = ReplaceNumber(grid_[axis], *value, name, count);
      grid = ReplaceNumber(grid, *value - 1, "(" + name + " - 1)", count);
      if (count == 0 && !strides) {
        kernel_out_.notes.push_back(
            fmt::format("block_{} is not tuned: the grid {} does not follow from it", kAxes[axis], grid_[axis]));
        return;
      }
      AddParameter(name, BlockValues(axis, FlatBlock(), *value), *value, {Injection::Kind::kLaunch, 0, 0, ""},
                   "threads of a block");
      int shared = 0;
      shared_ = ReplaceNumber(shared_, *value, name, shared);
      text = name;
      grid_[axis] = grid;
      return;
    }
    for (const std::string& leaf_name : NamesOf(text)) {  // int threads = 256;
      const auto leaf = scope_->leaves().find(leaf_name);
      if (leaf == scope_->leaves().end() || leaf->second.of_file || used_in_sizes_.contains(leaf_name)) continue;
      if (!Contains(NamesOf(grid_[axis]), leaf_name) && !strides) {
        kernel_out_.notes.push_back(
            fmt::format("'{}' is not tuned: the grid {} does not follow from it", leaf_name, grid_[axis]));
        continue;
      }
      AddParameter(leaf_name, BlockValues(axis, FlatBlock(), leaf->second.value), leaf->second.value,
                   {Injection::Kind::kLaunch, 0, 0, ""}, "threads of a block");
    }
  }

  /// A loop that strides by the whole grid is right for any number of blocks.
  void GridTunables() {
    const bool wanted = options_.extra_tunables || stated_.tunables.contains("grid_x");
    if (!wanted || !Reads(syntax_, *kernel_, "gridDim", "x") || !StridesByGrid()) return;
    const auto now = GridNow();
    if (!now) return;
    std::set<int64_t> values = {*now};
    for (int64_t factor : {1, 2, 4, 8, 16, 32}) values.insert(factor * options_.multiprocessors);
    std::vector<Value> listed(values.begin(), values.end());
    AddParameter("grid_x", std::move(listed), *now, {Injection::Kind::kLaunch, 0, 0, ""},
                 "blocks, each of which strides over the problem");
    grid_[0] = "grid_x";
  }

  /// "i += blockDim.x * gridDim.x" or a variable that holds the product.
  bool StridesByGrid() const {
    for (size_t i = kernel_->body.begin; i + 6 < kernel_->body.end; ++i) {
      const auto is = [&](size_t at, std::string_view text) { return syntax_.token(at).Is(text); };
      const bool one = is(i, "blockDim") && is(i + 2, "x") && is(i + 3, "*") && is(i + 4, "gridDim");
      const bool other = is(i, "gridDim") && is(i + 2, "x") && is(i + 3, "*") && is(i + 4, "blockDim");
      if (one || other) return true;
    }
    return false;
  }

  std::optional<int64_t> GridNow() const {
    const auto expr = Expr::Parse(grid_[0]);
    if (!expr) return std::nullopt;
    const Names names = kernel_out_.space.Names();
    const Dims dims = AllDims();
    Bindings bindings(dims);
    bindings.Add(names, kernel_out_.initial.values);
    const auto value = expr->EvaluateInt(bindings);
    return value ? std::optional(*value) : std::nullopt;
  }

  // --- the whole ---

  Dims AllDims() const {
    Dims dims = stated_.sizes;
    for (const auto& [name, leaf] : scope_->leaves()) {
      if (!IsParameter(name)) dims[name] = leaf.value;
    }
    return dims;
  }

  Result<Expr> Parse(const std::string& what, const std::string& text) const {
    auto expr = Expr::Parse(text);
    if (!expr) return Invalid(what + ": " + expr.error().what, Where());
    return *std::move(expr);
  }

  Result<UserKernel> Assemble() {
    UserKernel& out = kernel_out_;
    out.spec.name = kernel_->name;
    out.spec.dims = AllDims();
    out.spec.args = tensors_;
    out.spec.tolerance = stated_.tolerance;
    out.spec.bytes = Expr(0);  // buffers may be larger than what the kernel touches: no floor can be claimed
    if (!stated_.bytes.empty()) {
      ATUNNER_TRY(out.spec.bytes, Parse("bytes", stated_.bytes));
    }
    if (!stated_.flops.empty()) {
      ATUNNER_TRY(out.spec.flops, Parse("flops", stated_.flops));
    }
    out.source.name = file_;
    out.source.text = DeviceText(syntax_);
    out.source.options = stated_.options;
    LaunchStep step;
    step.entry = Entry();
    for (size_t axis = 0; axis < 3; ++axis) {
      ATUNNER_TRY(step.grid[axis], Parse("grid", grid_[axis]));
      ATUNNER_TRY(step.block[axis], Parse("block", block_[axis]));
    }
    ATUNNER_TRY(step.shared_bytes, Parse("shared", shared_));
    step.args = bindings_;
    out.plan.steps.push_back(std::move(step));
    ATUNNER_RETURN_IF_ERROR(AddConstraints());
    ATUNNER_RETURN_IF_ERROR(AddChecks());
    if (stated_.checks.empty()) DeriveCheck();
    return std::move(kernel_out_);
  }

  /// Sizes that only the host knows are no part of the binary: halved until the task is small, they give a check that
  /// the virtual GPU runs in no time. Halving keeps what the sizes are multiples of, as far as it goes. Not where a
  /// grid stays as it is: such a kernel may count on one thread per element.
  void DeriveCheck() {
    Dims dims = kernel_out_.spec.dims;
    for (const auto& [name, value] : dims) {
      const auto leaf = scope_->leaves().find(name);
      if (leaf == scope_->leaves().end() || leaf->second.of_file) return;
    }
    for (size_t axis = 0; axis < 3; ++axis) {
      const bool follows =
          std::ranges::any_of(NamesOf(grid_[axis]), [&](const std::string& name) { return dims.contains(name); });
      if (grid_[axis] != "1" && !follows && !(axis == 0 && StridesByGrid())) return;
    }
    const auto elements = [&] {
      int64_t total = 0;
      for (const ArgSpec& arg : tensors_) {
        const auto shape = ShapeOf(arg, kernel_out_.spec, dims);
        total += shape ? shape->elements : 0;
      }
      return total;
    };
    while (elements() > kCheckElements) {
      const auto largest = std::ranges::max_element(dims, {}, [](const auto& pair) { return pair.second; });
      if (largest->second < kSmallestHalved) return;
      largest->second /= 2;
    }
    if (dims == kernel_out_.spec.dims || elements() == 0) return;
    std::string text;
    for (const auto& [name, value] : dims) text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value);
    kernel_out_.notes.push_back("without a GPU, verified at " + text + "; state another size with // atunner: check " +
                                text);
    kernel_out_.check_dims.push_back(std::move(dims));
  }

  std::string Entry() const {
    std::string entry = kernel_->qualified;
    for (size_t i = 0; i < template_args_.size(); ++i) entry += (i == 0 ? "<" : ", ") + template_args_[i];
    return template_args_.empty() ? entry : entry + ">";
  }

  Status AddConstraints() {
    const std::string threads = fmt::format("({}) * ({}) * ({})", block_[0], block_[1], block_[2]);
    if (HasParameter(threads)) {
      const std::string bound = LaunchBound(syntax_, *kernel_);
      const auto limit = Literal(bound);
      ATUNNER_TRY(Expr most, Parse("block", fmt::format("{} <= {}", threads, limit.value_or(kLargestBlock))));
      kernel_out_.space.constraints.push_back(
          {std::move(most), limit ? "__launch_bounds__" : "a block has at most 1024 threads"});
      ATUNNER_TRY(Expr least, Parse("block", fmt::format("{} >= 32", threads)));
      kernel_out_.space.constraints.push_back({std::move(least), "at least one warp"});
    }
    for (const std::string& text : stated_.constraints) {
      ATUNNER_TRY(Expr condition, Parse("constraint", text));
      kernel_out_.space.constraints.push_back({std::move(condition), ""});
    }
    return {};
  }

  Status AddChecks() {
    for (const Dims& stated : stated_.checks) {
      Dims dims = kernel_out_.spec.dims;
      for (const auto& [name, value] : stated) {
        const auto leaf = scope_->leaves().find(name);
        if (!dims.contains(name)) return Invalid("check: '" + name + "' is no problem size", Where());
        if (leaf != scope_->leaves().end() && leaf->second.of_file)
          return Invalid("check: '" + name + "' is a constant of the source, which one binary cannot vary", Where());
        dims[name] = value;
      }
      kernel_out_.check_dims.push_back(std::move(dims));
    }
    return {};
  }

  const std::string& text_;
  std::string file_;
  const SourceOptions& options_;
  CudaSyntax syntax_;
  Annotations stated_;
  const KernelDefinition* kernel_ = nullptr;
  const KernelLaunch* launch_ = nullptr;
  std::optional<HostScope> scope_;
  std::map<std::string, std::string, std::less<>> types_;  ///< template type parameters
  std::vector<std::string> template_args_;
  std::array<std::string, 3> block_, grid_;
  std::string shared_;
  std::vector<ArgSpec> tensors_;
  std::map<std::string, std::string> buffers_;  ///< tensor -> host variable
  std::vector<ArgBinding> bindings_;
  std::set<std::string, std::less<>> used_in_sizes_, used_in_scalars_;
  Names questions_;
  UserKernel kernel_out_;
};

}  // namespace

Result<UserKernel> ParseBareSource(const std::string& text, const std::string& name, const SourceOptions& options) {
  return Importer(text, name, options).Run();
}

}  // namespace atunner
