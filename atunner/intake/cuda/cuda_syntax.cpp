#include "atunner/intake/cuda/cuda_syntax.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "atunner/intake/cuda/class_members.h"
#include "atunner/intake/cuda/launches.h"
#include "atunner/intake/expression_text.h"
#include "atunner/intake/value_list.h"

namespace atunner {
namespace {

bool IsQualifier(std::string_view word) {
  static const std::set<std::string_view> kQualifiers = {
      "const",       "volatile",        "__restrict__",
      "__restrict",  "restrict",        "__grid_constant__",
      "struct",      "register",        "static",
      "inline",      "__forceinline__", "extern",
      "constexpr",   "typename",        "class",
      "__device__",  "__host__",        "__shared__",
      "__constant__"};
  return kQualifiers.contains(word);
}

class Parser {
 public:
  explicit Parser(std::string_view source) {
    syntax_.source = source;
    syntax_.lexed = Lex(source);
  }

  CudaSyntax Run() {
    Directives();
    Scope(0, Count(), "");
    DropUsesOfDropped();
    ReadLaunches(syntax_);
    return std::move(syntax_);
  }

 private:
  size_t Count() const { return syntax_.lexed.tokens.size(); }
  const Token& At(size_t i) const { return syntax_.token(i); }
  bool Is(size_t i, std::string_view text) const { return i < Count() && At(i).Is(text); }
  bool IsWord(size_t i) const { return i < Count() && At(i).kind == Token::Kind::kWord; }

  // --- preprocessor ---

  void Directives() {
    std::string guard;  // name of the #ifndef directly before
    for (const Token& token : syntax_.lexed.tokens) {
      if (token.kind != Token::Kind::kDirective) {
        guard.clear();
        continue;
      }
      const std::string line = Trim(token.text.substr(1));
      if (line.starts_with("ifndef")) {
        guard = Trim(line.substr(6));
      } else if (line.starts_with("define")) {
        Define(token, guard);
        guard.clear();
      } else {
        guard.clear();
      }
    }
  }

  void Define(const Token& token, const std::string& guard) {
    size_t at = token.text.find("define") + 6;
    const auto skip = [&] {
      while (at < token.text.size() && (token.text[at] == ' ' || token.text[at] == '\t')) ++at;
    };
    skip();
    const size_t start = at;
    while (at < token.text.size() &&
           (std::isalnum(static_cast<unsigned char>(token.text[at])) || token.text[at] == '_'))
      ++at;
    const std::string name(token.text.substr(start, at - start));
    // A macro with parameters is not a constant.
    if (name.empty() || (at < token.text.size() && token.text[at] == '(')) return;
    skip();
    const std::string value = Trim(token.text.substr(at));
    if (value.empty()) return;
    NoteMarks(name, value);
    syntax_.constants.push_back({name, FileConstant::Kind::kMacro, value, token.offset + at,
                                 value.size(), guard == name, token.line});
  }

  /// Notes a macro that stands for attributes, e.g. #define HD __host__ __device__.
  void NoteMarks(const std::string& macro, const std::string& value) {
    for (const Token& word : Lex(value).tokens) {
      for (const char* attribute : {"__device__", "__host__", "__global__"}) {
        if (IsMarked(word, attribute)) marks_[attribute].insert(macro);
      }
    }
  }

  // --- declarations ---

  /// True if the token is the attribute or a macro that stands for it.
  bool IsMarked(const Token& token, const std::string& attribute) const {
    if (token.Is(attribute)) return true;
    const auto macros = marks_.find(attribute);
    return token.kind == Token::Kind::kWord && macros != marks_.end() &&
           macros->second.contains(token.text);
  }

  struct Marks {
    bool global = false, device = false, host = false, is_constexpr = false;
  };

  /// Declarations in [begin, end) inside namespace `path`.
  void Scope(size_t begin, size_t end, const std::string& path) {
    size_t i = begin;
    while (i < end) {
      if (At(i).kind == Token::Kind::kDirective || Is(i, ";") || Is(i, "}")) {
        ++i;
      } else if (Is(i, "namespace") || (Is(i, "inline") && Is(i + 1, "namespace"))) {
        i = Namespace(i, end, path);
      } else if (Is(i, "extern") && i + 2 < end && At(i + 1).kind == Token::Kind::kText &&
                 Is(i + 2, "{")) {
        const size_t close = MatchingClose(syntax_, i + 2);
        Scope(i + 3, std::min(close, end), path);
        i = close + 1;
      } else {
        i = Declaration(i, end, path);
      }
    }
  }

  size_t Namespace(size_t i, size_t end, const std::string& path) {
    while (i < end && !Is(i, "namespace")) ++i;
    std::string name;
    size_t at = i + 1;
    while (at < end && (IsWord(at) || Is(at, "::"))) name += At(at++).text;
    if (!Is(at, "{")) return at + 1;  // an alias
    const size_t close = std::min(MatchingClose(syntax_, at), end);
    const std::string inside = name.empty() ? path : path + name + "::";
    const NamespaceBody* around = syntax_.NamespaceAt(at);
    syntax_.namespaces.push_back(
        {{at + 1, close}, inside, name.empty() || (around != nullptr && around->anonymous)});
    Scope(at + 1, close, inside);
    return close + 1;
  }

  /// The token that ends the head of a declaration: "{", ";" or the "=" of a variable. Sets
  /// `open_paren` to the parenthesis of a parameter list, the first "word(" that is not an
  /// attribute.
  size_t HeadEnd(size_t begin, size_t end, size_t& open_paren, Marks& marks) const {
    size_t at = begin;
    for (; at < end; ++at) {
      const Token& token = At(at);
      if (token.kind == Token::Kind::kDirective) continue;
      Mark(token, marks);
      if (token.Is("=") && open_paren == SIZE_MAX) return at;
      if (token.Is("{") || token.Is(";")) return at;
      if (!token.Is("(")) continue;
      if (at > begin && IsWord(at - 1) && !IsAttribute(At(at - 1).text) && open_paren == SIZE_MAX)
        open_paren = at;
      if (at > begin && IsWord(at - 1) && At(at - 1).Is("operator")) open_paren = at;
      at = MatchingClose(syntax_, at);
      if (const TokenRange list = InitialisersBehind(syntax_, at);
          open_paren != SIZE_MAX && !list.empty())
        at = list.end - 1;
    }
    return at;
  }

  /// Reads one declaration or definition from its first token; returns the token after it.
  size_t Declaration(size_t begin, size_t end, const std::string& path) {
    size_t i = begin;
    std::vector<TemplateParameter> templates;
    while (Is(i, "template") && Is(i + 1, "<")) {
      const size_t close = MatchingClose(syntax_, i + 1);
      templates = ParseTemplateParameters(syntax_, {i + 2, close});
      i = close + 1;
    }
    Marks marks;
    size_t open_paren = SIZE_MAX;
    const size_t at = HeadEnd(i, end, open_paren, marks);
    if (at >= end) return end;
    if (Is(at, "{") && open_paren != SIZE_MAX)
      return Function(begin, i, open_paren, at, end, path, std::move(templates), marks);
    return Other(begin, i, at, end, marks.device || marks.is_constexpr);
  }

  void Mark(const Token& token, Marks& marks) const {
    marks.device |= IsMarked(token, "__device__") || token.Is("__shared__") ||
                    token.Is("__constant__") || token.Is("__managed__") || token.Is("C10_DEVICE") ||
                    token.Is("C10_HOST_DEVICE");
    marks.host |= IsMarked(token, "__host__");
    marks.global |= IsMarked(token, "__global__");
    marks.is_constexpr |= token.Is("constexpr") || token.Is("consteval");
  }

  static bool IsAttribute(std::string_view word) {
    static const std::set<std::string_view> kAttributes = {
        "__launch_bounds__", "__attribute__", "__cluster_dims__", "__maxnreg__",
        "__block_size__",    "alignas",       "__align__",        "decltype",
        "__declspec",        "noexcept",      "explicit",         "asm"};
    return kAttributes.contains(word);
  }

  size_t Function(size_t begin, size_t head, size_t open_paren, size_t brace, size_t end,
                  const std::string& path, std::vector<TemplateParameter> templates, Marks marks) {
    const size_t close = std::min(MatchingClose(syntax_, brace), end);
    const std::string name(At(open_paren - 1).text);
    const TokenRange parameters{open_paren + 1, MatchingClose(syntax_, open_paren)};
    if (marks.global) {
      KernelDefinition kernel{
          name,           path + name,        std::move(templates), Parameters(parameters),
          {begin, brace}, {brace + 1, close}, At(head).line};
      syntax_.kernels.push_back(std::move(kernel));
    } else if (!marks.device || marks.host) {
      HostFunction function{
          name, std::move(templates), parameters, {brace + 1, close}, {begin, close + 1},
          "",   marks.device};
      MemberOfClass(open_paren - 1, function);
      // A function without __device__ cannot be called by a kernel, unless it is constexpr.
      if (!marks.device && !marks.is_constexpr) syntax_.host_only.push_back(function.whole);
      syntax_.functions.push_back(std::move(function));
    }
    return close + 1;
  }

  /// Sets the class of a member function that is defined outside of it and whose name is at the
  /// token `name`: `void Solver::step(…) { … }`, `Buffer<T>::Buffer(…) : … { … }`.
  void MemberOfClass(size_t name, HostFunction& function) const {
    if (name < 2 || !Is(name - 1, "::")) return;
    size_t at = name - 2;
    if (Is(at, ">")) {
      while (at > function.whole.begin && !Is(at, "<")) --at;
      --at;
    }
    if (!IsWord(at)) return;
    function.of_class = At(at).text;
  }

  /// A declaration without a function body: variable, type, using, prototype.
  size_t Other(size_t begin, size_t head, size_t at, size_t end, bool device) {
    size_t stop = at;
    while (stop < end && !Is(stop, ";"))
      stop = IsOpening(stop) ? MatchingClose(syntax_, stop) + 1 : stop + 1;
    stop = std::min(stop + 1, end);
    const TokenRange whole{begin, stop};
    if (const NamespaceBody* around = syntax_.NamespaceAt(head))
      Qualify(around->path, {head, at}, stop);
    if (Is(head, "using") || Is(head, "typedef")) {
      Alias(head, stop);
    } else if (Is(head, "enum")) {
      Enumerators(head, {at, stop});
    } else if (Is(at, "{") && IsClass({head, at})) {
      Class(begin, head, at);
    } else {
      Variable(head, stop);
    }
    if (!device && IsHostOnly(whole)) {
      DropForDevice(whole);
    } else if (!device) {
      kept_.push_back(whole);
    }
    return stop;
  }

  /// Notes the full name of a type that is declared in a namespace.
  void Qualify(const std::string& path, TokenRange head, size_t stop) {
    size_t name = head.begin + 1;  // using Name = …; struct Name; enum class Name
    if (Is(head.begin, "typedef")) name = stop >= 2 ? stop - 2 : stop;
    const bool type = Is(head.begin, "using") || Is(head.begin, "typedef") ||
                      Is(head.begin, "struct") || Is(head.begin, "class") || Is(head.begin, "enum");
    while (Is(name, "class") || Is(name, "struct")) ++name;
    if (type && IsWord(name) && !path.empty())
      syntax_.qualified.try_emplace(std::string(At(name).text), path + std::string(At(name).text));
  }

  void DropForDevice(TokenRange declaration) {
    syntax_.host_only.push_back(declaration);
    for (size_t i = declaration.begin; i + 1 < declaration.end && !Is(i, "{") && !Is(i, ";"); ++i) {
      if ((Is(i, "class") || Is(i, "struct") || Is(i, "using")) && IsWord(i + 1))
        dropped_.insert(At(i + 1).text);
    }
  }

  /// Drops the declarations that use a dropped class, until there are no more.
  void DropUsesOfDropped() {
    for (size_t before = SIZE_MAX; before != dropped_.size();) {
      before = dropped_.size();
      std::erase_if(kept_, [&](TokenRange declaration) {
        for (size_t i = declaration.begin; i < declaration.end; ++i) {
          if (Is(i, "__device__")) return false;
          if (!IsWord(i) || !dropped_.contains(At(i).text)) continue;
          DropForDevice(declaration);
          return true;
        }
        return false;
      });
    }
  }

  bool IsClass(TokenRange head) const {
    for (size_t i = head.begin; i < head.end; ++i) {
      if (Is(i, "struct") || Is(i, "class")) return true;
      if (Is(i, "=") || Is(i, "union")) return false;
    }
    return false;
  }

  /// Reads a class. Its host-only member functions are dropped, also if the class itself is kept
  /// for the device.
  void Class(size_t begin, size_t head, size_t brace) {
    const size_t first = syntax_.functions.size();
    ReadClass(syntax_, {begin, head}, brace);
    for (size_t f = first; f < syntax_.functions.size(); ++f) {
      const TokenRange whole = syntax_.functions[f].whole;
      if (!syntax_.functions[f].on_device && IsHostOnly(whole)) syntax_.host_only.push_back(whole);
    }
  }

  bool IsOpening(size_t i) const { return Is(i, "(") || Is(i, "[") || Is(i, "{"); }

  /// True if a declaration uses the host's standard library or the CUDA runtime API, which NVRTC
  /// does not have.
  bool IsHostOnly(TokenRange range) const {
    bool host = false;
    for (size_t i = range.begin; i < range.end; ++i) {
      const std::string_view text = At(i).text;
      if (text == "__device__" || text == "__constant__" || text == "__global__") return false;
      host |= IsHostStd(i, range.end) || IsRuntimeApi(i) || IsTriple(syntax_, i, "<");
      host |= text == "FILE" || text == "thrust" || text == "ofstream" || text == "ifstream";
    }
    return host;
  }

  /// True at a name of the standard library that NVRTC does not have, and at `using namespace
  /// std;`.
  bool IsHostStd(size_t i, size_t end) const {
    static const std::set<std::string_view> kDeviceStd = {
        "size_t",    "numeric_limits", "integral_constant", "is_same",
        "is_same_v", "conditional_t",  "enable_if_t",       "int32_t",
        "uint32_t",  "int64_t",        "uint64_t",          "uint8_t",
        "int8_t"};
    if (At(i).text != "std") return false;
    if (Is(i + 1, "::") && i + 2 < end) return !kDeviceStd.contains(At(i + 2).text);
    return Is(i + 1, ";");
  }

  /// True at a name of the CUDA runtime such as cudaMalloc, but not at the namespace cuda::.
  bool IsRuntimeApi(size_t i) const {
    const std::string_view text = At(i).text;
    return text.starts_with("cuda") && text.size() > 4 &&
           (std::isupper(static_cast<unsigned char>(text[4])) || text == "cuda_stream") &&
           !Is(i + 1, "::");
  }

  void Alias(size_t head, size_t stop) {
    if (Is(head, "using")) {
      if (!IsWord(head + 1) || !Is(head + 2, "=")) return;
      syntax_.aliases[std::string(At(head + 1).text)] = std::string(
          syntax_.Text({head + 3, stop - 1}));
    } else if (stop >= head + 4 && IsWord(stop - 2)) {
      const std::string_view type = syntax_.Text({head + 1, stop - 2});
      if (!type.contains('{')) syntax_.aliases[std::string(At(stop - 2).text)] = std::string(type);
    }
  }

  /// Notes the type of an enum's values, int if it names none.
  void EnumAlias(size_t head, size_t brace) {
    size_t name = head + 1;
    while (Is(name, "class") || Is(name, "struct")) ++name;
    if (IsWord(name)) {
      const std::string type = Is(name + 1, ":") ? std::string(syntax_.Text({name + 2, brace}))
                                                 : "int";
      syntax_.aliases[std::string(At(name).text)] = type;
    }
  }

  /// Reads an enum, e.g. enum class Mode : int8_t { kNone, kRelu = 4 };
  void Enumerators(size_t head, TokenRange range) {
    EnumAlias(head, range.begin);
    int64_t next = 0;
    for (const TokenRange& piece :
         SplitArguments(syntax_, {range.begin + 1, MatchingClose(syntax_, range.begin)}, true)) {
      const size_t value = piece.begin + 2;
      if (!IsWord(piece.begin)) continue;
      if (value + 1 == piece.end && At(value).kind == Token::Kind::kNumber) {
        AddVariable(piece.begin, {value, piece.end});
        next = LiteralOf(std::string(At(value).text)).value_or(next) + 1;
      } else if (piece.begin + 1 == piece.end && next < INT32_MAX) {
        const Token& token = At(piece.begin);
        syntax_.constants.push_back({std::string(token.text), FileConstant::Kind::kEnumerator,
                                     std::to_string(next++), token.offset, 0, false, token.line});
      }
    }
  }

  /// Reads constants, e.g. constexpr int A = 4, B = 2;
  void Variable(size_t head, size_t stop) {
    bool constant = false;
    for (size_t i = head; i < stop && !Is(i, "="); ++i)
      constant |= Is(i, "constexpr") || Is(i, "const");
    if (stop == 0) return;
    if (!constant) return HostVariables(head, stop);
    for (const TokenRange& piece : SplitArguments(syntax_, {head, stop - 1}, true)) {
      for (size_t i = piece.begin; i + 1 < piece.end; ++i) {
        if (!IsWord(i) || !Is(i + 1, "=")) continue;
        AddVariable(i, {i + 2, piece.end});
        break;
      }
    }
  }

  /// Reads file-level variables, e.g. static float *d_x = nullptr, *d_y;
  void HostVariables(size_t head, size_t stop) {
    TokenRange type;
    for (const TokenRange& piece : SplitArguments(syntax_, {head, stop - 1}, true)) {
      size_t end = piece.begin;
      while (end < piece.end && !Is(end, "=") && !IsOpening(end)) ++end;
      if (Is(end, "(") || end == piece.begin || !IsWord(end - 1)) return;
      if (type.empty()) type = {piece.begin, end - 1};
      if (type.empty()) return;
      const TokenRange value = Is(end, "=") ? TokenRange{end + 1, piece.end} : TokenRange{};
      syntax_.variables.push_back({std::string(At(end - 1).text), type, value});
    }
  }

  void AddVariable(size_t name, TokenRange value) {
    if (value.empty()) return;
    const std::string_view text = syntax_.Text(value);
    syntax_.constants.push_back({std::string(At(name).text), FileConstant::Kind::kVariable,
                                 std::string(text), At(value.begin).offset, text.size(), false,
                                 At(name).line});
  }

  std::vector<KernelParameter> Parameters(TokenRange range) const {
    std::vector<KernelParameter> all;
    for (const TokenRange& piece : SplitArguments(syntax_, range, true)) {
      KernelParameter parameter;
      std::vector<std::string> words = ParameterWords(piece, parameter);
      if (words.empty() || (words.size() == 1 && words[0] == "void")) continue;
      if (words.size() > 1) {
        parameter.name = words.back();
        words.pop_back();
      }
      for (const std::string& word : words)
        parameter.type += (parameter.type.empty() ? "" : " ") + word;
      all.push_back(std::move(parameter));
    }
    return all;
  }

  /// The words of type and name of one parameter, without qualifiers and attributes; sets `pointer`
  /// and `is_const`.
  std::vector<std::string> ParameterWords(TokenRange piece, KernelParameter& parameter) const {
    std::vector<std::string> words;
    for (size_t i = piece.begin; i < piece.end && !Is(i, "="); ++i) {
      if (Is(i, "*")) {
        parameter.table |= parameter.pointer;
        parameter.pointer = true;
      } else if (Is(i, "[")) {
        parameter.pointer = true;
        i = MatchingClose(syntax_, i);
      } else if (Is(i, "const")) {
        parameter.is_const |= !parameter.pointer;
      } else if (Is(i, "(") && i > piece.begin) {  // __attribute__((...)), __align__(8)
        i = MatchingClose(syntax_, i);
      } else if (Is(i, "::") && !words.empty() && IsWord(i + 1)) {
        words.back() += "::" + std::string(At(++i).text);
      } else if (IsWord(i) && !IsQualifier(At(i).text) && !IsAttribute(At(i).text)) {
        words.emplace_back(At(i).text);
      } else if (Is(i, "<") && !words.empty()) {
        const size_t close = MatchingClose(syntax_, i);
        words.back() += std::string(syntax_.Text({i, std::min(close + 1, piece.end)}));
        i = close;
      }
    }
    return words;
  }

  CudaSyntax syntax_;
  std::vector<TokenRange> kept_;        ///< namespace-level declarations that the device keeps
  std::set<std::string_view> dropped_;  ///< classes and aliases that it does not
  /// Macros that stand for an attribute, by attribute
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> marks_;
};

}  // namespace

CudaSyntax ParseCuda(std::string_view source) { return Parser(source).Run(); }

}  // namespace atunner
