#include "atunner/intake/bare/source_tunables.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "atunner/intake/cuda/kernel_body.h"
#include "atunner/intake/expression_text.h"

namespace atunner {
namespace {

constexpr const char* kAxes[] = {"x", "y", "z"};
const Injection kAtLaunch = {Injection::Kind::kLaunch, 0, 0, ""};

/// Values around the author's: halves and doubles, or both states of a switch.
std::vector<Value> Around(const std::string& name, int64_t value) {
  const bool is_switch = value == 0 ||
                         (value == 1 && (name.starts_with("USE") || name.starts_with("use") ||
                                         name.starts_with("ENABLE")));
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

class Finder {
 public:
  Finder(const SourceReading& reading, const TunableOptions& options)
      : in_(reading), options_(options) {
    out_.launch = reading.launch;
  }

  Result<SourceTunables> Run() {
    ATUNNER_RETURN_IF_ERROR(StatedTunables());
    TemplateTunables();
    ConstantTunables();
    BlockTunables();
    GridTunables();
    if (options_.register_limit)
      AddParameter("max_registers", {int64_t{0}, int64_t{32}, int64_t{64}, int64_t{128}}, 0,
                   {Injection::Kind::kOption, 0, 0, "--maxrregcount="},
                   "registers per thread the compiler may use; 0 = no limit");
    return std::move(out_);
  }

 private:
  void AddParameter(const std::string& name, std::vector<Value> values, int64_t initial,
                    Injection injection, std::string meaning) {
    if (out_.space.Find(name) >= 0) return;
    if (const auto stated = in_.stated.tunables.find(name); stated != in_.stated.tunables.end())
      values = stated->second;
    if (std::ranges::find(values, Value(initial)) == values.end())
      values.insert(values.begin(), Value(initial));
    out_.space.parameters.push_back({name, std::move(values), std::move(meaning)});
    out_.injections.push_back(std::move(injection));
    out_.initial.values.emplace_back(initial);
  }

  static Injection Replace(const FileConstant& constant) {
    return {Injection::Kind::kReplace, constant.offset, constant.length, ""};
  }

  Status StatedTunables() {
    for (const auto& [name, values] : in_.stated.tunables)
      ATUNNER_RETURN_IF_ERROR(StatedTunable(name, values));
    return {};
  }

  /// A stated tunable is a constant, a template parameter, a host variable, a name that the stated
  /// launch uses, or a block or grid size, which is added later.
  Status StatedTunable(const std::string& name, const std::vector<Value>& values) {
    const auto first = [&] { return static_cast<int64_t>(ToDouble(values.front())); };
    const int at_template = TemplateIndex(name);
    if (const FileConstant* constant = in_.syntax.FindConstant(name)) {
      const auto initial = LiteralOf(constant->value);
      if (!initial)
        return Invalid(
            "'" + name + " = " + constant->value + "' is not an integer that can be replaced",
            in_.file + ":" + std::to_string(constant->line));
      AddParameter(name, values, *initial, Replace(*constant), "");
    } else if (at_template >= 0) {
      std::string& argument = out_.launch.template_args[static_cast<size_t>(at_template)];
      AddParameter(name, values, LiteralOf(argument).value_or(first()), kAtLaunch, "");
      argument = "{" + name + "}";
    } else if (const Leaf* leaf = in_.FindLeaf(name)) {
      AddParameter(name, values, leaf->value, kAtLaunch, "");
    } else if (InExtents(out_.launch.block, name) || InExtents(out_.launch.grid, name)) {
      AddParameter(name, values, first(), kAtLaunch, "");
    } else if (name != "block_x" && name != "block_y" && name != "block_z" && name != "grid_x") {
      return Invalid("nothing in the source is called '" + name + "'", in_.file,
                     "tune a macro, a constant, a template parameter, or block_x, block_y");
    }
    return {};
  }

  int TemplateIndex(const std::string& name) const {
    for (size_t i = 0; i < in_.kernel->templates.size(); ++i) {
      if (in_.kernel->templates[i].name == name) return static_cast<int>(i);
    }
    return -1;
  }

  /// Template arguments become parameters. Of k<256><<<grid, 256>>> the block extent, which is the
  /// same number, follows the parameter.
  void TemplateTunables() {
    for (size_t i = 0; i < in_.kernel->templates.size(); ++i) {
      const TemplateParameter& parameter = in_.kernel->templates[i];
      if (parameter.type == "typename" || parameter.type == "class" || parameter.type == "bool")
        continue;
      const std::string text = out_.launch.template_args[i];
      const std::vector<std::string> names = NamesOf(text);
      if (names.size() == 1 && names[0] == text) {
        NamedTemplateTunable(i, text);
      } else if (const auto value = LiteralOf(text)) {
        AddTemplateParameter(i, parameter.name, text, *value, kAtLaunch);
        if (IsBlockExtent(text)) FollowLiteralOf(*value, parameter.name);
      } else {
        FixTemplate(i);
      }
    }
  }

  /// A template argument that is a named constant.
  void NamedTemplateTunable(size_t i, const std::string& name) {
    const Leaf* leaf = in_.FindLeaf(name);
    if (!leaf || in_.used_in_sizes.contains(name)) return FixTemplate(i);
    const FileConstant* constant = leaf->of_file ? in_.syntax.FindConstant(name) : nullptr;
    if (constant && !LiteralOf(constant->value)) return;
    AddTemplateParameter(i, name, name, leaf->value, constant ? Replace(*constant) : kAtLaunch);
  }

  /// Makes template argument `i`, now `text`, a parameter called `name`.
  void AddTemplateParameter(size_t i, const std::string& name, const std::string& text,
                            int64_t value, const Injection& injection) {
    AddParameter(name,
                 IsBlockExtent(text) ? BlockValues(0, FlatBlock(), value) : Around(name, value),
                 value, injection, "template argument");
    out_.launch.template_args[i] = "{" + name + "}";
  }

  /// Replaces a template argument by its value if it names local variables of the host, which the
  /// device code does not see. The value is then part of the binary.
  void FixTemplate(size_t i) {
    const std::vector<std::string> names = NamesOf(out_.launch.template_args[i]);
    const bool local = std::ranges::any_of(names, [&](const std::string& name) {
      const Leaf* leaf = in_.FindLeaf(name);
      return leaf && !leaf->of_file;
    });
    const auto value = local ? Now(out_.launch.template_args[i]) : std::nullopt;
    if (!value) return;
    out_.launch.template_args[i] = std::to_string(*value);
    out_.fixed.insert(names.begin(), names.end());
  }

  bool IsBlockExtent(const std::string& text) const {
    return std::ranges::find(out_.launch.block, text) != out_.launch.block.end() && text != "1";
  }
  bool FlatBlock() const { return out_.launch.block[1] == "1" && out_.launch.block[2] == "1"; }

  /// The launch's literal `value` and `value - 1` become the parameter.
  void FollowLiteralOf(int64_t value, const std::string& name) {
    int count = 0;
    for (std::array<std::string, 3>* extents : {&out_.launch.block, &out_.launch.grid}) {
      for (std::string& text : *extents) {
        text = ReplaceNumber(text, value, name, count);
        if (extents == &out_.launch.grid)
          text = ReplaceNumber(text, value - 1, "(" + name + " - 1)", count);
      }
    }
    out_.launch.shared = ReplaceNumber(out_.launch.shared, value, name, count);
  }

  /// Macros and constants become parameters if they are guarded (#ifndef UNROLL: the author's own
  /// tunables) or decide the launch.
  void ConstantTunables() {
    for (const FileConstant& constant : in_.syntax.constants) {
      const auto value = LiteralOf(constant.value);
      if (!value || constant.kind == FileConstant::Kind::kEnumerator ||
          in_.used_in_sizes.contains(constant.name) || in_.used_in_scalars.contains(constant.name))
        continue;
      if (InSizesOf(constant.name) || out_.fixed.contains(constant.name)) continue;
      const bool in_kernel = Uses(in_.syntax, *in_.kernel, constant.name);
      const bool in_block = InExtents(out_.launch.block, constant.name);
      const bool in_launch = in_block || InExtents(out_.launch.grid, constant.name);
      if (!(constant.guarded ? in_kernel || in_launch : in_launch && in_kernel)) continue;
      AddParameter(constant.name,
                   in_block ? BlockValues(BlockAxis(constant.name), FlatBlock(), *value)
                            : Around(constant.name, *value),
                   *value, Replace(constant), in_block ? "threads of a block" : "");
    }
  }

  /// True if another constant that decides a buffer's size or a scalar depends on this one.
  bool InSizesOf(const std::string& name) const {
    for (const FileConstant& other : in_.syntax.constants) {
      if (!in_.used_in_sizes.contains(other.name) && !in_.used_in_scalars.contains(other.name))
        continue;
      if (Contains(NamesOf(other.value), name)) return true;
    }
    return false;
  }

  static bool InExtents(const std::array<std::string, 3>& extents, const std::string& name) {
    return std::ranges::any_of(
        extents, [&](const std::string& text) { return Contains(NamesOf(text), name); });
  }
  size_t BlockAxis(const std::string& name) const {
    for (size_t axis = 0; axis < 3; ++axis) {
      if (Contains(NamesOf(out_.launch.block[axis]), name)) return axis;
    }
    return 0;
  }

  /// Why the block size must stay as it is; empty if it may vary.
  std::string BlockObstacle() const {
    for (size_t axis = 0; axis < 3; ++axis) {
      if (out_.launch.block[axis] != "1" &&
          !Reads(in_.syntax, *in_.kernel, "blockDim", kAxes[axis]))
        return fmt::format("its indexing does not use blockDim.{}", kAxes[axis]);
    }
    if (const auto extent = FixedSharedArray(in_.syntax, *in_.kernel, out_.space.Names()))
      return "its shared array [" + *extent + "] is of one size";
    return "";
  }

  /// A block of one thread, as in k<<<n, 1>>>: more threads take the place of as many blocks.
  void SingleThreadBlock() {
    std::string& grid = out_.launch.grid[0];
    std::string obstacle = grid == "1" ? "a single thread does all the work"
                           : !Reads(in_.syntax, *in_.kernel, "blockDim", "x")
                               ? "its indexing does not use blockDim.x"
                               : "";
    if (const auto extent = FixedSharedArray(in_.syntax, *in_.kernel, out_.space.Names()))
      obstacle = "its shared array [" + *extent + "] is of one size";
    if (!obstacle.empty()) {
      out_.notes.push_back("the block of one thread is not tuned: " + obstacle);
      return;
    }
    const std::string name = BlockName(0);
    AddBlockParameter(0, name, 1, kAtLaunch);
    out_.launch.block[0] = name;
    if (!HasParameter(out_.space, grid)) grid = fmt::format("ceil_div({}, {})", grid, name);
  }

  void BlockTunables() {
    if (std::ranges::all_of(out_.launch.block, [](const auto& text) { return text == "1"; }))
      return SingleThreadBlock();
    bool candidates = false;
    for (const std::string& text : out_.launch.block)
      candidates |= text != "1" && !HasParameter(out_.space, text);
    if (!candidates) return;
    if (const std::string obstacle = BlockObstacle(); !obstacle.empty()) {
      out_.notes.push_back("the block size is not tuned: " + obstacle);
      return;
    }
    for (size_t axis = 0; axis < 3; ++axis) OneBlockAxis(axis);
  }

  void OneBlockAxis(size_t axis) {
    const std::string& text = out_.launch.block[axis];
    if (text == "1" || HasParameter(out_.space, text)) return;
    const bool strides = Reads(in_.syntax, *in_.kernel, "gridDim", kAxes[axis]) ||
                         StridesByBlock(in_.syntax, *in_.kernel, kAxes[axis]);
    if (const auto value = LiteralOf(text)) return LiteralBlock(axis, *value, strides);
    for (const std::string& name : NamesOf(text)) NamedBlock(axis, name, strides);
    if (strides) StridedBlock(axis);
  }

  static std::string BlockName(size_t axis) { return fmt::format("block_{}", kAxes[axis]); }

  void AddBlockParameter(size_t axis, const std::string& name, int64_t value,
                         const Injection& injection) {
    AddParameter(name, BlockValues(axis, FlatBlock(), value), value, injection,
                 "threads of a block");
  }

  /// The grid with the block's extent as a name where it is written as a number; adds the number of
  /// replacements to `count`.
  std::string GridBy(size_t axis, int64_t value, const std::string& name, int& count) const {
    const std::string grid = ReplaceNumber(out_.launch.grid[axis], value, name, count);
    return ReplaceNumber(grid, value - 1, "(" + name + " - 1)", count);
  }

  /// A literal extent, e.g. 256 with the grid (n + 255) / 256: the same number in the grid and in
  /// the shared memory follows the parameter.
  void LiteralBlock(size_t axis, int64_t value, bool strides) {
    const std::string name = BlockName(axis);
    int count = 0;
    const std::string grid = GridBy(axis, value, name, count);
    if (count == 0 && !strides) {
      out_.notes.push_back(fmt::format("block_{} is not tuned: the grid {} does not follow from it",
                                       kAxes[axis], out_.launch.grid[axis]));
      return;
    }
    AddBlockParameter(axis, name, value, kAtLaunch);
    int shared = 0;
    out_.launch.shared = ReplaceNumber(out_.launch.shared, value, name, shared);
    out_.launch.block[axis] = name;
    out_.launch.grid[axis] = grid;
  }

  /// A constant or host variable in an extent, e.g. int threads = 256. The grid may have its value
  /// as a number.
  void NamedBlock(size_t axis, const std::string& name, bool strides) {
    const Leaf* leaf = in_.FindLeaf(name);
    if (!leaf || IsOfTheProblem(name)) return;
    const FileConstant* constant = leaf->of_file ? in_.syntax.FindConstant(name) : nullptr;
    if (leaf->of_file && (!constant || !LiteralOf(constant->value) || InSizesOf(name))) return;
    int count = 0;
    if (!leaf->of_file && out_.launch.block[axis] == name &&
        !Contains(NamesOf(out_.launch.grid[axis]), name))
      out_.launch.grid[axis] = GridBy(axis, leaf->value, name, count);
    if (!Contains(NamesOf(out_.launch.grid[axis]), name) && !strides) {
      out_.notes.push_back(fmt::format("'{}' is not tuned: the grid {} does not follow from it",
                                       name, out_.launch.grid[axis]));
      return;
    }
    AddBlockParameter(axis, name, leaf->value, constant ? Replace(*constant) : kAtLaunch);
  }

  /// An extent such as min(width, 1024), by which the kernel's loops stride: any number of threads
  /// is right.
  void StridedBlock(size_t axis) {
    std::string& text = out_.launch.block[axis];
    const auto now = Now(text);
    if (!now || *now < 32 || *now > 1024 || HasParameter(out_.space, text)) return;
    const std::string name = BlockName(axis);
    AddBlockParameter(axis, name, *now, kAtLaunch);
    for (std::string* other : {&out_.launch.shared, &out_.launch.grid[axis]}) {
      if (const size_t at = other->find(text); at != std::string::npos)
        other->replace(at, text.size(), name);
    }
    text = name;
  }

  /// True for a problem size and for a value that the kernel receives: changing it would change the
  /// task.
  bool IsOfTheProblem(const std::string& name) const {
    return in_.used_in_sizes.contains(name) || in_.used_in_scalars.contains(name) ||
           in_.stated.sizes.contains(name) || out_.fixed.contains(name);
  }

  /// A kernel with a grid-stride loop is right for any number of blocks.
  void GridTunables() {
    const bool wanted = options_.register_limit || in_.stated.tunables.contains("grid_x");
    if (!wanted || !Reads(in_.syntax, *in_.kernel, "gridDim", "x") ||
        !StridesByGrid(in_.syntax, *in_.kernel))
      return;
    const auto now = Now(out_.launch.grid[0]);
    if (!now) return;
    std::set<int64_t> values = {*now};
    for (int64_t factor : {1, 2, 4, 8, 16, 32}) values.insert(factor * options_.multiprocessors);
    std::vector<Value> listed(values.begin(), values.end());
    AddParameter("grid_x", std::move(listed), *now, kAtLaunch,
                 "blocks, each of which strides over the problem");
    out_.launch.grid[0] = "grid_x";
  }

  /// Value of an extent with the source's own values.
  std::optional<int64_t> Now(const std::string& text) const {
    const auto expr = Expr::Parse(text);
    if (!expr) return std::nullopt;
    const std::vector<std::string> names = out_.space.Names();
    const Dims dims = in_.SizesBeside(out_.space);
    Bindings bindings(dims);
    bindings.Add(names, out_.initial.values);
    const auto value = expr->EvaluateInt(bindings);
    return value ? std::optional(*value) : std::nullopt;
  }

  const SourceReading& in_;
  const TunableOptions& options_;
  SourceTunables out_;
};

}  // namespace

bool HasParameter(const ParameterSpace& space, const std::string& text) {
  return std::ranges::any_of(NamesOf(text),
                             [&](const std::string& name) { return space.Find(name) >= 0; });
}

Result<SourceTunables> FindTunables(const SourceReading& reading, const TunableOptions& options) {
  return Finder(reading, options).Run();
}

}  // namespace atunner
