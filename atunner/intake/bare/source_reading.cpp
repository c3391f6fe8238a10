#include "atunner/intake/bare/source_reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "atunner/intake/bare/device_symbols.h"
#include "atunner/intake/bare/index_fills.h"
#include "atunner/intake/bare/kernel_alone.h"
#include "atunner/intake/bare/record_buffers.h"
#include "atunner/intake/c_type.h"
#include "atunner/intake/cuda/kernel_body.h"
#include "atunner/intake/cuda/structures.h"
#include "atunner/intake/expression_text.h"
#include "atunner/intake/rewrite/macro_launches.h"
#include "atunner/intake/value_list.h"
#include "atunner/model/kernel/texture.h"

namespace atunner {
namespace {

constexpr const char* kCaptureHint =
    "where nvcc is installed, atunner hardware-optimize --source FILE --auto-tune -- ARGUMENTS "
    "builds and runs the program and tunes what it launches";
constexpr std::string_view kDispatched = "scalar_t";  // the type in the body of AT_DISPATCH_…

class Reader {
 public:
  Reader(SourceReading& out, const std::string& wanted) : out_(out), wanted_(wanted) {}

  Status Run(const Dims& sizes) {
    ATUNNER_TRY(out_.stated, ParseAnnotations(out_.syntax.lexed.annotations, out_.file));
    for (const auto& [name, value] : sizes) out_.stated.sizes[name] = value;
    ATUNNER_RETURN_IF_ERROR(ChooseKernel());
    out_.host.emplace(out_.syntax, *out_.kernel, out_.stated.sizes);
    out_.source_launch = out_.host->launch();
    if (!out_.source_launch) lone_ = LoneKernelOf(out_.syntax, *out_.kernel);
    if (TakesDefaults())
      out_.notes.push_back("the source does not launch the kernel: " + Describe(*lone_) +
                           " are assumed; state others with // atunner: block = …");
    ReadTemplates();
    ReadLaunch();
    ReadArguments();
    if (questions_.empty() && out_.bindings.size() == out_.kernel->parameters.size())
      FillIndexArrays(out_);
    ReadSymbols();
    if (!tables_.empty()) return TakesTables();
    if (!structs_.empty()) return TakesStructures();
    return questions_.empty() ? Status{} : Ask();
  }

 private:
  std::unexpected<Error> TakesStructures() const {
    return Invalid(fmt::format("kernel '{}' takes a structure by value ({}): only numbers and "
                               "pointers can be passed",
                               out_.kernel->name, structs_),
                   out_.Where(),
                   std::string(kCaptureHint) +
                       "; without nvcc, pass its members one by one, or keep it in a __constant__ "
                       "variable; as it is the program is checked by atunner sanitize -- "
                       "./PROGRAM, and the kernel alone by atunner run FILE --arg f32=1,2, which "
                       "passes a structure of these values");
  }

  std::unexpected<Error> TakesTables() const {
    return Invalid(fmt::format("kernel '{}' takes pointers to pointers ({}): their values are only "
                               "known while the program runs",
                               out_.kernel->name, tables_),
                   out_.Where(), kCaptureHint);
  }

  /// True if the launch and the buffers of a kernel that the source does not launch follow from its
  /// size.
  bool TakesDefaults() const { return lone_ && out_.stated.sizes.contains(lone_->size); }

  /// Adds an annotation line to those that the error asks for.
  void Question(const std::string& line) {
    if (!Contains(questions_, line)) questions_.push_back(line);
  }

  /// Asks for the variables whose unknown values made the last expression fail, or, if they would
  /// not make it known, for `line`. With their values other expressions may become known too.
  void QuestionOfSize(const std::string& line) {
    const Missing& missing = out_.host->missing();
    if (!out_.source_launch || missing.nameless || missing.names.empty()) return Question(line);
    for (const std::string& name : missing.names) Question("size " + name + " = VALUE");
  }

  std::unexpected<Error> Ask() const {
    std::string lines;
    for (const std::string& line : questions_) lines += "\n  // atunner: " + line;
    if (lone_ && !TakesDefaults())
      lines += fmt::format("\nor give --dim {}=1048576, which takes {}", lone_->size,
                           Describe(*lone_));
    return Invalid(
        fmt::format("the source does not say everything about kernel '{}'", out_.kernel->name),
        out_.Where(), "add above the kernel, with your values:" + lines);
  }

  // --- which kernel ---

  /// The kernels named `wanted`; without a name those that are launched, or the file's only one.
  std::vector<const KernelDefinition*> Candidates(const std::string& wanted) const {
    std::vector<const KernelDefinition*> found;
    for (const KernelDefinition& kernel : out_.syntax.kernels) {
      if (!wanted.empty() ? kernel.name == wanted || kernel.qualified == wanted
                          : FindLaunch(out_.syntax, kernel) != nullptr)
        found.push_back(&kernel);
    }
    if (wanted.empty() && found.empty() && out_.syntax.kernels.size() == 1)
      found.push_back(&out_.syntax.kernels.front());
    return found;
  }

  Status ChooseKernel() {
    if (out_.syntax.kernels.empty()) return Invalid("no __global__ kernel was found", out_.file);
    const std::string wanted = !wanted_.empty() ? wanted_ : out_.stated.kernel;
    const std::vector<const KernelDefinition*> launched = Candidates(wanted);
    std::string names;
    for (const KernelDefinition& kernel : out_.syntax.kernels)
      names += (names.empty() ? "" : ", ") + kernel.name;
    if (!wanted.empty() && launched.empty())
      return Invalid("there is no kernel '" + wanted + "'", out_.file, "the file has " + names);
    if (launched.size() != 1) {
      return Invalid(
          fmt::format("the file has {} kernels: {}", out_.syntax.kernels.size(), names), out_.file,
          "say which to tune: request.kernel NAME, or the line\n  // atunner: kernel = " +
              out_.syntax.kernels.front().name);
    }
    out_.kernel = launched.front();
    return {};
  }

  // --- templates ---

  void ReadTemplates() {
    for (size_t i = 0; i < out_.kernel->templates.size(); ++i) {
      const TemplateParameter& parameter = out_.kernel->templates[i];
      const bool is_type = parameter.type == "typename" || parameter.type == "class";
      const std::string text = TemplateArgument(i, is_type);
      if (text.empty() && out_.stated.entry.empty())
        Question("entry = " + out_.kernel->qualified + "<…>");
      if (is_type) types_[parameter.name] = text;
      out_.launch.template_args.push_back(is_type ? Qualified(text) : text);
    }
    if (!out_.stated.entry.empty()) ReadStatedEntry();
  }

  /// The i-th template argument: as the launch has it, deduced, or the default; "" if it is
  /// unknown.
  std::string TemplateArgument(size_t i, bool is_type) {
    const TemplateParameter& parameter = out_.kernel->templates[i];
    std::string text = parameter.fallback;
    if (out_.source_launch && i < out_.source_launch->template_args.size()) {
      text = std::string(out_.syntax.Text(out_.source_launch->template_args[i]));
      if (auto value = out_.host->Expression(out_.source_launch->template_args[i])) text = *value;
      text = out_.host->TypeNamed(text);
    }
    if (text.empty() || (is_type && !TypeOf(text))) {
      if (std::string deduced = Deduced(parameter); !deduced.empty()) text = std::move(deduced);
    }
    if (is_type && text == kDispatched && !TypeOf(text) && IsDispatched()) {
      text = "float";
      out_.notes.push_back(fmt::format(
          "'{}' is float; state the type of a buffer for another: arg NAME in float16[…]",
          parameter.name));
    }
    return text;
  }

  /// A type name with the namespaces that it needs at global scope.
  std::string Qualified(const std::string& type) const {
    const std::vector<Token> tokens = Lex(type).tokens;
    std::string text;
    size_t at = 0;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const auto known = out_.syntax.qualified.find(tokens[i].text);
      if (known == out_.syntax.qualified.end() || (i > 0 && tokens[i - 1].Is("::"))) continue;
      text += type.substr(at, tokens[i].offset - at) + known->second;
      at = tokens[i].offset + tokens[i].text.size();
    }
    return text + type.substr(at);
  }

  /// True if the source uses one of PyTorch's AT_DISPATCH_… macros, which run a body for each type.
  bool IsDispatched() const {
    return std::ranges::any_of(out_.syntax.lexed.tokens, [](const Token& token) {
      return token.text.starts_with("AT_DISPATCH_");
    });
  }

  /// The value of a type parameter that follows from a stated argument or from the type of a buffer
  /// that is passed; "" if it is unknown.
  std::string Deduced(const TemplateParameter& parameter) {
    for (const KernelParameter& one : out_.kernel->parameters) {
      if (const auto stated = out_.stated.arguments.find(one.name);
          one.type == parameter.name && one.pointer && stated != out_.stated.arguments.end())
        return std::string(CudaName(stated->second.dtype));
    }
    if (!out_.source_launch) return "";
    for (size_t i = 0;
         i < out_.kernel->parameters.size() && i < out_.source_launch->arguments.size(); ++i) {
      const KernelParameter& one = out_.kernel->parameters[i];
      if (one.type != parameter.name) continue;
      if (std::string type = out_.host->TypeOf(out_.source_launch->arguments[i], one.pointer);
          !type.empty())
        return type;
    }
    return "";
  }

  void ReadStatedEntry() {
    const size_t open = out_.stated.entry.find('<');
    if (open == std::string::npos) return;
    const std::vector<std::string> pieces = SplitOutsideBrackets(
        out_.stated.entry.substr(open + 1, out_.stated.entry.rfind('>') - open - 1), ',');
    for (size_t i = 0; i < pieces.size() && i < out_.launch.template_args.size(); ++i) {
      out_.launch.template_args[i] = pieces[i];
      const TemplateParameter& parameter = out_.kernel->templates[i];
      if (parameter.type == "typename" || parameter.type == "class")
        types_[parameter.name] = pieces[i];
    }
  }

  std::optional<CType> TypeOf(std::string name) const {
    for (int i = 0; i < 4; ++i) {
      if (const auto known = ParseCType(name)) return known;
      if (const auto bound = types_.find(name); bound != types_.end()) {
        name = bound->second;
      } else if (const auto alias = out_.syntax.FindAlias(name);
                 alias != out_.syntax.aliases.end()) {
        name = alias->second;
      } else if (const FileConstant* constant = out_.syntax.FindConstant(name)) {
        name = constant->value;  // #define REAL float
      } else {
        return FloatsOf(out_.syntax, name);
      }
    }
    return std::nullopt;
  }

  // --- launch ---

  void ReadLaunch() {
    out_.launch.block = Extents("block", out_.stated.launch.block, 1);
    out_.launch.grid = Extents("grid", out_.stated.launch.grid, 0);
    ReadCluster();
    out_.launch.shared = "0";
    if (!out_.stated.launch.shared.empty()) {
      out_.launch.shared = out_.stated.launch.shared;
    } else if (out_.source_launch && out_.source_launch->configuration.size() > 2) {
      if (auto bytes = out_.host->Expression(out_.source_launch->configuration[2])) {
        out_.launch.shared = *bytes;
      } else {
        QuestionOfSize("shared = BYTES");
      }
    }
  }

  void ReadCluster() {
    if (!out_.stated.launch.cluster.empty())
      out_.launch.cluster = Extents("cluster", out_.stated.launch.cluster, 0);
    for (size_t axis = 0; out_.source_launch && out_.stated.launch.cluster.empty() && axis < 3;
         ++axis) {
      const TokenRange extent = out_.source_launch->cluster[axis];
      if (extent.empty()) continue;
      const auto value = out_.host->Expression(extent);
      if (value)
        out_.launch.cluster[axis] = *value;
      else
        Question("cluster = 2");
    }
  }

  std::array<std::string, 3> Extents(const char* what, const std::string& text, size_t position) {
    std::array<std::string, 3> extents = {"1", "1", "1"};
    if (!text.empty()) {
      const std::vector<std::string> pieces = SplitOutsideBrackets(text, ',');
      for (size_t i = 0; i < pieces.size() && i < 3; ++i) extents[i] = pieces[i];
      return extents;
    }
    if (out_.source_launch && position < out_.source_launch->configuration.size()) {
      if (auto found = out_.host->Extents(out_.source_launch->configuration[position]))
        return *found;
    }
    if (TakesDefaults()) {
      extents[0] = position == 1 ? lone_->threads
                                 : fmt::format("ceil_div({}, {})", lone_->size, lone_->threads);
      return extents;
    }
    QuestionOfSize(std::string(what) + (position == 1 ? " = 256" : " = ceil_div(n, 256)"));
    return extents;
  }

  // --- arguments ---

  void ReadArguments() {
    for (size_t i = 0; i < out_.kernel->parameters.size(); ++i) {
      const KernelParameter& parameter = out_.kernel->parameters[i];
      const bool given = out_.source_launch && i < out_.source_launch->arguments.size();
      if (parameter.pointer) {
        Pointer(parameter, given ? std::optional(out_.source_launch->arguments[i]) : std::nullopt);
      } else {
        Scalar(parameter, given ? std::optional(out_.source_launch->arguments[i]) : std::nullopt);
      }
    }
  }

  void Pointer(const KernelParameter& parameter, std::optional<TokenRange> given) {
    if (parameter.table) {
      tables_ += (tables_.empty() ? "" : ", ") + parameter.type + "** " + parameter.name;
      return;
    }
    ArgSpec arg;
    arg.name = parameter.name;
    arg.role = RoleOf(out_.syntax, *out_.kernel, parameter);
    const std::string pointee = parameter.type == "void"
                                    ? CastOf(out_.syntax, *out_.kernel, parameter.name)
                                    : parameter.type;
    auto type = TypeOf(pointee);
    const auto record = type ? std::nullopt : RecordOf(out_.syntax, pointee);
    if (record) {
      type = CType{DType::kUInt8, 1};
      arg.fill.kind = Fill::Kind::kGenerator;
      arg.fill.path = record->fill;
    }
    if (const auto fill = out_.stated.fills.find(parameter.name); fill != out_.stated.fills.end())
      arg.fill = fill->second;
    if (const auto stated = out_.stated.arguments.find(parameter.name);
        stated != out_.stated.arguments.end())
      return AddStated(std::move(arg), stated->second);
    const std::string ask = AskForBuffer(arg, type, pointee, record.has_value());
    if (type && !given && TakesDefaults()) {
      arg.dtype = type->dtype;
      AddExtent(arg, record ? fmt::format("{} * {}", lone_->size, record->bytes)
                            : fmt::format("{} * {}", lone_->size, type->lanes));
      return AddTensor(std::move(arg), nullptr);
    }
    if (!type || !given) return Question(ask);
    if (IsNull(*given)) {
      out_.bindings.push_back(ArgBinding::Scalar(DType::kUInt64, Expr(0)));
      return;
    }
    arg.dtype = type->dtype;
    if (!AddBuffer(arg, parameter, *given)) return QuestionOfSize(ask);
    const bool stated_fill = out_.stated.fills.contains(parameter.name);
    if (record && arg.fill.kind == Fill::Kind::kGenerator && !stated_fill)
      out_.notes.push_back(fmt::format("'{}' is bytes of '{}', filled with numbers of its members",
                                       parameter.name, pointee));
  }

  /// Adds a tensor whose role, type and shape an annotation states.
  void AddStated(ArgSpec arg, const StatedArgument& stated) {
    arg.role = stated.role;
    arg.dtype = stated.dtype;
    arg.shape.clear();
    for (const std::string& extent : SplitOutsideBrackets(stated.extents, ','))
      AddExtent(arg, extent);
    AddTensor(std::move(arg), nullptr);
  }

  /// The annotation that states a pointer argument, e.g. "arg x in float32[ELEMENTS]". Unknown
  /// types (curandState* states) are asked for as bytes.
  std::string AskForBuffer(const ArgSpec& arg, const std::optional<CType>& type,
                           const std::string& pointee, bool record) const {
    const bool bytes = record || (!type && !IsOfTemplate(pointee) && pointee != "void");
    const char* role = arg.role == Role::kInput    ? "in"
                       : arg.role == Role::kOutput ? "out"
                                                   : "inout";
    return fmt::format(
        "arg {} {} {}", arg.name, role,
        bytes ? "uint8[BYTES]" : fmt::format("{}[ELEMENTS]", type ? Name(type->dtype) : "float32"));
  }

  /// Adds the tensor behind the launch's argument and sets its fill; false if its size is unknown.
  bool AddBuffer(ArgSpec& arg, const KernelParameter& parameter, TokenRange given) {
    const auto buffer = out_.host->BufferOf(given);
    if (!buffer) return false;
    // Sums, counters and states begin at zero. Pure inputs are often zeroed only because the host
    // has no data for them.
    const bool stated_fill = out_.stated.fills.contains(parameter.name);
    if (buffer->zeroed && !stated_fill && !parameter.is_const) arg.fill.kind = Fill::Kind::kZeros;
    AddExtent(arg, fmt::format("({}) // {}", buffer->bytes, SizeOf(arg.dtype)));
    AddTensor(arg, buffer->identity);
    return true;
  }

  bool IsNull(TokenRange range) const {
    const std::string_view text = out_.syntax.Text(range);
    return text == "nullptr" || text == "NULL" || text == "0";
  }

  void AddExtent(ArgSpec& arg, const std::string& text) {
    auto extent = Expr::Parse(text);
    if (!extent) return Question(fmt::format("arg {} in {}[ELEMENTS]", arg.name, Name(arg.dtype)));
    for (const std::string& name : extent->Names()) {
      out_.used_in_sizes.insert(name);
      if (!out_.host->leaves().contains(name) && !out_.stated.sizes.contains(name))
        Question("size " + name + " = VALUE");
    }
    arg.shape.push_back(*std::move(extent));
  }

  /// Adds a tensor. Two parameters that get the same buffer share one tensor, which is in-out
  /// unless both only read it.
  void AddTensor(ArgSpec arg, const HostBuffer* buffer) {
    for (ArgSpec& known : out_.tensors) {
      if (buffer == nullptr || buffers_[known.name] != buffer) continue;
      if (known.role != arg.role || arg.role != Role::kInput) known.role = Role::kInOut;
      out_.bindings.push_back(ArgBinding::Tensor(known.name));
      return;
    }
    buffers_[arg.name] = buffer;
    out_.bindings.push_back(ArgBinding::Tensor(arg.name));
    out_.tensors.push_back(std::move(arg));
  }

  /// The value of a scalar argument as an expression: stated, as the launch has it, or the stated
  /// size of the same name; "" if it is unknown.
  std::string ScalarText(const KernelParameter& parameter, std::optional<TokenRange> given) {
    const auto stated = out_.stated.scalars.find(parameter.name);
    std::string text;
    if (stated != out_.stated.scalars.end()) {
      text = stated->second;
    } else if (given) {
      if (auto value = out_.host->Expression(*given)) text = *value;
    }
    if (text.empty() && out_.stated.sizes.contains(parameter.name)) return parameter.name;
    return text.empty() && !given && TakesDefaults() ? "1" : text;
  }

  void Scalar(const KernelParameter& parameter, std::optional<TokenRange> given) {
    const auto type = TypeOf(parameter.type);
    const auto stated = out_.stated.scalars.find(parameter.name);
    if (parameter.type == "cudaTextureObject_t" || parameter.type == "cudaSurfaceObject_t")
      return Textured(parameter, stated != out_.stated.scalars.end() ? stated->second : "");
    const std::string text = ScalarText(parameter, given);
    const auto value = Expr::Parse(text);
    if (!type &&
        (!IsOfTemplate(parameter.type) || IsObject(parameter.type, value && !text.empty()))) {
      structs_ += (structs_.empty() ? "" : ", ") + parameter.type + " " + parameter.name;
      return;
    }
    if (text.empty() && given && type && !IsFloat(type->dtype) && type->lanes == 1)
      return QuestionOfSize(fmt::format("arg {} = VALUE", parameter.name));
    if (text.empty() || !value || !type || type->lanes != 1)
      return Question(fmt::format("arg {} = VALUE", parameter.name));
    for (const std::string& name : value->Names()) out_.used_in_scalars.insert(name);
    out_.bindings.push_back(ArgBinding::Scalar(type->dtype, *value));
  }

  void Textured(const KernelParameter& parameter, const std::string& stated) {
    const bool prefixed = stated.starts_with("texture:") || stated.starts_with("surface:");
    const std::string text = stated.substr(prefixed ? 8 : 0);
    const auto spec = ParseTexture(text);
    if (!spec) return Question(fmt::format("arg {} = texture:f32[WIDTH,HEIGHT]", parameter.name));
    out_.bindings.push_back(ArgBinding::Texture(text, parameter.type == "cudaSurfaceObject_t"));
    out_.notes.push_back(fmt::format("'{}' has random texels: {}", parameter.name, text));
  }

  // --- device variables ---

  void ReadSymbols() {
    for (const DeviceVariable& variable : VariablesOf(out_.syntax, *out_.kernel)) {
      const bool copied = out_.host->IsFilled(variable.name);
      const bool is_stated = out_.stated.arguments.contains(variable.name);
      if (!copied && !is_stated && (variable.initialised || !variable.constant)) continue;
      ArgSpec arg;
      arg.name = variable.name;
      if (!ShapeSymbol(arg, variable, copied)) continue;
      if (const auto fill = out_.stated.fills.find(variable.name);
          fill != out_.stated.fills.end()) {
        arg.fill = fill->second;
      } else if (copied) {
        FillSymbol(arg);
      }
      out_.symbols.push_back({variable.symbol, arg.name});
      out_.tensors.push_back(std::move(arg));
    }
  }

  /// Sets type and shape of a device variable; false if they are unknown, after asking for them.
  bool ShapeSymbol(ArgSpec& arg, const DeviceVariable& variable, bool copied) {
    const auto stated = out_.stated.arguments.find(variable.name);
    const auto type = TypeOf(variable.type);
    if (stated != out_.stated.arguments.end()) {
      arg.dtype = stated->second.dtype;
      for (const std::string& extent : SplitOutsideBrackets(stated->second.extents, ','))
        AddExtent(arg, extent);
      return true;
    }
    if (!type || !copied) {
      Question(fmt::format("arg {} in {}[ELEMENTS]", variable.name,
                           type ? Name(type->dtype) : "float32"));
      return false;
    }
    arg.dtype = type->dtype;
    AddExtent(arg, Elements(variable, *type));
    return true;
  }

  bool IsOfTemplate(const std::string& type) const {
    return std::ranges::any_of(out_.kernel->templates,
                               [&](const TemplateParameter& t) { return t.name == type; });
  }
  /// True for a template type whose argument is not a number: `auto`, a function object.
  bool IsObject(const std::string& type, bool number) const {
    return !number && out_.stated.entry.empty() && IsOfTemplate(type);
  }

  std::string Elements(const DeviceVariable& variable, const CType& type) {
    std::string text = std::to_string(type.lanes);
    for (const TokenRange& extent : variable.extents) {
      const auto value = out_.host->Expression(extent);
      if (!value) return "";  // AddExtent then asks for it
      text += " * (" + *value + ")";
    }
    return text;
  }

  /// Fills a device variable with the values that the host copies to it. Unknown floats are left
  /// random; unknown integers may be indices and are asked for.
  void FillSymbol(ArgSpec& arg) {
    const std::vector<std::string> values = out_.host->ValuesOf(arg.name);
    const std::string text = ListedValues(values);
    if (!text.empty()) {
      arg.fill.kind = Fill::Kind::kGenerator;
      arg.fill.path = values.size() == 1 ? text
                                         : fmt::format("0 if i >= {} else {}", values.size(), text);
    } else if (KindOf(arg.dtype) != DTypeKind::kFloat) {
      Question(fmt::format("fill {} = constant VALUE", arg.name));
    }
  }

  /// The values as one expression of the index i, e.g. "1 if i == 0 else 2"; "" if one of them is
  /// unknown or there are more than 64.
  std::string ListedValues(const std::vector<std::string>& values) {
    constexpr size_t kMostListed = 64;
    std::string text;
    for (size_t i = values.size() > kMostListed ? 0 : values.size(); i > 0; --i) {
      const auto value = NumberNow(HostValue::Number(values[i - 1]), out_.host->leaves());
      if (!value) return "";
      for (const std::string& name : NamesOf(values[i - 1])) out_.used_in_symbols.insert(name);
      const std::string number = ToString(*value);
      text = text.empty() ? number : fmt::format("{} if i == {} else {}", number, i - 1, text);
    }
    return text;
  }

  SourceReading& out_;
  const std::string& wanted_;
  std::map<std::string, std::string, std::less<>> types_;  ///< template type parameters
  std::map<std::string, const HostBuffer*> buffers_;       ///< by tensor
  std::vector<std::string> questions_;
  std::optional<LoneKernel> lone_;  ///< of a kernel that the source does not launch
  std::string tables_;              ///< parameters that are pointers to pointers, for the message
  std::string structs_;             ///< parameters that are structures by value, for the message
};

}  // namespace

std::string SourceReading::Where() const {
  if (kernel == nullptr) return file;
  std::string of = file;  // or the header that an earlier stage inlined
  for (size_t i = 0; i < kernel->head.begin; ++i) {
    const std::string_view line = syntax.token(i).text;
    if (syntax.token(i).kind != Token::Kind::kDirective || !line.starts_with("#line ")) continue;
    if (const size_t quote = line.find('"'); quote != std::string_view::npos)
      of = line.substr(quote + 1, line.rfind('"') - quote - 1);
  }
  return fmt::format("{}:{}", of, kernel->line);
}

const Leaf* SourceReading::FindLeaf(const std::string& name) const {
  const auto found = host->leaves().find(name);
  return found == host->leaves().end() ? nullptr : &found->second;
}

Dims SourceReading::SizesBeside(const ParameterSpace& space) const {
  Dims dims = stated.sizes;
  for (const auto& [name, leaf] : host->leaves()) {
    if (space.Find(name) < 0) dims[name] = leaf.value;
  }
  return dims;
}

Result<std::unique_ptr<SourceReading>> ReadSource(const std::string& text, const std::string& file,
                                                  const std::string& kernel, const Dims& sizes) {
  auto reading = std::make_unique<SourceReading>(WithLaunchesExpanded(text), file);
  ATUNNER_RETURN_IF_ERROR(Reader(*reading, kernel).Run(sizes));
  return reading;
}

}  // namespace atunner
