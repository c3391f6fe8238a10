#include "atunner/ptx/parser.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdlib>

namespace atunner::ptx {
namespace {

/// Contents that a module brings along are held in memory; a file that states a few may claim any
/// size.
constexpr uint64_t kMaxInitialisedBytes = uint64_t{1} << 28;

constexpr uint64_t kOpaqueBytes = 8;

uint64_t AlignUp(uint64_t value, uint64_t align) { return (value + align - 1) / align * align; }

}  // namespace

Result<ValidModule> Parser::Run() {
  while (!End()) {
    ATUNNER_RETURN_IF_ERROR(TopLevel());
  }
  if (module_.target_.empty()) return Invalid("there is no .target: this is not PTX", "PTX");
  return std::move(module_);
}

Status Parser::TopLevel() {
  const std::string_view word = Peek();
  if (word == ".version") return SkipTokens(2);
  if (word == ".address_size") {
    Next();
    return Next() == "64" ? Status{} : Bad("addresses of 32 bits are not supported");
  }
  if (word == ".target") {
    Next();
    module_.target_ = std::string(Next());
    while (Accept(",")) Next();
    return {};
  }
  if (word == ".file") return File();
  if (word == ".section") return SkipBraces();
  if (word == ".pragma") {
    while (!End() && !Accept(";")) Next();
    return {};
  }
  extern_ = linked_ = false;
  while (Peek() == ".visible" || Peek() == ".extern" || Peek() == ".weak" || Peek() == ".common") {
    extern_ = Next() == ".extern";
    linked_ = true;
  }
  const std::string_view kind = Peek();
  if (kind == ".entry" || kind == ".func") return ParseFunction();
  if (kind == ".global" || kind == ".const" || kind == ".shared") return ModuleVariable();
  if (kind == ".alias") {
    while (!End() && !Accept(";")) Next();
    return {};
  }
  return Bad("unexpected '" + std::string(kind) + "'");
}

Status Parser::File() {
  Next();
  const auto index = static_cast<uint32_t>(std::strtoul(std::string(Next()).c_str(), nullptr, 10));
  std::string_view name = Next();
  if (name.size() >= 2) name = name.substr(1, name.size() - 2);
  module_.files_[index] = std::string(name);
  while (Accept(",")) Next();
  return {};
}

Status Parser::SkipTokens(int count) {
  for (int i = 0; i < count; ++i) Next();
  return {};
}

Status Parser::SkipBraces() {
  while (!End() && Peek() != "{") Next();
  int depth = 0;
  do {
    const std::string_view token = Next();
    depth += token == "{" ? 1 : token == "}" ? -1 : 0;
  } while (depth > 0 && !End());
  return {};
}

Status Parser::ModuleVariable() {
  const std::string space(Next());
  ATUNNER_TRY(Variable variable, Declaration());
  ModuleName name{
      .defined = !extern_, .of_extern = extern_, .type = last_type_, .bytes = variable.bytes};
  if (Accept("=")) ATUNNER_RETURN_IF_ERROR(Initialiser(variable));
  if (!Accept(";")) return Bad("expected ';'");
  const auto known = module_names_.find(variable.name);
  const bool declared = known != module_names_.end();
  const bool defined = declared && known->second.defined;
  ATUNNER_RETURN_IF_ERROR(AddName(variable.name, name));
  if (extern_ && defined) return {};
  if (space == ".shared") {
    if (variable.bytes == 0 || extern_) {
      extern_shared_.push_back(variable.name);
      extern_align_ = std::max(extern_align_, variable.align);
    } else {
      module_shared_.push_back(std::move(variable));
    }
  } else {
    std::vector<Variable>& list = space == ".const" ? module_.constants_ : module_.globals_;
    if (declared)
      std::erase_if(list, [&](const Variable& before) { return before.name == variable.name; });
    list.push_back(std::move(variable));
  }
  return {};
}

Result<Variable> Parser::Declaration() {
  Variable variable;
  uint64_t element = 0;
  uint64_t lanes = 1;
  while (Peek().starts_with('.')) {
    const std::string_view word = Next();
    if (word == ".align") {
      ATUNNER_TRY(const uint64_t align, Number());
      variable.align = static_cast<uint32_t>(std::clamp<uint64_t>(align, 1, 1 << 16));
    } else if (word == ".ptr") {
      while (Peek() == ".global" || Peek() == ".shared" || Peek() == ".const" || Peek() == ".local")
        Next();
    } else if (word == ".v2" || word == ".v4") {
      lanes = word == ".v2" ? 2 : 4;
    } else if (word == ".texref" || word == ".samplerref" || word == ".surfref") {
      variable.opaque = word.substr(1);
      element = kOpaqueBytes;
    } else if (const Type type = TypeOfWord(word); type != Type::kNone) {
      element = static_cast<uint64_t>(std::max(8, BitsOf(type))) / 8;
      last_type_ = variable.type = type;
    } else if (word == ".attribute") {
      while (!End() && Next() != ")") {
      }
    }
  }
  if (element == 0) return Bad("variable without a type");
  variable.name = std::string(Next());
  variable.align = std::max(variable.align, static_cast<uint32_t>(element));
  element_bytes_ = element;
  uint64_t count = lanes;
  while (Accept("[")) {
    if (Accept("]")) {
      count = 0;
      continue;
    }
    ATUNNER_TRY(const Operand size, Immediate());
    const uint64_t extent = size.bits;
    if (extent > 0 && count > (uint64_t{1} << 34) / extent) return Bad("array is too large");
    count *= extent;
    if (!Accept("]")) return Bad("expected ']'");
  }
  variable.bytes = count * element;
  return variable;
}

Status Parser::Initialiser(Variable& variable) {
  variable.initial.clear();
  if (Accept("{")) {
    int depth = 1;
    while (depth > 0) {
      if (End()) return Bad("initialiser without end");
      if (Accept("{"))
        ++depth;
      else if (Accept("}"))
        --depth;
      else if (!Accept(","))
        ATUNNER_RETURN_IF_ERROR(InitialValue(variable));
    }
  } else {
    ATUNNER_RETURN_IF_ERROR(InitialValue(variable));
  }
  if (variable.bytes > kMaxInitialisedBytes) return Bad("initialised array is too large");
  if (variable.bytes == 0) variable.bytes = variable.initial.size();
  variable.initial.resize(variable.bytes);
  return {};
}

Status Parser::InitialValue(Variable& variable) {
  uint64_t bits = 0;
  const std::string_view token = Peek();
  if (IsWordStart(token.empty() ? '0' : token[0])) {
    std::string name(Next());
    if (name == "generic" && Accept("(")) {
      name = std::string(Next());
      Accept(")");
    }
    ATUNNER_TRY(bits, Offset());
    variable.references.emplace_back(variable.initial.size(), name);
  } else {
    ATUNNER_TRY(const Operand value, Immediate());
    bits = value.bits;
    const bool needs_float = last_type_ == Type::kF32 || last_type_ == Type::kF64;
    const bool needs_integer = last_type_ >= Type::kU8 && last_type_ <= Type::kS64;
    if (value.is_float ? needs_integer : needs_float)
      return Bad("an initial value of another type");
    if (value.is_float && !value.is_single && last_type_ == Type::kF32) {
      bits = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
    }
  }
  for (uint64_t i = 0; i < element_bytes_; ++i)
    variable.initial.push_back(static_cast<std::byte>(bits >> (8 * i)));
  return {};
}

Status Parser::ParseFunction() {
  Function function;
  function.is_entry = Next() == ".entry";
  in_registers_.clear();
  if (Accept("(")) {
    uint64_t bytes = 0;
    ATUNNER_RETURN_IF_ERROR(Params(function.returns, bytes));
    for (InRegister& result : in_registers_) result.result = true;
  }
  function.name = std::string(Next());
  if (Accept("(")) ATUNNER_RETURN_IF_ERROR(Params(function.params, function.param_bytes));
  while (Peek().starts_with('.')) {
    const std::string_view directive = Next();
    std::array<uint32_t, 3> extents = {1, 1, 1};
    size_t count = 0;
    while (!End() && Peek() != "{" && Peek() != ";" && !Peek().starts_with('.')) {
      const std::string_view token = Next();
      if (std::isdigit(static_cast<unsigned char>(token[0])) && count < extents.size())
        extents[count++] = static_cast<uint32_t>(
            std::strtoul(std::string(token).c_str(), nullptr, 0));
    }
    if (directive == ".reqntid") function.required_threads = extents[0] * extents[1] * extents[2];
    if (directive == ".reqnctapercluster") function.required_cluster = extents;
  }
  std::vector<uint64_t> bytes;
  for (const Variable& parameter : function.params) bytes.push_back(parameter.bytes);
  const auto [known, added] = parameter_bytes_.try_emplace(function.name, bytes);
  if (!added && known->second != bytes)
    return Bad("'" + function.name + "' has other parameters elsewhere");
  const bool declared = Accept(";");
  ATUNNER_RETURN_IF_ERROR(
      AddName(function.name, {.function = true, .defined = !declared, .of_extern = extern_}));
  if (declared) return {};
  if (!Accept("{")) return Bad("expected '{'");
  function.shared = module_shared_;
  for (Variable& variable : function.shared) Place(variable, function.shared_bytes);
  function.extern_shared = extern_shared_;
  function.extern_shared_align = std::max<uint32_t>(16, extern_align_);
  source_file_ = source_line_ = 0;
  StartScopes();
  for (const auto* list : {&function.returns, &function.params}) {
    for (const Variable& parameter : *list) ATUNNER_RETURN_IF_ERROR(Declare(parameter.name));
  }
  ATUNNER_RETURN_IF_ERROR(RegisterParameters(function));
  ATUNNER_RETURN_IF_ERROR(Body(function));
  StoreResults(function, Instruction{});
  ATUNNER_RETURN_IF_ERROR(ResolveLabels(function));
  module_.functions_.push_back(std::move(function));
  return {};
}

void Parser::Place(Variable& variable, uint64_t& used) {
  used = AlignUp(used, std::max(1u, variable.align));
  variable.offset = used;
  used += variable.bytes;
}

Status Parser::Params(std::vector<Variable>& list, uint64_t& bytes) {
  while (!Accept(")")) {
    const std::string_view space = Next();
    if (space != ".param" && space != ".reg") return Bad("expected '.param'");
    ATUNNER_TRY(Variable variable, Declaration());
    if (space == ".reg") {
      in_registers_.push_back({variable.name, last_type_});
      variable.name += "#value";
    }
    Place(variable, bytes);
    list.push_back(std::move(variable));
    Accept(",");
    if (End()) return Bad("parameter list without end");
  }
  return {};
}

Result<ValidModule> Parse(std::string_view text) {
  ATUNNER_TRY(std::vector<Token> tokens, Tokens(text));
  return Parser(std::move(tokens)).Run();
}

}  // namespace atunner::ptx
