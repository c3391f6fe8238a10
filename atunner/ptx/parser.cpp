#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "atunner/ptx/module.h"

namespace atunner::ptx {
namespace {

constexpr std::pair<std::string_view, Type> kTypes[] = {
    {"pred", Type::kPred},     {"b8", Type::kB8},         {"b16", Type::kB16},     {"b32", Type::kB32},
    {"b64", Type::kB64},       {"b128", Type::kB128},     {"u8", Type::kU8},       {"u16", Type::kU16},
    {"u32", Type::kU32},       {"u64", Type::kU64},       {"s8", Type::kS8},       {"s16", Type::kS16},
    {"s32", Type::kS32},       {"s64", Type::kS64},       {"f16", Type::kF16},     {"f16x2", Type::kF16x2},
    {"bf16", Type::kBF16},     {"bf16x2", Type::kBF16x2}, {"tf32", Type::kTF32},   {"f32", Type::kF32},
    {"f64", Type::kF64},       {"u16x2", Type::kU16x2},   {"s16x2", Type::kS16x2}, {"e4m3x2", Type::kE4M3x2},
    {"e5m2x2", Type::kE5M2x2}, {"e4m3", Type::kE4M3},     {"e5m2", Type::kE5M2},
};

/// One lexical piece. `text` points into the module's text.
struct Token {
  std::string_view text;
  uint32_t line = 0;
};

bool IsWordStart(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.';
}
bool IsWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '.' || c == ':';
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  /// All tokens, or the line of a character that belongs to none.
  Result<std::vector<Token>> Run() {
    std::vector<Token> tokens;
    while (Skip()) {
      const size_t start = at_;
      const char c = text_[at_];
      if (c == '"') {
        const size_t end = text_.find('"', at_ + 1);
        if (end == std::string_view::npos) return Invalid("string without end", "PTX line " + std::to_string(line_));
        at_ = end + 1;
      } else if (std::isdigit(static_cast<unsigned char>(c))) {
        while (at_ < text_.size() &&
               (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '.' ||
                ((text_[at_] == '+' || text_[at_] == '-') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E') &&
                 text_.substr(start, 2) != "0x" && text_.substr(start, 2) != "0X"))) {
          ++at_;
        }
      } else if (IsWordStart(c)) {
        ++at_;
        const size_t directive = DirectivePrefix(start);
        // A single ':' ends a label; '::' is part of a modifier (".shared::cta").
        while (at_ < text_.size() && IsWord(text_[at_]) && at_ != directive) {
          if (text_[at_] == ':') {
            if (at_ + 1 >= text_.size() || text_[at_ + 1] != ':') break;
            ++at_;
          }
          ++at_;
        }
      } else if (std::string_view("{}()[]<>,;:+-|!@=*&~^/%").find(c) != std::string_view::npos) {
        ++at_;
      } else {
        return Invalid(std::string("unexpected character '") + c + "'", "PTX line " + std::to_string(line_));
      }
      tokens.push_back({text_.substr(start, at_ - start), line_});
    }
    return tokens;
  }

 private:
  bool Skip() {
    while (at_ < text_.size()) {
      if (text_[at_] == '\n') {
        ++line_;
        ++at_;
      } else if (std::isspace(static_cast<unsigned char>(text_[at_])) || text_[at_] == '\0') {
        ++at_;
      } else if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_, 2) == "/*") {
        const size_t end = std::min(text_.find("*/", at_), text_.size());
        line_ += static_cast<uint32_t>(
            std::count(text_.begin() + static_cast<long>(at_), text_.begin() + static_cast<long>(end), '\n'));
        at_ = std::min(end + 2, text_.size());
      } else {
        return true;
      }
    }
    return false;
  }

  /// Hand-written assembly says ".reg.b32": the place where the directive's own name ends, or npos.
  size_t DirectivePrefix(size_t start) const {
    for (std::string_view name : {".reg.", ".shared.", ".local.", ".param.", ".const.", ".global."}) {
      if (text_.substr(start).starts_with(name)) return start + name.size() - 1;
    }
    return std::string_view::npos;
  }

  std::string_view text_;
  size_t at_ = 0;
  uint32_t line_ = 1;
};

std::vector<std::string> SplitDots(std::string_view word) {
  std::vector<std::string> parts;
  while (!word.empty()) {
    const size_t dot = word.find('.', 1);
    std::string_view part = word.substr(0, dot);
    if (part.starts_with('.')) part.remove_prefix(1);
    parts.emplace_back(part);
    if (dot == std::string_view::npos) break;
    word.remove_prefix(dot);
  }
  return parts;
}

/// ".b32" → kB32; kNone for anything else, the empty word at the end of the text included.
Type TypeOfWord(std::string_view word) { return word.starts_with('.') ? ParseType(word.substr(1)) : Type::kNone; }

/// Contents that a module brings along are held in memory; a file that states a few may claim any size.
constexpr uint64_t kMaxInitialisedBytes = uint64_t{1} << 28;

/// Operands nest twice at most: a vector in an address.
constexpr int kMaxOperandDepth = 16;
constexpr std::string_view kWarpSize = "WARP_SZ";  // the one constant that PTX has a name for

uint64_t AlignUp(uint64_t value, uint64_t align) { return (value + align - 1) / align * align; }

constexpr std::string_view kSpecials[] = {
    "%tid",
    "%ntid",
    "%laneid",
    "%warpid",
    "%nwarpid",
    "%ctaid",
    "%nctaid",
    "%smid",
    "%nsmid",
    "%gridid",
    "%clock",
    "%clock64",
    "%clock_hi",
    "%globaltimer",
    "%globaltimer_lo",
    "%globaltimer_hi",
    "%lanemask_eq",
    "%lanemask_le",
    "%lanemask_lt",
    "%lanemask_ge",
    "%lanemask_gt",
    "%dynamic_smem_size",
    "%total_smem_size",
    "%aggr_smem_size",
    "%current_graph_exec",
    "%cluster_ctaid",
    "%cluster_nctaid",
    "%cluster_ctarank",
    "%cluster_nctarank",
    "%clusterid",
    "%nclusterid",
    "%is_explicit_cluster",
    "%warpsize",
    "%pm",
};

bool IsSpecial(std::string_view name) {
  const std::string_view base = name.substr(0, name.find('.'));
  if (base.starts_with("%envreg") || base.starts_with("%reserved_smem_offset_")) return true;
  return std::ranges::find(kSpecials, base) != std::end(kSpecials);
}

}  // namespace

int BitsOf(Type type) {
  switch (type) {
    case Type::kNone:
      return 0;
    case Type::kPred:
      return 1;
    case Type::kB8:
    case Type::kU8:
    case Type::kS8:
    case Type::kE4M3:
    case Type::kE5M2:
      return 8;
    case Type::kB16:
    case Type::kU16:
    case Type::kS16:
    case Type::kF16:
    case Type::kBF16:
    case Type::kE4M3x2:
    case Type::kE5M2x2:
      return 16;
    case Type::kB64:
    case Type::kU64:
    case Type::kS64:
    case Type::kF64:
      return 64;
    case Type::kB128:
      return 128;
    default:
      return 32;
  }
}

Type ParseType(std::string_view text) {
  for (const auto& [name, type] : kTypes) {
    if (name == text) return type;
  }
  return Type::kNone;
}

bool Instruction::Has(std::string_view modifier) const {
  return std::ranges::find(modifiers, modifier) != modifiers.end();
}

std::string Instruction::Mnemonic() const {
  std::string text = opcode;
  for (const std::string& modifier : modifiers) text += "." + modifier;
  return text;
}

const Function* ValidModule::Find(std::string_view name) const {
  for (const Function& function : functions_) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

std::string ValidModule::SourceFile(uint32_t index) const {
  const auto at = files_.find(index);
  return at == files_.end() ? "" : at->second;
}

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Result<ValidModule> Run() {
    while (!End()) {
      ATUNNER_RETURN_IF_ERROR(TopLevel());
    }
    if (module_.target_.empty()) return Invalid("there is no .target: this is not PTX", "PTX");
    return std::move(module_);
  }

 private:
  using RegisterMap = std::unordered_map<std::string, int>;

  Status TopLevel() {
    const std::string_view word = Peek();
    if (word == ".version") return SkipTokens(2);
    if (word == ".address_size") return SkipTokens(2);
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
    bool visible_seen = false;
    while (Peek() == ".visible" || Peek() == ".extern" || Peek() == ".weak" || Peek() == ".common") {
      extern_ = Next() == ".extern";
      visible_seen = true;
    }
    if (!visible_seen) extern_ = false;
    const std::string_view kind = Peek();
    if (kind == ".entry" || kind == ".func") return ParseFunction();
    if (kind == ".global" || kind == ".const" || kind == ".shared") return ModuleVariable();
    if (kind == ".alias") {
      while (!End() && !Accept(";")) Next();
      return {};
    }
    return Bad("unexpected '" + std::string(kind) + "'");
  }

  Status File() {
    Next();
    const auto index = static_cast<uint32_t>(std::strtoul(std::string(Next()).c_str(), nullptr, 10));
    std::string_view name = Next();
    if (name.size() >= 2) name = name.substr(1, name.size() - 2);
    module_.files_[index] = std::string(name);
    while (Accept(",")) Next();
    return {};
  }

  Status SkipTokens(int count) {
    for (int i = 0; i < count; ++i) Next();
    return {};
  }

  Status SkipBraces() {
    while (!End() && Peek() != "{") Next();
    int depth = 0;
    do {
      const std::string_view token = Next();
      depth += token == "{" ? 1 : token == "}" ? -1 : 0;
    } while (depth > 0 && !End());
    return {};
  }

  Status ModuleVariable() {
    const std::string space(Next());
    ATUNNER_TRY(Variable variable, Declaration());
    if (Accept("=")) ATUNNER_RETURN_IF_ERROR(Initialiser(variable));
    if (!Accept(";")) return Bad("expected ';'");
    if (space == ".shared") {
      if (variable.bytes == 0 || extern_) {
        extern_shared_.push_back(variable.name);
        extern_align_ = std::max(extern_align_, variable.align);
      } else {
        module_shared_.push_back(std::move(variable));
      }
    } else {
      (space == ".const" ? module_.constants_ : module_.globals_).push_back(std::move(variable));
    }
    return {};
  }

  /// ".align 4 .b8 name[128]" with any number of attribute words; several dimensions multiply.
  Result<Variable> Declaration() {
    Variable variable;
    uint64_t element = 0;
    uint64_t lanes = 1;
    while (Peek().starts_with('.')) {
      const std::string_view word = Next();
      if (word == ".align") {
        ATUNNER_TRY(const uint64_t align, Number());
        variable.align = static_cast<uint32_t>(std::clamp<uint64_t>(align, 1, 1 << 16));
      } else if (word == ".ptr") {
        while (Peek() == ".global" || Peek() == ".shared" || Peek() == ".const" || Peek() == ".local") Next();
      } else if (word == ".v2" || word == ".v4") {
        lanes = word == ".v2" ? 2 : 4;
      } else if (const Type type = TypeOfWord(word); type != Type::kNone) {
        element = static_cast<uint64_t>(std::max(8, BitsOf(type))) / 8;
        last_type_ = type;
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
      ATUNNER_TRY(const uint64_t extent, Number());
      if (extent > 0 && count > (uint64_t{1} << 34) / extent) return Bad("array is too large");
      count *= extent;
      if (!Accept("]")) return Bad("expected ']'");
    }
    variable.bytes = count * element;
    return variable;
  }

  Status Initialiser(Variable& variable) {
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

  Status InitialValue(Variable& variable) {
    uint64_t bits = 0;
    const std::string_view token = Peek();
    if (IsWordStart(token.empty() ? '0' : token[0])) {
      std::string name(Next());
      if (name == "generic" && Accept("(")) {
        name = std::string(Next());
        Accept(")");
      }
      if (Accept("+")) {
        ATUNNER_TRY(bits, Number());
      }
      variable.references.emplace_back(variable.initial.size(), name);
    } else {
      ATUNNER_TRY(const Operand value, Immediate());
      bits = value.bits;
      if (value.is_float && !value.is_single && last_type_ == Type::kF32) {
        bits = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
      }
    }
    for (uint64_t i = 0; i < element_bytes_; ++i) variable.initial.push_back(static_cast<std::byte>(bits >> (8 * i)));
    return {};
  }

  Status ParseFunction() {
    Function function;
    function.is_entry = Next() == ".entry";
    if (Accept("(")) {
      uint64_t bytes = 0;
      ATUNNER_RETURN_IF_ERROR(Params(function.returns, bytes));
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
          extents[count++] = static_cast<uint32_t>(std::strtoul(std::string(token).c_str(), nullptr, 0));
      }
      if (directive == ".reqntid") function.required_threads = extents[0] * extents[1] * extents[2];
      if (directive == ".reqnctapercluster") function.required_cluster = extents;
    }
    if (Accept(";")) return {};  // a declaration
    if (!Accept("{")) return Bad("expected '{'");
    function.shared = module_shared_;
    for (Variable& variable : function.shared) Place(variable, function.shared_bytes);
    function.extern_shared = extern_shared_;
    function.extern_shared_align = std::max<uint32_t>(16, extern_align_);
    registers_.clear();
    source_file_ = source_line_ = 0;
    StartScopes();
    ATUNNER_RETURN_IF_ERROR(Body(function));
    ATUNNER_RETURN_IF_ERROR(ResolveLabels(function));
    module_.functions_.push_back(std::move(function));
    return {};
  }

  static void Place(Variable& variable, uint64_t& used) {
    used = AlignUp(used, std::max(1u, variable.align));
    variable.offset = used;
    used += variable.bytes;
  }

  Status Params(std::vector<Variable>& list, uint64_t& bytes) {
    while (!Accept(")")) {
      if (Next() != ".param") return Bad("expected '.param'");
      ATUNNER_TRY(Variable variable, Declaration());
      Place(variable, bytes);
      list.push_back(std::move(variable));
      Accept(",");
      if (End()) return Bad("parameter list without end");
    }
    return {};
  }

  Status Body(Function& function) {
    int depth = 1;
    while (depth > 0) {
      if (End()) return Bad("function '" + function.name + "' without end");
      if (Accept("{")) {
        ++depth;
        OpenScope();
      } else if (Accept("}")) {
        if (--depth > 0) CloseScope();
      } else {
        ATUNNER_RETURN_IF_ERROR(Statement(function));
      }
    }
    return {};
  }

  Status Statement(Function& function) {
    const std::string_view word = Peek();
    if (word == ".reg") return Registers(function);
    if (word == ".shared" || word == ".local" || word == ".param") return LocalVariable(function);
    if (word == ".loc") return Location();
    if (word == ".pragma") return Pragma(function);
    if (at_ + 1 < tokens_.size() && tokens_[at_ + 1].text == ":") {
      const std::string label(Next());
      Next();
      if (Peek() == ".branchtargets" || Peek() == ".calltargets" || Peek() == ".callprototype") {
        const bool branch = Next() == ".branchtargets";
        while (!End() && !Accept(";")) {
          const std::string target(Next());
          if (branch && target != ",") function.branch_targets[label].push_back(target);
        }
        return {};
      }
      function.labels[InScope(label, scope_)] = static_cast<uint32_t>(function.body.size());
      return {};
    }
    if (word.starts_with('.')) return Bad("unknown directive '" + std::string(word) + "'");
    return ParseInstruction(function);
  }

  Status Pragma(Function& function) {
    constexpr std::string_view kUsedBytes = "used_bytes_mask ";
    while (!End() && !Accept(";")) {
      const std::string_view text = Next();
      const size_t at = text.find(kUsedBytes);
      if (at == std::string_view::npos) continue;
      const std::string mask(text.substr(at + kUsedBytes.size()));
      function.used_bytes[static_cast<uint32_t>(function.body.size())] = std::strtoull(mask.c_str(), nullptr, 0);
    }
    return {};
  }

  Status Registers(Function& function) {
    Next();
    std::string_view type_word = Next();
    if (type_word == ".v2" || type_word == ".v4") type_word = Next();
    const Type type = TypeOfWord(type_word);
    if (type == Type::kNone) return Bad("unknown register type '" + std::string(type_word) + "'");
    do {
      const std::string name(Next());
      if (Accept("<")) {
        ATUNNER_TRY(const uint64_t count, Number());
        if (count > 1000000) return Bad("too many registers");
        if (!Accept(">")) return Bad("expected '>'");
        for (uint64_t i = 0; i < count; ++i) Define(function, name + std::to_string(i), type);
      } else {
        Define(function, name, type);
      }
    } while (Accept(","));
    return Accept(";") ? Status{} : Bad("expected ';'");
  }

  void Define(Function& function, std::string name, Type type) {
    const auto known = registers_.find(name);
    if (scope_ != 0) undo_.push_back({name, known == registers_.end() ? -1 : known->second, true, {}});
    registers_[name] = static_cast<int>(function.registers.size());
    function.registers.push_back({std::move(name), type});
  }

  Status LocalVariable(Function& function) {
    const std::string space(Next());
    ATUNNER_TRY(Variable variable, Declaration());
    if (Accept("=")) ATUNNER_RETURN_IF_ERROR(Initialiser(variable));
    if (!Accept(";")) return Bad("expected ';'");
    if (space == ".shared") {
      Place(variable, function.shared_bytes);
      function.shared.push_back(std::move(variable));
    } else {  // .param variables of calls live on the stack like locals
      Place(variable, function.local_bytes);
      if (scope_ != 0) Rename(variable.name);
      function.local.push_back(std::move(variable));
    }
    return {};
  }

  // Braces open scopes: registers, call parameters and labels of inline assembly are declared anew in each.
  struct Hidden {
    std::string name;
    int reg = -1;
    bool is_register = false;
    std::string variable;
  };
  void StartScopes() {
    scope_ = 0;
    scope_parents_.assign(1, 0);
    undo_.clear();
    undo_starts_.clear();
    renamed_.clear();
  }
  void OpenScope() {
    scope_parents_.push_back(scope_);
    scope_ = static_cast<uint32_t>(scope_parents_.size() - 1);
    undo_starts_.push_back(undo_.size());
  }
  void CloseScope() {
    for (size_t i = undo_.size(); i > undo_starts_.back(); --i) {
      const Hidden& hidden = undo_[i - 1];
      if (hidden.is_register && hidden.reg >= 0) registers_[hidden.name] = hidden.reg;
      if (!hidden.is_register && hidden.variable.empty()) renamed_.erase(hidden.name);
      if (!hidden.is_register && !hidden.variable.empty()) renamed_[hidden.name] = hidden.variable;
    }
    undo_.resize(undo_starts_.back());
    undo_starts_.pop_back();
    scope_ = scope_parents_[scope_];
  }
  void Rename(std::string& name) {
    const auto known = renamed_.find(name);
    undo_.push_back({name, -1, false, known == renamed_.end() ? "" : known->second});
    std::string unique = name + "#" + std::to_string(scope_);
    renamed_[name] = unique;
    name = std::move(unique);
  }
  std::string Renamed(std::string_view name) const {
    if (renamed_.empty()) return std::string(name);
    const auto at = renamed_.find(std::string(name));
    return at == renamed_.end() ? std::string(name) : at->second;
  }
  static std::string InScope(const std::string& label, uint32_t scope) {
    return scope == 0 ? label : label + "#" + std::to_string(scope);
  }

  Status Location() {
    const uint32_t line = tokens_[at_].line;
    Next();
    ATUNNER_TRY(const uint64_t file, Number());
    ATUNNER_TRY(const uint64_t source_line, Number());
    // The rest stands on the same line: column, and for inlined code "function_name …, inlined_at file line column".
    uint64_t outer_file = 0;
    uint64_t outer_line = 0;
    while (!End() && tokens_[at_].line == line) {
      if (Next() == "inlined_at") {
        ATUNNER_TRY(outer_file, Number());
        ATUNNER_TRY(outer_line, Number());
      }
    }
    if (source_line == 0) return {};
    // Inlined from a header: the line of the call is the one its author knows.
    source_file_ = static_cast<uint32_t>(outer_line ? outer_file : file);
    source_line_ = static_cast<uint32_t>(outer_line ? outer_line : source_line);
    return {};
  }

  Status ParseInstruction(Function& function) {
    Instruction instruction;
    instruction.line = tokens_[at_].line;
    instruction.source_file = source_file_;
    instruction.source_line = source_line_;
    if (Accept("@")) {
      instruction.guard_negated = Accept("!");
      const auto guard = registers_.find(std::string(Next()));
      if (guard == registers_.end()) return Bad("unknown guard predicate");
      instruction.guard = guard->second;
    }
    std::vector<std::string> parts = SplitDots(Next());
    if (parts.empty()) return Bad("expected an instruction");
    instruction.opcode = std::move(parts[0]);
    instruction.modifiers.assign(parts.begin() + 1, parts.end());
    while (!Accept(";")) {
      if (End()) return Bad("instruction without ';'");
      ATUNNER_TRY(Operand operand, ParseOperand(function));
      instruction.operands.push_back(std::move(operand));
      Accept(",");
    }
    if (instruction.opcode == "bra" && instruction.operands.size() == 1 &&
        !ResolveLater(instruction.operands[0].name, function.body.size()))
      return Bad("branch without a label");
    function.body.push_back(std::move(instruction));
    return {};
  }

  /// A branch inside braces may mean a label of its scope or of one around it, seen or yet to come.
  bool ResolveLater(const std::string& label, size_t index) {
    if (label.empty()) return false;
    if (scope_ != 0) branches_.emplace_back(index, scope_);
    return true;
  }

  Result<Operand> ParseOperand(const Function& function) {
    if (operand_depth_ >= kMaxOperandDepth) return Bad("operands are nested too deeply");
    ++operand_depth_;
    Result<Operand> operand = NestedOperand(function);
    --operand_depth_;
    return operand;
  }

  Result<Operand> NestedOperand(const Function& function) {
    Operand operand;
    if (Accept("{") || Peek() == "(") {
      const bool paren = Accept("(");
      operand.kind = Operand::Kind::kVector;
      while (!Accept(paren ? ")" : "}")) {
        if (End()) return Bad("vector without end");
        ATUNNER_TRY(Operand element, ParseOperand(function));
        operand.elements.push_back(std::move(element));
        Accept(",");
      }
      return operand;
    }
    if (Accept("[")) return Address();
    if (Accept("!")) {
      ATUNNER_TRY(operand, ParseOperand(function));
      operand.negated = true;
      return operand;
    }
    const std::string_view token = Peek();
    if (token.empty()) return Bad("expected an operand");
    if (token == "_") {
      Next();
      if (Accept("|")) ATUNNER_RETURN_IF_ERROR(Second(operand));
      return operand;
    }
    if (token == "-" && IsRegister(at_ + 1)) {
      Next();
      ATUNNER_TRY(operand, ParseOperand(function));
      operand.minus = true;
      return operand;
    }
    if (std::isdigit(static_cast<unsigned char>(token[0])) || token == "-" || token == kWarpSize) return Immediate();
    if (const size_t point = PartOf(token); point != std::string_view::npos) {
      operand.kind = Operand::Kind::kRegister;
      operand.reg = registers_.find(std::string(token.substr(0, point)))->second;
      operand.part = token.substr(point + 1);
      Next();
      return operand;
    }
    if (const auto found = registers_.find(std::string(token)); found != registers_.end()) {
      Next();
      operand.kind = Operand::Kind::kRegister;
      operand.reg = found->second;
      if (Accept("|")) ATUNNER_RETURN_IF_ERROR(Second(operand));
      return operand;
    }
    if (!IsWordStart(token[0])) return Bad("unexpected '" + std::string(token) + "'");
    operand.kind = IsSpecial(token) ? Operand::Kind::kSpecial : Operand::Kind::kSymbol;
    if (operand.kind == Operand::Kind::kSymbol && token.starts_with('%'))
      return Bad("unknown register '" + std::string(token) + "'");
    operand.name = Renamed(Next());
    if (operand.kind == Operand::Kind::kSymbol && Accept("+")) {
      ATUNNER_TRY(operand.bits, Number());
    }
    return operand;
  }

  bool IsRegister(size_t at) const {
    return at < tokens_.size() &&
           (registers_.contains(std::string(tokens_[at].text)) || PartOf(tokens_[at].text) != std::string_view::npos);
  }

  /// Where the point of "%r1.b0" or "%r1.h10" stands, or npos.
  size_t PartOf(std::string_view token) const {
    const size_t point = token.rfind('.');
    if (point == std::string_view::npos || point + 2 >= token.size()) return std::string_view::npos;
    const std::string_view part = token.substr(point + 1);
    const bool named = (part[0] == 'b' || part[0] == 'h') &&
                       part.find_first_not_of("01234567", 1) == std::string_view::npos && part.size() <= 5;
    return named && registers_.contains(std::string(token.substr(0, point))) ? point : std::string_view::npos;
  }

  /// The part of a destination pair behind the bar.
  Status Second(Operand& operand) {
    const std::string_view second = Next();
    if (second == "_") return {};
    const auto at = registers_.find(std::string(second));
    if (at == registers_.end()) return Bad("unknown register '" + std::string(second) + "'");
    operand.second = at->second;
    return {};
  }

  /// "[%rd1+16]", "[name+4]", "[%rd1]", "[16]", "[tensor, {x, y}]" (elements)
  Result<Operand> Address() {
    Operand operand;
    operand.kind = Operand::Kind::kAddress;
    const std::string_view token = Peek();
    if (const auto found = registers_.find(std::string(token)); found != registers_.end()) {
      Next();
      operand.reg = found->second;
    } else if (!token.empty() && IsWordStart(token[0])) {
      operand.name = Renamed(Next());
    } else {
      ATUNNER_TRY(const Operand absolute, Immediate());
      operand.bits = absolute.bits;
    }
    while (Peek() == "+" || Peek() == "-") {
      const bool minus = Next() == "-";
      ATUNNER_TRY(const Operand offset, Immediate());
      operand.bits += minus ? ~offset.bits + 1 : offset.bits;
    }
    while (Accept(",")) {
      ATUNNER_TRY(Operand element, ParseOperand(Function{}));
      operand.elements.push_back(std::move(element));
    }
    if (!Accept("]")) return Bad("expected ']'");
    return operand;
  }

  Result<Operand> Immediate() {
    Operand operand;
    operand.kind = Operand::Kind::kImmediate;
    const bool minus = Accept("-");
    std::string token(Next());
    if (token == kWarpSize) token = "32";
    if (token.empty() || !std::isdigit(static_cast<unsigned char>(token[0]))) return Bad("expected a number");
    if (token.size() == 10 && (token.starts_with("0f") || token.starts_with("0F"))) {
      operand.is_float = operand.is_single = true;
      operand.bits = std::strtoul(token.c_str() + 2, nullptr, 16) ^ (minus ? 0x80000000u : 0u);
    } else if (token.size() == 18 && (token.starts_with("0d") || token.starts_with("0D"))) {
      operand.is_float = true;
      operand.bits = std::strtoull(token.c_str() + 2, nullptr, 16) ^ (minus ? uint64_t{1} << 63 : 0);
    } else if (token.find('.') != std::string::npos) {
      operand.is_float = true;
      operand.bits = std::bit_cast<uint64_t>(std::strtod(token.c_str(), nullptr) * (minus ? -1 : 1));
    } else {
      const uint64_t magnitude = token.starts_with("0b") ? std::strtoull(token.c_str() + 2, nullptr, 2)
                                                         : std::strtoull(token.c_str(), nullptr, 0);
      operand.bits = minus ? ~magnitude + 1 : magnitude;
    }
    return operand;
  }

  Result<uint64_t> Number() {
    ATUNNER_TRY(const Operand value, Immediate());
    return value.bits;
  }

  Status ResolveLabels(Function& function) {
    for (const auto& [index, inner] : branches_) {
      std::string& name = function.body[index].operands[0].name;
      uint32_t scope = inner;
      while (scope != 0 && !function.labels.contains(InScope(name, scope))) scope = scope_parents_[scope];
      name = InScope(name, scope);
    }
    branches_.clear();
    for (const Instruction& instruction : function.body) {
      if (instruction.opcode != "bra") continue;
      if (instruction.operands.size() != 1 || !function.labels.contains(instruction.operands[0].name)) {
        return Invalid("branch to an unknown label", "PTX line " + std::to_string(instruction.line));
      }
    }
    return {};
  }

  bool End() const { return at_ >= tokens_.size(); }
  std::string_view Peek() const { return End() ? std::string_view{} : tokens_[at_].text; }
  std::string_view Next() { return End() ? std::string_view{} : tokens_[at_++].text; }
  bool Accept(std::string_view text) {
    if (Peek() != text) return false;
    ++at_;
    return true;
  }
  std::unexpected<Error> Bad(std::string what) const {
    const uint32_t line = tokens_.empty() ? 0 : tokens_[std::min(at_, tokens_.size() - 1)].line;
    return Invalid(std::move(what), "PTX line " + std::to_string(line));
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  ValidModule module_;
  RegisterMap registers_;
  std::vector<Variable> module_shared_;
  std::vector<std::string> extern_shared_;
  uint32_t extern_align_ = 16;
  bool extern_ = false;
  Type last_type_ = Type::kB8;
  uint64_t element_bytes_ = 1;
  uint32_t source_file_ = 0;
  uint32_t source_line_ = 0;
  int operand_depth_ = 0;
  uint32_t scope_ = 0;
  std::vector<uint32_t> scope_parents_{0};
  std::vector<Hidden> undo_;
  std::vector<size_t> undo_starts_;
  std::unordered_map<std::string, std::string> renamed_;
  std::vector<std::pair<size_t, uint32_t>> branches_;  ///< instructions inside scopes whose label is not yet resolved
};

Result<ValidModule> Parse(std::string_view text) {
  ATUNNER_TRY(std::vector<Token> tokens, Lexer(text).Run());
  return Parser(std::move(tokens)).Run();
}

}  // namespace atunner::ptx
