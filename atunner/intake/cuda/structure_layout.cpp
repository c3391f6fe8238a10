#include "atunner/intake/cuda/structure_layout.h"

#include "atunner/intake/expression_text.h"
#include "atunner/intake/value_list.h"

namespace atunner {
namespace {

constexpr int64_t kMostElements = 256;  // of an array
constexpr size_t kMostMembers = 512;

/// float3, uint2 and the rest: structures of the compiler's own.
std::map<std::string, StructureLayout, std::less<>> Vectors() {
  std::map<std::string, StructureLayout, std::less<>> all;
  const std::pair<const char*, const char*> elements[] = {{"char", "signed char"},
                                                          {"uchar", "unsigned char"},
                                                          {"short", "short"},
                                                          {"ushort", "unsigned short"},
                                                          {"int", "int"},
                                                          {"uint", "unsigned int"},
                                                          {"longlong", "long long"},
                                                          {"ulonglong", "unsigned long long"},
                                                          {"float", "float"},
                                                          {"double", "double"}};
  for (const auto& [prefix, element] : elements) {
    for (int lanes = 2; lanes <= 4; ++lanes) {
      StructureLayout layout;
      layout.aligned = lanes != 3;
      for (int lane = 0; lane < lanes; ++lane) {
        const std::string axis(1, "xyzw"[lane]);
        layout.members.push_back({std::string(element) + " ", "." + axis, "_" + axis, ""});
        layout.list += lane == 0 ? "{$" : ", $";
      }
      layout.list += "}";
      all[prefix + std::to_string(lanes)] = std::move(layout);
    }
  }
  return all;
}

/// Of numbers and the file's constants, in the language of model/expr: QK / 2.
std::string Written(const CudaSyntax& syntax, std::string_view text, int depth) {
  constexpr int kMostNested = 8;
  std::string out;
  for (const Token& token : Lex(text).tokens) {
    constexpr size_t kLongest = 1000;
    if (out.size() > kLongest) break;
    const FileConstant* constant = depth < kMostNested ? syntax.FindConstant(token.text) : nullptr;
    if (constant != nullptr) {
      out += "(" + Written(syntax, constant->value, depth + 1) + ")";
    } else {
      out += token.Is("/") ? "//" : token.text;
    }
    out += ' ';
  }
  return out;
}

std::optional<int64_t> ExtentOf(const CudaSyntax& syntax, TokenRange range) {
  const auto number = LiteralOf(Written(syntax, syntax.Text(range), 0));
  return number && *number > 0 && *number <= kMostElements ? number : std::nullopt;
}

bool IsAccess(const Token& token) {
  return token.Is("public") || token.Is("private") || token.Is("protected");
}

/// Is the statement the declaration of a function: `float length() const;`?
bool IsPrototype(const CudaSyntax& syntax, TokenRange statement) {
  for (size_t i = statement.begin; i + 1 < statement.end && !syntax.token(i).Is("="); ++i) {
    if (syntax.token(i).Is("operator")) return true;
    if (syntax.token(i).kind == Token::Kind::kWord && syntax.token(i + 1).Is("(") &&
        !syntax.token(i + 2).Is("*"))
      return !syntax.token(i).Is("__align__") && !syntax.token(i).Is("alignas");
  }
  return false;
}

}  // namespace

StructureLayouts::StructureLayouts(const CudaSyntax& syntax) : syntax_(syntax), known_(Vectors()) {
  const auto is = [&](size_t i, std::string_view text) {
    return i < syntax.lexed.tokens.size() && syntax.token(i).Is(text);
  };
  for (size_t i = 0; i + 2 < syntax.lexed.tokens.size(); ++i) {
    const bool is_class = is(i, "class");
    if ((!is_class && !is(i, "struct")) || (i > 0 && is(i - 1, "enum"))) continue;
    size_t at = i + 1;
    while (is(at, "__align__") || is(at, "alignas") || is(at, "__attribute__"))
      at = MatchingClose(syntax, at + 1) + 1;
    const bool aligned = at != i + 1;
    std::string name;
    if (at < syntax.lexed.tokens.size() && syntax.token(at).kind == Token::Kind::kWord)
      name = syntax.token(at++).text;
    if (!is(at, "{")) continue;  // one with a base class among them
    const size_t close = MatchingClose(syntax, at);
    if (close >= syntax.lexed.tokens.size()) continue;
    if (i > 0 && is(i - 1, "typedef") && syntax.token(close + 1).kind == Token::Kind::kWord)
      name = syntax.token(close + 1).text;
    if (i > 0 && is(i - 1, ">")) {
      size_t head = i - 1;
      while (head > 0 && !is(head, "template")) --head;
      templates_[name] = {
          ParseTemplateParameters(syntax, {head + 2, i - 1}), {at + 1, close}, aligned, is_class};
    } else if (!name.empty()) {
      Define(syntax, name, {at + 1, close}, {{}, aligned, is_class, ""});
    }
  }
}

const StructureLayout* StructureLayouts::Find(const std::string& type) const {
  const size_t colon = type.substr(0, type.find('<')).rfind("::");
  const std::string name = colon == std::string::npos ? type : type.substr(colon + 2);
  const auto found = known_.find(name);
  return found == known_.end() ? Instance(name) : &found->second;
}

/// The layout of View<const float, 2>: of the template's text with its arguments.
const StructureLayout* StructureLayouts::Instance(const std::string& type) const {
  const size_t open = type.find('<');
  const auto made = templates_.find(Trim(type.substr(0, open)));
  constexpr int kMostNested = 8;
  if (open == std::string::npos || !type.ends_with('>') || made == templates_.end() ||
      nested_ >= kMostNested)
    return nullptr;
  const std::string list = type.substr(open + 1, type.size() - open - 2);
  const CudaSyntax listed = ParseCuda(list);
  std::map<std::string, std::string, std::less<>> arguments;
  for (const TemplateParameter& parameter : made->second.parameters)
    arguments[parameter.name] = parameter.fallback;
  size_t next = 0;
  for (const TokenRange& argument : SplitArguments(listed, {0, listed.lexed.tokens.size()}, true)) {
    if (next >= made->second.parameters.size()) return nullptr;
    arguments[made->second.parameters[next++].name] = listed.Text(argument);
  }
  std::string text = "{";
  for (size_t i = made->second.body.begin; i < made->second.body.end; ++i) {
    const Token& token = syntax_.token(i);
    const auto argument = arguments.find(token.text);
    text += argument == arguments.end() ? std::string(token.text) : argument->second;
    text += token.kind == Token::Kind::kDirective ? "\n" : " ";
  }
  CudaSyntax body = ParseCuda(text);
  body.constants = syntax_.constants;
  ++nested_;
  Define(body, type, {1, body.lexed.tokens.size()},
         {{}, made->second.aligned, made->second.is_class, ""});
  --nested_;
  const auto found = known_.find(type);
  return found == known_.end() ? nullptr : &found->second;
}

void StructureLayouts::Define(const CudaSyntax& syntax, const std::string& name, TokenRange body,
                              StructureLayout layout) const {
  const std::string constructor = name.substr(0, name.find('<'));
  size_t start = body.begin;
  for (size_t i = body.begin; i < body.end; ++i) {
    const Token& token = syntax.token(i);
    if (token.Is("virtual")) return;
    if (token.Is(":") && i > start && IsAccess(syntax.token(i - 1))) {
      layout.constructed |= !syntax.token(i - 1).Is("public");
      start = i + 1;
    }
    if (token.Is("(") && i > start && syntax.token(i - 1).Is(constructor)) {
      const bool makes = i < 2 || !syntax.token(i - 2).Is("~");
      layout.constructed |= makes;
      i = BehindConstructor(syntax, i);
      start = i + 1;
      continue;
    }
    if (token.Is("{") || token.Is("(") || token.Is("[")) {
      const bool function = token.Is("{") && i > start && !syntax.token(i - 1).Is("=") &&
                            (syntax.token(i - 1).Is(")") || syntax.token(i - 1).Is("const"));
      i = MatchingClose(syntax, i);
      if (function) start = i + 1;
      continue;
    }
    if (token.kind == Token::Kind::kDirective && !token.text.starts_with("#line")) return;
    if (!token.Is(";")) continue;
    if (!IsPrototype(syntax, {start, i}) && !Declaration(syntax, {start, i}, layout)) return;
    start = i + 1;
  }
  if (layout.members.size() > kMostMembers) return;
  layout.list = "{" + layout.list + "}";
  // a function object
  if (layout.members.empty()) layout.members.push_back({"int ", "", "_of_nothing", ""});
  known_[name] = std::move(layout);
}

/// The last token of the constructor whose parameters open at a token.
size_t StructureLayouts::BehindConstructor(const CudaSyntax& syntax, size_t open) const {
  const size_t close = MatchingClose(syntax, open);
  const TokenRange list = InitialisersBehind(syntax, close);
  size_t at = list.empty() ? close + 1 : list.end;
  while (at < syntax.lexed.tokens.size() && !syntax.token(at).Is("{") && !syntax.token(at).Is(";"))
    ++at;
  return at < syntax.lexed.tokens.size() && syntax.token(at).Is("{") ? MatchingClose(syntax, at)
                                                                     : at;
}

/// `const float *a, *b;`, `int size[3] = {…};`; false for what is no member that could be passed.
bool StructureLayouts::Declaration(const CudaSyntax& syntax, TokenRange statement,
                                   StructureLayout& out) const {
  std::string type;  // of all names
  bool first = true;
  for (const TokenRange& piece : SplitArguments(syntax, statement, true)) {
    size_t end = piece.begin;
    while (end < piece.end && !syntax.token(end).Is("=") && !syntax.token(end).Is("{")) ++end;
    const size_t value = end < piece.end && syntax.token(end).Is("=") ? end + 1 : end;
    std::vector<int64_t> extents;
    while (end > piece.begin && syntax.token(end - 1).Is("]")) {
      size_t open = end - 1;
      while (open > piece.begin && !syntax.token(open).Is("[")) --open;
      const auto extent = ExtentOf(syntax, {open + 1, end - 1});
      if (!extent) return false;
      extents.insert(extents.begin(), *extent);
      end = open;
    }
    if (end == piece.begin || syntax.token(end - 1).kind != Token::Kind::kWord) return false;
    const std::string name(syntax.token(end - 1).text);
    std::string stars;
    for (size_t i = piece.begin; i + 1 < end; ++i) {
      const Token& token = syntax.token(i);
      for (std::string_view no : {"static", "using", "typedef", "friend", "enum", "union", "struct",
                                  "private", "&", ":", "(", "volatile", "operator"}) {
        if (token.Is(no)) return false;
      }
      const bool of_name = token.Is("*") || token.Is("__restrict__") || !stars.empty();
      (of_name || !first ? stars : type) += std::string(token.text) + (token.Is("::") ? "" : " ");
    }
    if (type.empty()) return false;
    first = false;
    // Text() keeps what an initialiser is written like; a list of an array's is left to the host's
    // code.
    const std::string fallback = value < piece.end && extents.empty()
                                     ? std::string(syntax.Text({value, piece.end}))
                                     : "";
    Append(type + stars, name, extents, fallback, out);
  }
  return true;
}

void StructureLayouts::Append(const std::string& declaration, const std::string& name,
                              const std::vector<int64_t>& extents, const std::string& fallback,
                              StructureLayout& out) const {
  const auto comma = [&] { return out.list.empty() || out.list.ends_with("{") ? "" : ", "; };
  const StructureLayout* inner = Find(declaration.substr(0, declaration.find_last_not_of(' ') + 1));
  const bool instance = templates_.contains(Trim(declaration.substr(0, declaration.find('<'))));
  if (inner == nullptr && instance && !declaration.contains('*'))
    return out.members.resize(kMostMembers + 1);
  const auto one = [&](const std::string& access, const std::string& suffix) {
    if (inner == nullptr) {
      out.members.push_back({declaration, access, suffix, fallback});
      out.list += std::string(comma()) + "$";
      return;
    }
    out.constructed |= inner->constructed;
    out.aligned |= inner->aligned;
    for (const Member& member : inner->members)
      out.members.push_back(
          {member.declaration, access + member.access, suffix + member.suffix, member.fallback});
    out.list += comma() + inner->list;
  };
  if (extents.empty()) return one("." + name, "_" + name);
  int64_t count = 1;
  for (const int64_t extent : extents) count *= extent;
  if (count > kMostElements) return out.members.resize(kMostMembers + 1);
  out.list += std::string(comma()) + "{";
  for (int64_t i = 0; i < count; ++i) {
    std::string access;
    std::string suffix;
    int64_t rest = i;
    for (size_t axis = extents.size(); axis-- > 0; rest /= extents[axis]) {
      access = "[" + std::to_string(rest % extents[axis]) + "]" + access;
      suffix = "_" + std::to_string(rest % extents[axis]) + suffix;
    }
    one("." + name + access, "_" + name + suffix);
  }
  out.list += "}";
}

std::optional<CType> FloatsOf(const CudaSyntax& syntax, const std::string& type) {
  const StructureLayouts layouts(syntax);
  const StructureLayout* layout = layouts.Find(type);
  if (layout == nullptr || layout->list == "{}") return std::nullopt;
  std::optional<DType> dtype;
  for (const Member& member : layout->members) {
    const auto one = ParseCType(member.declaration);
    if (!one || one->lanes != 1 || !IsFloat(one->dtype) || (dtype && *dtype != one->dtype))
      return std::nullopt;
    dtype = one->dtype;
  }
  return CType{*dtype, static_cast<int>(layout->members.size())};
}

}  // namespace atunner
