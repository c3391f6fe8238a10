#include "atunner/intake/rewrite/structure_members.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "atunner/intake/cuda/cuda_syntax.h"
#include "atunner/intake/cuda/kernel_body.h"
#include "atunner/intake/cuda/structure_layout.h"
#include "atunner/intake/rewrite/source_edits.h"

namespace atunner {
namespace {

// Each step rewrites one function or kernel. The limit ends broken sources too.
constexpr int kMostSteps = 200;

/// One step of the rewriting. `names` are the host variables whose members became arguments.
class Step {
 public:
  Step(const std::string& source, std::set<std::string>& names, SourceApart& out)
      : syntax_(ParseCuda(source)), layouts_(syntax_), edits_(syntax_), names_(names), out_(out) {}

  /// The source after rewriting one kernel, host function or variable; nullopt if none is left.
  std::optional<std::string> Run() {
    const bool done = std::ranges::any_of(syntax_.kernels,
                                          [&](const auto& kernel) { return Kernel(kernel); }) ||
                      std::ranges::any_of(
                          syntax_.functions,
                          [&](const auto& f) { return !f.on_device && Parameters(f); }) ||
                      std::ranges::any_of(syntax_.functions, [&](const auto& f) {
                        return !f.on_device && Variables(f);
                      });
    return done && !edits_.empty() ? std::optional(edits_.Apply()) : std::nullopt;
  }

 private:
  bool Is(size_t i, std::string_view text) const {
    return i < Count() && syntax_.token(i).Is(text);
  }
  bool IsWord(size_t i) const { return i < Count() && syntax_.token(i).kind == Token::Kind::kWord; }
  size_t Count() const { return syntax_.lexed.tokens.size(); }
  std::string Word(size_t i) const { return std::string(syntax_.token(i).text); }

  /// The token after a type's name and its template arguments.
  size_t BehindType(size_t at) const {
    return Is(at + 1, "<") ? MatchingClose(syntax_, at + 1) + 1 : at + 1;
  }
  std::string Type(size_t at) const { return std::string(syntax_.Text({at, BehindType(at)})); }

  const StructureLayout* LayoutOfType(const std::string& type) const {
    constexpr size_t kMostMembers = 64;  // more parameters would be unreadable
    const StructureLayout* layout = layouts_.Find(type);
    if (layout == nullptr || layout->members.size() > kMostMembers) return nullptr;
    // An object made without its constructor must have the layout of its members.
    return layout->constructed && layout->aligned ? nullptr : layout;
  }

  // --- the kernel ---

  bool Kernel(const KernelDefinition& kernel) {
    bool any = false;
    for (const KernelParameter& parameter : kernel.parameters) {
      if (parameter.pointer) continue;
      const bool known = LayoutOf(kernel, &parameter - kernel.parameters.data()).second != nullptr;
      if (!known && IsStructure(syntax_, parameter.type)) return false;
      any |= known;
    }
    size_t open = kernel.body.begin - 1;  // the "(" of the parameters
    while (open > kernel.head.begin && !(Is(open, "(") && Is(open - 1, kernel.name))) --open;
    const auto pieces = SplitArguments(syntax_, {open + 1, MatchingClose(syntax_, open)}, true);
    if (!any || pieces.size() != kernel.parameters.size()) return false;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const KernelParameter& parameter = kernel.parameters[i];
      const auto [type, layout] = LayoutOf(kernel, i);
      if (layout == nullptr) continue;
      KernelParameterApart(kernel, parameter, *layout, pieces[i]);
      if (type != parameter.type) out_.objects[{kernel.name, parameter.type}] = type;
      for (const KernelLaunch& launch : syntax_.launches) {
        if (!IsLaunchOf(launch, kernel) || i >= launch.arguments.size()) continue;
        Argument(launch.arguments[i], *layout, parameter.name);
      }
    }
    RemovePrototypes(kernel.name);
    return true;
  }

  /// Type and layout of parameter `i` if it is a structure. A template parameter has the type that
  /// the first launch passes.
  std::pair<std::string, const StructureLayout*> LayoutOf(const KernelDefinition& kernel,
                                                          size_t i) const {
    const KernelParameter& parameter = kernel.parameters[i];
    if (parameter.pointer) return {};
    if (const StructureLayout* own = LayoutOfType(parameter.type)) return {parameter.type, own};
    for (size_t t = 0; t < kernel.templates.size(); ++t) {
      if (kernel.templates[t].name != parameter.type) continue;
      for (const KernelLaunch& launch : syntax_.launches) {
        if (!IsLaunchOf(launch, kernel) || i >= launch.arguments.size() ||
            launch.arguments[i].empty())
          continue;
        const TokenRange argument = launch.arguments[i];
        std::string type = t < launch.template_args.size()
                               ? std::string(syntax_.Text(launch.template_args[t]))
                               : TypeGiven(argument, launch.function);
        if (const StructureLayout* layout = LayoutOfType(type)) return {type, layout};
      }
    }
    return {};
  }

  /// The type of an argument in a function: of `Scale{2}`, or of a variable.
  std::string TypeGiven(TokenRange argument, size_t function, int depth = 0) const {
    constexpr int kMostCallers = 3;
    if (argument.end != argument.begin + 1) return TypeMade(argument.begin);
    return function < syntax_.functions.size() && depth < kMostCallers
               ? TypeOfVariable(syntax_.functions[function], argument.begin, depth)
               : "";
  }

  /// The type of a variable (`Scale scale{2};`) or of a template parameter (`F f`), for which a
  /// caller's argument is followed.
  std::string TypeOfVariable(const HostFunction& function, size_t name, int depth) const {
    const std::string_view text = syntax_.token(name).text;
    for (size_t i = function.body.begin; i + 1 < name; ++i) {
      if (!IsWord(i) || !Is(BehindType(i), text)) continue;
      const std::string type = Is(i, "auto") ? TypeMade(i + 3) : Type(i);
      if (LayoutOfType(type) != nullptr) return type;
    }
    const auto parameters = SplitArguments(syntax_, function.parameters, true);
    for (size_t p = 0; p < parameters.size(); ++p) {
      if (parameters[p].empty() || !Is(parameters[p].end - 1, text)) continue;
      for (size_t f = 0; f < syntax_.functions.size(); ++f) {
        for (const auto& arguments : CallsOf(function, syntax_.functions[f])) {
          if (p < arguments.size() && !arguments[p].empty())
            return TypeGiven(arguments[p], f, depth + 1);
        }
      }
    }
    return "";
  }

  /// The arguments of each call of `callee` in another function.
  std::vector<std::vector<TokenRange>> CallsOf(const HostFunction& callee,
                                               const HostFunction& caller) const {
    std::vector<std::vector<TokenRange>> all;
    for (size_t i = caller.body.begin; i < caller.body.end && &caller != &callee; ++i) {
      const size_t open = Is(i, callee.name) ? BehindType(i) : i;
      if (open != i && Is(open, "("))
        all.push_back(SplitArguments(syntax_, {open + 1, MatchingClose(syntax_, open)}, true));
    }
    return all;
  }

  /// The initialiser list of the structure from variables with the prefix `name`: "{p_x, {p_a,
  /// p_b}}".
  static std::string Initialiser(const StructureLayout& layout, const std::string& name) {
    std::string list;
    size_t member = 0;
    for (const char c : layout.list)
      list += c == '$' ? name + layout.members[member++].suffix : std::string(1, c);
    return list;
  }

  /// A parameter for each member: "const float* p_x, int p_n".
  static std::string Declarations(const StructureLayout& layout, const std::string& name) {
    std::string declared;
    for (const Member& member : layout.members)
      declared += (declared.empty() ? "" : ", ") + member.declaration + name + member.suffix;
    return declared;
  }

  void KernelParameterApart(const KernelDefinition& kernel, const KernelParameter& parameter,
                            const StructureLayout& layout, TokenRange piece) {
    const std::string name = FreePrefix(parameter.name, layout,
                                        {kernel.head.begin, kernel.body.end});
    const std::string list = Initialiser(layout, name);
    std::string passed;
    for (const Member& one : layout.members)
      passed += (passed.empty() ? "" : ", ") + name + one.suffix;
    edits_.Replace(piece, Declarations(layout, name));
    if (const auto uses = Uses(parameter.name, layout, kernel.body, /*all=*/true)) {
      for (const auto& [range, suffix] : *uses) edits_.Replace(range, name + suffix);
    } else if (!kernel.body.empty()) {
      edits_.Insert(kernel.body.begin,
                    layout.constructed
                        ? WithoutConstructor(parameter, layout, list)
                        : fmt::format("{} {} = {}; ", parameter.type, parameter.name, list));
    }
    out_.notes.emplace_back(
        kernel.name, fmt::format("'{}' is passed member by member: {}", parameter.name, passed));
  }

  /// For a structure with a constructor: text that defines a plain structure with the same members,
  /// initialises it by a list, and makes a reference of the original type to it.
  static std::string WithoutConstructor(const KernelParameter& parameter,
                                        const StructureLayout& layout, const std::string& list) {
    std::string members;
    size_t member = 0, structure = 0;
    for (const char c : layout.list) {
      if (c == '{') members += "struct { ";
      if (c == '}') members += fmt::format("}} s{}; ", structure++);
      if (c == '$')
        members += fmt::format("{}m{}; ", layout.members[member].declaration, member), ++member;
    }
    const std::string name = "members_of_" + parameter.name;
    members.resize(members.rfind('}'));
    return fmt::format(
        "{}}} {} = {}; static_assert(sizeof({}) == sizeof({}), \"members that are not known\"); "
        "{}& {} = reinterpret_cast<{}&>({}); ",
        members, name, list, name, parameter.type, parameter.type, parameter.name, parameter.type,
        name);
  }

  /// Removes declarations without a body, which would now declare another kernel of the same name.
  void RemovePrototypes(const std::string& kernel) {
    for (size_t i = 0; i < Count(); ++i) {
      if (!Is(i, "__global__")) continue;
      size_t end = i;
      bool named = false;
      for (; end < Count() && !Is(end, ";") && !Is(end, "{"); ++end) {
        named |= Is(end, kernel) && Is(end + 1, "(");
        if (Is(end, "(")) end = MatchingClose(syntax_, end);
      }
      if (!Is(end, ";") || !named) continue;
      size_t begin = i;
      while (begin > 0 && !Is(begin - 1, ";") && !Is(begin - 1, "}") && !Is(begin - 1, "{") &&
             syntax_.token(begin - 1).kind != Token::Kind::kDirective)
        --begin;
      edits_.Replace({begin, end + 1}, "");
    }
  }

  /// The member whose access (".size.x") begins at `at`, the longest one if several do; sets `end`
  /// to the token after it. nullptr if there is none.
  const Member* MemberAt(const StructureLayout& layout, size_t at, size_t limit,
                         size_t& end) const {
    const Member* found = nullptr;
    for (const Member& member : layout.members) {
      size_t i = at;
      std::string_view rest = member.access;
      while (!rest.empty() && i < limit && rest.starts_with(syntax_.token(i).text))
        rest.remove_prefix(syntax_.token(i++).text.size());
      if (rest.empty() && i > end) found = &member, end = i;
    }
    return found;
  }

  /// All uses of `name.member` in a range, with the member's suffix. With `all` nullopt if the name
  /// is used in any other way.
  std::optional<std::vector<std::pair<TokenRange, std::string>>> Uses(const std::string& name,
                                                                      const StructureLayout& layout,
                                                                      TokenRange range,
                                                                      bool all) const {
    std::vector<std::pair<TokenRange, std::string>> uses;
    for (size_t i = range.begin; i < range.end; ++i) {
      if (syntax_.token(i).kind == Token::Kind::kDirective && all &&
          syntax_.token(i).text.find(name) != std::string_view::npos)
        return std::nullopt;
      if (!IsWord(i) || !Is(i, name) ||
          (i > 0 && (Is(i - 1, ".") || Is(i - 1, "->") || Is(i - 1, "::"))))
        continue;
      size_t end = i + 1;
      const Member* found = MemberAt(layout, i + 1, range.end, end);
      if (found != nullptr) uses.emplace_back(TokenRange{i, end}, found->suffix);
      if (found == nullptr && all) return std::nullopt;
    }
    return uses;
  }

  /// `name` with as many underscores appended as make all name_member unused.
  std::string FreePrefix(std::string name, const StructureLayout& layout, TokenRange range) const {
    const auto taken = [&] {
      for (size_t i = range.begin; i < std::min(range.end, Count()); ++i) {
        for (const Member& member : layout.members) {
          if (IsWord(i) && syntax_.token(i).text == name + member.suffix) return true;
        }
      }
      return false;
    };
    while (taken()) name += '_';
    return name;
  }

  // --- arguments ---

  /// Replaces an argument of a launch or call by its members. If it is neither a variable nor a
  /// list its members get the parameter's names, which are then unknown.
  void Argument(TokenRange range, const StructureLayout& layout, const std::string& parameter) {
    std::vector<std::string> values = Values(range, layout);
    if (values.size() != layout.members.size()) {
      values.clear();
      for (const Member& member : layout.members) values.push_back(parameter + member.suffix);
    }
    const bool address = range.begin > 0 && Is(range.begin - 1, "&");  // void* args[] = {&p}
    std::string text;
    for (const std::string& value : values)
      text += (text.empty() ? "" : address ? ", &" : ", ") + value;
    edits_.Replace(range, text);
  }

  /// The value of each member of the object that `range` makes: a variable, S{…}, make_float3(…) or
  /// {…}; fewer values or none if it is not understood.
  std::vector<std::string> Values(TokenRange range, const StructureLayout& layout) {
    std::vector<std::string> values;
    if (layout.list == "{}") return {"0"};
    if (layout.constructed) {  // the constructor decides the values
      for (const Member& member : layout.members)
        values.push_back(std::string(syntax_.Text(range)) + member.access);
      return values;
    }
    if (range.end == range.begin + 1 && IsWord(range.begin)) {
      names_.insert(Word(range.begin));
      for (const Member& member : layout.members)
        values.push_back(Word(range.begin) + member.access);
      return values;
    }
    const auto inside = Inside(range);
    if (!inside) return {};
    std::vector<std::string> designated(layout.members.size());
    bool by_name = false;
    for (const TokenRange& element : SplitArguments(syntax_, *inside, true)) {
      if (Is(element.begin, ".")) {
        SetDesignated(element, layout, designated);
        by_name = true;
      } else if (!Flatten(element, values)) {
        return {};
      }
    }
    return Completed(by_name ? std::move(designated) : std::move(values), layout);
  }

  /// Sets the member that an element such as ".alpha = 2" names.
  void SetDesignated(TokenRange element, const StructureLayout& layout,
                     std::vector<std::string>& values) const {
    size_t equals = element.begin;
    while (equals < element.end && !Is(equals, "=")) ++equals;
    const std::string access(syntax_.Text({element.begin, equals}));
    for (size_t m = 0; m < layout.members.size(); ++m) {
      if (layout.members[m].access == access)
        values[m] = std::string(syntax_.Text({equals + 1, element.end}));
    }
  }

  /// The values with defaults for the members that the list leaves out; none if there are too many,
  /// or if nested structures make it unclear which ones are missing.
  static std::vector<std::string> Completed(std::vector<std::string> values,
                                            const StructureLayout& layout) {
    const bool nested = layout.list.find('{', 1) != std::string::npos;
    if (values.size() > layout.members.size() || (nested && values.size() != layout.members.size()))
      return {};
    values.resize(layout.members.size());
    for (size_t m = 0; m < values.size(); ++m) {
      if (values[m].empty())
        values[m] = layout.members[m].fallback.empty() ? "0" : layout.members[m].fallback;
    }
    return values;
  }

  /// The text inside {…}, S{…}, S(…) or make_float3(…); nullopt for anything else.
  std::optional<TokenRange> Inside(TokenRange range) const {
    size_t open = range.begin;
    std::string callee;
    while (open < range.end && (IsWord(open) || Is(open, "::"))) {
      callee = Type(open);
      open = BehindType(open);
    }
    const bool makes = callee.empty() || LayoutOfType(callee) != nullptr ||
                       (callee.starts_with("make_") && LayoutOfType(callee.substr(5)) != nullptr);
    const bool opens = Is(open, "{") || (!callee.empty() && Is(open, "("));
    if (!makes || !opens || MatchingClose(syntax_, open) + 1 != range.end) return std::nullopt;
    return TokenRange{open + 1, range.end - 1};
  }

  bool Flatten(TokenRange element, std::vector<std::string>& values) {
    if (const auto inside = Inside(element)) {
      return std::ranges::all_of(SplitArguments(syntax_, *inside, true),
                                 [&](const TokenRange& inner) { return Flatten(inner, values); });
    }
    values.emplace_back(syntax_.Text(element));
    return true;
  }

  // --- the host ---

  /// The layout of the parameter of a host function that begins at `type` and whose name ends
  /// before `last`; nullptr if it is not a structure.
  const StructureLayout* LayoutOfParameter(const HostFunction& function, size_t type,
                                           size_t last) const {
    while (type + 1 < last && !(IsWord(type) && BehindType(type) + Is(last - 2, "&") + 1 == last))
      ++type;
    const StructureLayout* layout = type + 1 < last ? LayoutOfType(Type(type)) : nullptr;
    if (layout != nullptr ||
        std::ranges::find(function.templates, Word(type), &TemplateParameter::name) ==
            function.templates.end())
      return layout;
    return LayoutOfType(TypeOfVariable(function, last - 1, 0));
  }

  /// Replaces the structure parameter of a host function by its members, in its calls too. True if
  /// there was one.
  bool Parameters(const HostFunction& function) {
    const auto pieces = SplitArguments(syntax_, function.parameters, true);
    for (size_t p = 0; p < pieces.size(); ++p) {
      size_t last = pieces[p].begin;
      while (last < pieces[p].end && !Is(last, "=")) ++last;
      if (last < pieces[p].begin + 2 || !IsWord(last - 1) || !names_.contains(Word(last - 1)))
        continue;
      const StructureLayout* layout = LayoutOfParameter(function, pieces[p].begin, last);
      if (layout == nullptr) continue;
      const std::string old = Word(last - 1);
      const std::string name = FreePrefix(old, *layout, function.whole);
      edits_.Replace(pieces[p], Declarations(*layout, name));
      const auto uses = Uses(old, *layout, function.body, /*all=*/false);
      for (const auto& [range, suffix] : *uses) edits_.Replace(range, name + suffix);
      Calls(function, p, *layout, name);
      return true;
    }
    return false;
  }

  void Calls(const HostFunction& callee, size_t parameter, const StructureLayout& layout,
             const std::string& name) {
    for (const HostFunction& function : syntax_.functions) {
      for (const auto& arguments : CallsOf(callee, function)) {
        if (parameter < arguments.size()) Argument(arguments[parameter], layout, name);
      }
    }
  }

  /// Replaces `S p{2, n}, q;` by a variable for each member, and `p.n` by that variable. True if
  /// there was one.
  bool Variables(const HostFunction& function) {
    for (size_t i = function.body.begin; i + 2 < function.body.end; ++i) {
      const size_t name = IsWord(i) ? BehindType(i) : Count();
      if (!IsWord(name) || !names_.contains(Word(name))) continue;
      const StructureLayout* layout = LayoutOfType(Is(i, "auto") ? TypeMade(i + 3) : Type(i));
      if (layout == nullptr) continue;
      size_t end = i;
      while (end < function.body.end && !Is(end, ";")) {
        const bool opens = Is(end, "(") || Is(end, "{") || Is(end, "[");
        end = opens ? MatchingClose(syntax_, end) + 1 : end + 1;
      }
      std::string text;
      for (const TokenRange& declarator :
           SplitArguments(syntax_, {name, std::min(end, function.body.end)}, true))
        text += Declarator(declarator, *layout, function);
      if (text.empty()) continue;
      size_t begin = i;
      while (begin > function.body.begin &&
             (Is(begin - 1, "const") || Is(begin - 1, "struct") || Is(begin - 1, "static") ||
              Is(begin - 1, "::") || (Is(begin, "::") && IsWord(begin - 1))))
        --begin;
      edits_.Replace({begin, std::min(end, function.body.end)}, text);
      return true;
    }
    return false;
  }

  /// The type of the object that S{…} or make_float3(…) at a token makes; "" if there is none.
  std::string TypeMade(size_t at) const {
    while (IsWord(at) && Is(at + 1, "::")) at += 2;
    if (!IsWord(at) || (!Is(BehindType(at), "{") && !Is(BehindType(at), "("))) return "";
    const std::string name = Type(at);
    return name.starts_with("make_") ? name.substr(5) : name;
  }

  /// The values that initialise a variable, by (1, 2, 3) or by a list or another object.
  std::vector<std::string> Initialisers(TokenRange value, const StructureLayout& layout) {
    if (value.empty()) return {};
    if (!Is(value.begin, "(") || MatchingClose(syntax_, value.begin) + 1 != value.end)
      return Values(value, layout);
    std::vector<std::string> values;
    for (const TokenRange& one : SplitArguments(syntax_, {value.begin + 1, value.end - 1}, true))
      values.emplace_back(syntax_.Text(one));
    return values;
  }

  std::string Declarator(TokenRange range, const StructureLayout& layout,
                         const HostFunction& function) {
    if (range.empty() || !IsWord(range.begin)) return "";
    const std::string name = Word(range.begin);
    const std::string fresh = FreePrefix(name, layout, function.whole);
    const size_t value = Is(range.begin + 1, "=") ? range.begin + 2 : range.begin + 1;
    const std::vector<std::string> values = Initialisers({value, range.end}, layout);
    const bool known = values.size() == layout.members.size();
    std::string text;
    for (size_t m = 0; m < layout.members.size(); ++m) {
      const Member& member = layout.members[m];
      const std::string& given = known                ? values[m]
                                 : value >= range.end ? member.fallback
                                                      : std::string();
      text += member.declaration + fresh + member.suffix +
              (given.empty() ? "; " : " = " + given + "; ");
    }
    const TokenRange rest{range.end, function.body.end};
    const auto uses = Uses(name, layout, rest, /*all=*/false);
    for (const auto& [use, suffix] : *uses) edits_.Replace(use, fresh + suffix);
    for (size_t i = rest.begin; i < rest.end; ++i) {
      if (Is(i, name) && (Is(i - 1, ";") || Is(i - 1, "{") || Is(i - 1, "}")))
        Assignment(i, rest.end, fresh, layout);
    }
    return text;
  }

  /// Replaces `p.size = {2, 3};` and `p = make_float2(1, 2);` by an assignment to each member.
  void Assignment(size_t name, size_t end, const std::string& fresh,
                  const StructureLayout& layout) {
    size_t equals = name + 1;
    while (equals < end && !Is(equals, "=") && !Is(equals, ";")) ++equals;
    size_t stop = equals;
    while (stop < end && !Is(stop, ";"))
      stop = Is(stop, "{") || Is(stop, "(") ? MatchingClose(syntax_, stop) + 1 : stop + 1;
    if (!Is(equals, "=") || stop >= end) return;
    const auto inside = Inside({equals + 1, stop});
    const std::string prefix(syntax_.Text({name + 1, equals}));
    std::vector<std::string> values;
    if (!inside || !Flatten({equals + 1, stop}, values)) return;
    std::string text;
    size_t next = 0;
    for (const Member& member : layout.members) {
      if (!member.access.starts_with(prefix)) continue;
      const std::string_view rest = std::string_view(member.access).substr(prefix.size());
      if (!rest.starts_with(".") && !rest.starts_with("[")) continue;
      if (next < values.size()) text += fresh + member.suffix + " = " + values[next] + "; ";
      ++next;
    }
    if (next == values.size() && next > 0) edits_.Replace({name, stop}, text);
  }

  CudaSyntax syntax_;
  StructureLayouts layouts_;
  Edits edits_;
  std::set<std::string>& names_;
  SourceApart& out_;
};

}  // namespace

SourceApart WithMembersApart(const std::string& source) {
  SourceApart out{source, {}};
  std::set<std::string> names;
  // Structures that contain each other, which only broken sources have, would grow without end.
  const size_t largest = source.size() + (size_t{1} << 16);
  for (int i = 0; i < kMostSteps && out.text.size() < largest; ++i) {
    auto next = Step(out.text, names, out).Run();
    if (!next) break;
    out.text = std::move(*next);
  }
  return out;
}

}  // namespace atunner
