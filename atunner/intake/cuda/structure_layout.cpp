#include "atunner/intake/cuda/structure_layout.h"

#include "atunner/intake/expression_text.h"
#include "atunner/intake/value_list.h"

namespace atunner {
namespace {

constexpr int64_t kMostElements = 256;  // per array
constexpr size_t kMostMembers = 512;

/// The layout of a vector type with 2 to 4 lanes.
StructureLayout VectorOf(const std::string& element, int lanes) {
  StructureLayout layout;
  layout.aligned = lanes != 3;
  for (int lane = 0; lane < lanes; ++lane) {
    const std::string axis(1, "xyzw"[lane]);
    layout.members.push_back({element + " ", "." + axis, "_" + axis, ""});
    layout.list += lane == 0 ? "{$" : ", $";
  }
  layout.list += "}";
  return layout;
}

/// CUDA's vector types float3, uint2, …
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
    for (int lanes = 2; lanes <= 4; ++lanes)
      all[prefix + std::to_string(lanes)] = VectorOf(element, lanes);
  }
  return all;
}

/// An expression of numbers and the file's constants, e.g. QK / 2, in the language of model/expr.
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

/// True for the "{" of a function's body.
bool IsFunctionBody(const CudaSyntax& syntax, size_t at) {
  return syntax.token(at).Is("{") &&
         (syntax.token(at - 1).Is(")") || syntax.token(at - 1).Is("const"));
}

/// True if the statement declares a function, e.g. `float length() const;`.
bool IsPrototype(const CudaSyntax& syntax, TokenRange statement) {
  for (size_t i = statement.begin; i + 1 < statement.end && !syntax.token(i).Is("="); ++i) {
    if (syntax.token(i).Is("operator")) return true;
    if (syntax.token(i).kind == Token::Kind::kWord && syntax.token(i + 1).Is("(") &&
        !syntax.token(i + 2).Is("*"))
      return !syntax.token(i).Is("__align__") && !syntax.token(i).Is("alignas");
  }
  return false;
}

/// The template arguments of a list such as "const float, 2" by parameter, with defaults; nullopt
/// if there are too many.
std::optional<std::map<std::string, std::string, std::less<>>> ArgumentsOf(
    const std::vector<TemplateParameter>& parameters, const std::string& list) {
  const CudaSyntax listed = ParseCuda(list);
  std::map<std::string, std::string, std::less<>> arguments;
  for (const TemplateParameter& parameter : parameters)
    arguments[parameter.name] = parameter.fallback;
  size_t next = 0;
  for (const TokenRange& argument : SplitArguments(listed, {0, listed.lexed.tokens.size()}, true)) {
    if (next >= parameters.size()) return std::nullopt;
    arguments[parameters[next++].name] = listed.Text(argument);
  }
  return arguments;
}

/// The array extents that end at `end`, which is moved to before them; nullopt if one is not a
/// literal.
std::optional<std::vector<int64_t>> ExtentsBefore(const CudaSyntax& syntax, size_t begin,
                                                  size_t& end) {
  std::vector<int64_t> extents;
  while (end > begin && syntax.token(end - 1).Is("]")) {
    size_t open = end - 1;
    while (open > begin && !syntax.token(open).Is("[")) --open;
    const auto extent = ExtentOf(syntax, {open + 1, end - 1});
    if (!extent) return std::nullopt;
    extents.insert(extents.begin(), *extent);
    end = open;
  }
  return extents;
}

/// True if a member of a declaration with this token cannot be passed to a kernel.
bool IsForbidden(const Token& token) {
  for (std::string_view no : {"static", "using", "typedef", "friend", "enum", "union", "struct",
                              "private", "&", ":", "(", "volatile", "operator"}) {
    if (token.Is(no)) return true;
  }
  return false;
}

std::string CommaBehind(const std::string& list) {
  return list.empty() || list.ends_with("{") ? "" : ", ";
}

/// Adds the members of a structure that is itself a member.
void AppendInner(const StructureLayout& inner, const std::string& access, const std::string& suffix,
                 StructureLayout& out) {
  out.constructed |= inner.constructed;
  out.aligned |= inner.aligned;
  for (const Member& member : inner.members)
    out.members.push_back(
        {member.declaration, access + member.access, suffix + member.suffix, member.fallback});
  out.list += CommaBehind(out.list) + inner.list;
}

/// Element `index` of an array, e.g. {"[1][2]", "_1_2"} of element 5 of int a[2][3].
std::pair<std::string, std::string> ElementAt(const std::vector<int64_t>& extents, int64_t index) {
  std::string access;
  std::string suffix;
  for (size_t axis = extents.size(); axis-- > 0; index /= extents[axis]) {
    access = "[" + std::to_string(index % extents[axis]) + "]" + access;
    suffix = "_" + std::to_string(index % extents[axis]) + suffix;
  }
  return {access, suffix};
}

}  // namespace

StructureLayouts::StructureLayouts(const CudaSyntax& syntax) : syntax_(syntax), known_(Vectors()) {
  for (size_t i = 0; i + 2 < syntax.lexed.tokens.size(); ++i) {
    const bool after_enum = i > 0 && Is(i - 1, "enum");
    if ((Is(i, "class") || Is(i, "struct")) && !after_enum) ReadStructure(i);
  }
}

bool StructureLayouts::Is(size_t i, std::string_view text) const {
  return i < syntax_.lexed.tokens.size() && syntax_.token(i).Is(text);
}

void StructureLayouts::ReadStructure(size_t keyword) {
  const bool is_class = Is(keyword, "class");
  size_t at = keyword + 1;
  while (Is(at, "__align__") || Is(at, "alignas") || Is(at, "__attribute__"))
    at = MatchingClose(syntax_, at + 1) + 1;
  const bool aligned = at != keyword + 1;
  std::string name;
  if (at < syntax_.lexed.tokens.size() && syntax_.token(at).kind == Token::Kind::kWord)
    name = syntax_.token(at++).text;
  if (!Is(at, "{")) return;  // a declaration, or a structure with a base class
  const size_t close = MatchingClose(syntax_, at);
  if (close >= syntax_.lexed.tokens.size()) return;
  if (keyword > 0 && Is(keyword - 1, "typedef") &&
      syntax_.token(close + 1).kind == Token::Kind::kWord)
    name = syntax_.token(close + 1).text;
  if (keyword > 0 && Is(keyword - 1, ">")) {
    size_t head = keyword - 1;
    while (head > 0 && !Is(head, "template")) --head;
    templates_[name] = {ParseTemplateParameters(syntax_, {head + 2, keyword - 1}),
                        {at + 1, close},
                        aligned,
                        is_class};
  } else if (!name.empty()) {
    Define(syntax_, name, {at + 1, close}, {{}, aligned, is_class, ""});
  }
}

const StructureLayout* StructureLayouts::Find(const std::string& type) const {
  const size_t colon = type.substr(0, type.find('<')).rfind("::");
  const std::string name = colon == std::string::npos ? type : type.substr(colon + 2);
  const auto found = known_.find(name);
  return found == known_.end() ? Instance(name) : &found->second;
}

/// The layout of View<const float, 2>: substitutes the arguments in the template's text and parses
/// it.
const StructureLayout* StructureLayouts::Instance(const std::string& type) const {
  const size_t open = type.find('<');
  const auto made = templates_.find(Trim(type.substr(0, open)));
  constexpr int kMostNested = 8;
  if (open == std::string::npos || !type.ends_with('>') || made == templates_.end() ||
      nested_ >= kMostNested)
    return nullptr;
  const auto arguments = ArgumentsOf(made->second.parameters,
                                     type.substr(open + 1, type.size() - open - 2));
  if (!arguments) return nullptr;
  std::string text = "{";
  for (size_t i = made->second.body.begin; i < made->second.body.end; ++i) {
    const Token& token = syntax_.token(i);
    const auto argument = arguments->find(token.text);
    text += argument == arguments->end() ? std::string(token.text) : argument->second;
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
      layout.constructed |= i < 2 || !syntax.token(i - 2).Is("~");
      i = BehindConstructor(syntax, i);
      start = i + 1;
      continue;
    }
    if (token.Is("{") || token.Is("(") || token.Is("[")) {
      const bool function = i > start && IsFunctionBody(syntax, i);
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
  // A structure without members is a function object.
  if (layout.members.empty()) layout.members.push_back({"int ", "", "_of_nothing", ""});
  known_[name] = std::move(layout);
}

/// The last token of the constructor whose parameters open at `open`.
size_t StructureLayouts::BehindConstructor(const CudaSyntax& syntax, size_t open) const {
  const size_t close = MatchingClose(syntax, open);
  const TokenRange list = InitialisersBehind(syntax, close);
  size_t at = list.empty() ? close + 1 : list.end;
  while (at < syntax.lexed.tokens.size() && !syntax.token(at).Is("{") && !syntax.token(at).Is(";"))
    ++at;
  return at < syntax.lexed.tokens.size() && syntax.token(at).Is("{") ? MatchingClose(syntax, at)
                                                                     : at;
}

/// Reads the members of a declaration such as `const float *a, *b;` or `int size[3] = {…};`; false
/// if they cannot be passed to a kernel one by one.
bool StructureLayouts::Declaration(const CudaSyntax& syntax, TokenRange statement,
                                   StructureLayout& out) const {
  std::string type;  // shared by all names of the declaration
  bool first = true;
  for (const TokenRange& piece : SplitArguments(syntax, statement, true)) {
    size_t end = piece.begin;
    while (end < piece.end && !syntax.token(end).Is("=") && !syntax.token(end).Is("{")) ++end;
    const size_t value = end < piece.end && syntax.token(end).Is("=") ? end + 1 : end;
    const auto extents = ExtentsBefore(syntax, piece.begin, end);
    if (!extents) return false;
    if (end == piece.begin || syntax.token(end - 1).kind != Token::Kind::kWord) return false;
    const std::string name(syntax.token(end - 1).text);
    std::string stars;
    for (size_t i = piece.begin; i + 1 < end; ++i) {
      const Token& token = syntax.token(i);
      if (IsForbidden(token)) return false;
      const bool of_name = token.Is("*") || token.Is("__restrict__") || !stars.empty();
      (of_name || !first ? stars : type) += std::string(token.text) + (token.Is("::") ? "" : " ");
    }
    if (type.empty()) return false;
    first = false;
    // Initialiser lists of arrays are left to the host's code.
    const std::string fallback = value < piece.end && extents->empty()
                                     ? std::string(syntax.Text({value, piece.end}))
                                     : "";
    Append(type + stars, name, *extents, fallback, out);
  }
  return true;
}

void StructureLayouts::Append(const std::string& declaration, const std::string& name,
                              const std::vector<int64_t>& extents, const std::string& fallback,
                              StructureLayout& out) const {
  const StructureLayout* inner = Find(declaration.substr(0, declaration.find_last_not_of(' ') + 1));
  const bool instance = templates_.contains(Trim(declaration.substr(0, declaration.find('<'))));
  if (inner == nullptr && instance && !declaration.contains('*'))
    return out.members.resize(kMostMembers + 1);
  const auto one = [&](const std::string& access, const std::string& suffix) {
    if (inner != nullptr) return AppendInner(*inner, access, suffix, out);
    out.members.push_back({declaration, access, suffix, fallback});
    out.list += CommaBehind(out.list) + "$";
  };
  if (extents.empty()) return one("." + name, "_" + name);
  int64_t count = 1;
  for (const int64_t extent : extents) count *= extent;
  if (count > kMostElements) return out.members.resize(kMostMembers + 1);
  out.list += CommaBehind(out.list) + "{";
  for (int64_t i = 0; i < count; ++i) {
    const auto [access, suffix] = ElementAt(extents, i);
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
