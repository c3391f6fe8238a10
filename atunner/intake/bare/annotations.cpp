#include "atunner/intake/bare/annotations.h"

#include <cctype>
#include <cmath>
#include <functional>
#include <optional>

#include "atunner/intake/c_type.h"
#include "atunner/intake/value_list.h"
#include "atunner/model/kernel/exact_fill.h"

namespace atunner {
namespace {

/// Splits "NAME = VALUE" or "NAME: VALUE".
Result<std::pair<std::string, std::string>> Assignment(const std::string& text) {
  const size_t at = text.find_first_of("=:");
  if (at == std::string::npos || Trim(text.substr(0, at)).empty() ||
      Trim(text.substr(at + 1)).empty())
    return Invalid("expected 'name = value'");
  return std::pair(Trim(text.substr(0, at)), Trim(text.substr(at + 1)));
}

Result<int64_t> Number(const std::string& text) {
  ATUNNER_TRY(const Expr expr, Expr::Parse(text));
  return expr.EvaluateInt({});
}

Result<double> Real(const std::string& text) {
  ATUNNER_TRY(const Expr expr, Expr::Parse(text));
  ATUNNER_TRY(const Value value, expr.Evaluate({}));
  return ToDouble(value);
}

Status Size(const std::string& rest, Annotations& all) {
  ATUNNER_TRY(const auto pair, Assignment(rest));
  ATUNNER_TRY(all.sizes[pair.first], Number(pair.second));
  return {};
}

Status Tune(const std::string& rest, Annotations& all) {
  ATUNNER_TRY(const auto pair, Assignment(rest));
  ATUNNER_TRY(all.tunables[pair.first], ParseValueList(pair.second));
  return {};
}

/// Name, role and type of "x inout float32".
Result<std::pair<std::string, StatedArgument>> Tensor(const std::string& head) {
  const size_t space = head.find(' ');
  const size_t second = space == std::string::npos ? space : head.find(' ', space + 1);
  if (second == std::string::npos) return Invalid("expected 'name in float32[n]'");
  const std::string role = head.substr(space + 1, second - space - 1);
  const std::string type = Trim(head.substr(second));
  if (role != "in" && role != "out" && role != "inout")
    return Invalid("'" + role + "' is not one of in, out, inout");
  StatedArgument argument;
  argument.role = role == "in" ? Role::kInput : role == "out" ? Role::kOutput : Role::kInOut;
  const auto known = ParseCType(type);
  if (!known || known->lanes != 1)
    return Invalid("unknown element type '" + type + "'", "", "use " + DTypeNames());
  argument.dtype = known->dtype;
  return std::pair(head.substr(0, space), argument);
}

/// "x inout float32[n, m]", "alpha = 1.5" or "tex = texture:f32[64,48]"
Status Argument(const std::string& rest, Annotations& all) {
  const size_t open = rest.find('[');
  if (open == std::string::npos || rest.find('=') < open || !rest.ends_with(']')) {
    auto pair = Assignment(rest);
    if (!pair) return Invalid("expected 'name in float32[n]' or 'name = value'");
    all.scalars[pair->first] = pair->second;
    return {};
  }
  ATUNNER_TRY(const auto named, Tensor(Trim(rest.substr(0, open))));
  StatedArgument& argument = all.arguments[named.first] = named.second;
  argument.extents = rest.substr(open + 1, rest.size() - open - 2);
  return {};
}

Status FillOf(const std::string& rest, Annotations& all) {
  ATUNNER_TRY(const auto pair, Assignment(rest));
  ATUNNER_TRY(all.fills[pair.first], ParseFill(pair.second));
  return {};
}

Status Check(const std::string& rest, Annotations& all) {
  Dims dims;
  for (const std::string& piece : SplitOutsideBrackets(rest, ',')) {
    ATUNNER_TRY(const auto pair, Assignment(piece));
    ATUNNER_TRY(dims[pair.first], Number(pair.second));
  }
  all.checks.push_back(std::move(dims));
  return {};
}

Status ToleranceOf(const std::string& rest, Annotations& all) {
  ATUNNER_TRY(const double relative, Real(rest));
  if (!(relative >= 0) || std::isinf(relative))
    return Invalid("a tolerance must be a finite number of at least 0, not '" + rest + "'");
  all.tolerance.relative = relative;
  return {};
}

struct Verb {
  const char* name;
  const char* usage;
  std::function<Status(const std::string&, Annotations&)> apply;
};

template <std::string Annotations::* kField>
Status Keep(const std::string& rest, Annotations& all) {
  all.*kField = rest;
  return {};
}
template <std::string StatedLaunch::* kField>
Status KeepLaunch(const std::string& rest, Annotations& all) {
  all.launch.*kField = rest;
  return {};
}

const std::vector<Verb>& Verbs() {
  static const std::vector<Verb> verbs = {
      {"tune", "tune BLOCK = 64, 128, 256", Tune},
      {"size", "size n = 1 << 20", Size},
      {"arg", "arg x in float32[n]", Argument},
      {"fill", "fill x = uniform 0 1", FillOf},
      {"kernel", "kernel = reduce", Keep<&Annotations::kernel>},
      {"entry", "entry = reduce<float>", Keep<&Annotations::entry>},
      {"grid", "grid = ceil_div(n, block_x)", KeepLaunch<&StatedLaunch::grid>},
      {"block", "block = 256", KeepLaunch<&StatedLaunch::block>},
      {"shared", "shared = 256 * 4", KeepLaunch<&StatedLaunch::shared>},
      {"cluster", "cluster = 2", KeepLaunch<&StatedLaunch::cluster>},
      {"constraint", "constraint = BLOCK * ITEMS <= 4096",
       [](const std::string& rest, Annotations& all) -> Status {
         all.constraints.push_back(rest);
         return {};
       }},
      {"check", "check n = 1000, m = 17", Check},
      {"tolerance", "tolerance = 1e-5", ToleranceOf},
      {"flops", "flops = 2 * n", Keep<&Annotations::flops>},
      {"bytes", "bytes = 8 * n", Keep<&Annotations::bytes>},
      {"option", "option = -use_fast_math",
       [](const std::string& rest, Annotations& all) -> Status {
         all.options.push_back(rest);
         return {};
       }},
  };
  return verbs;
}

/// True if the text begins with the verb as a whole word.
bool BeginsWith(const std::string& text, const std::string& verb) {
  if (!text.starts_with(verb)) return false;
  if (text.size() == verb.size()) return true;
  const char next = text[verb.size()];
  return !std::isalnum(static_cast<unsigned char>(next)) && next != '_';
}

Status Apply(const Verb& verb, std::string rest, Annotations& all) {
  // Verbs without a name of their own take "verb = value".
  if (rest.starts_with('=') || rest.starts_with(':')) rest = Trim(rest.substr(1));
  const std::string usage = std::string("write: // atunner: ") + verb.usage;
  if (rest.empty()) return Invalid(std::string("nothing after '") + verb.name + "'", "", usage);
  auto applied = verb.apply(rest, all);
  if (!applied) return Invalid(applied.error().what, "", usage);
  return {};
}

Status ParseAnnotation(const std::string& text, Annotations& all) {
  for (const Verb& verb : Verbs()) {
    if (BeginsWith(text, verb.name))
      return Apply(verb, Trim(text.substr(std::string_view(verb.name).size())), all);
  }
  std::string names;
  for (const Verb& verb : Verbs()) names += std::string(names.empty() ? "" : ", ") + verb.name;
  return Invalid("unknown annotation '" + text + "'", "", "there are " + names);
}

/// A fill without arguments.
std::optional<Fill::Kind> PlainKind(const std::string& kind) {
  if (kind == "normal") return Fill::Kind::kFamilies;
  if (kind == "zeros") return Fill::Kind::kZeros;
  if (kind == "iota") return Fill::Kind::kIota;
  return std::nullopt;
}

/// Number `i` of the words of a fill.
Result<double> FillNumber(const std::vector<std::string>& words, size_t i,
                          const std::string& text) {
  if (i >= words.size()) return Invalid("'" + text + "' lacks a number");
  return Real(words[i]);
}

/// "uniform LOW HIGH".
Result<Fill> UniformFill(const std::vector<std::string>& words, const std::string& text) {
  Fill fill;
  fill.kind = Fill::Kind::kUniform;
  ATUNNER_TRY(fill.low, FillNumber(words, 1, text));
  ATUNNER_TRY(fill.high, FillNumber(words, 2, text));
  if (!(fill.low < fill.high))
    return Invalid("'" + text + "': the upper end must be above the lower one");
  return fill;
}

/// "exact FILL" without the first word: a promise of the very values.
Result<Fill> ExactFill(const std::string& text) {
  Fill fill;
  if (!text.empty() && !text.starts_with(kExactFill)) {
    ATUNNER_TRY(fill, ParseFill(text));
  }
  if (!StatesValues(fill.kind))
    return Invalid("'exact " + text + "': only zeros, constant V and iota can be exact");
  PromiseExactly(fill);
  return fill;
}

/// "generator EXPRESSION", "indices END" or "offsets END".
Result<Fill> ExpressionFill(const std::string& kind, const std::string& text) {
  Fill fill;
  fill.kind = kind == "generator" ? Fill::Kind::kGenerator
              : kind == "indices" ? Fill::Kind::kIndices
                                  : Fill::Kind::kOffsets;
  fill.path = Trim(text).substr(kind.size() + 1);
  ATUNNER_TRY(const Expr expr, Expr::Parse(fill.path));
  for (const std::string& name : expr.Names()) {
    if (kind == "generator" && name != "i")
      return Invalid("'" + text + "': unknown name '" + name + "'", "",
                     "a generator knows the index i");
  }
  return fill;
}

}  // namespace

Result<Fill> ParseFill(const std::string& text) {
  using enum Fill::Kind;
  const std::vector<std::string> words = SplitOutsideBrackets(text, ' ');
  const std::string kind = words.empty() ? "" : words[0];
  if (kind == kExactFill) return ExactFill(Trim(Trim(text).substr(kind.size())));
  Fill fill;
  if (const auto plain = PlainKind(kind)) {
    fill.kind = *plain;
    return fill;
  }
  if (kind == "constant") {
    fill.kind = kConstant;
    ATUNNER_TRY(fill.low, FillNumber(words, 1, text));
    return fill;
  }
  if (kind == "uniform") return UniformFill(words, text);
  if (kind == "file" && words.size() > 1) {
    fill.kind = kFile;
    fill.path = words[1];
    return fill;
  }
  const bool expression = kind == "generator" || kind == "indices" || kind == "offsets";
  if (expression && words.size() > 1) return ExpressionFill(kind, text);
  return Invalid("unknown fill '" + text + "'", "",
                 "use normal, uniform LOW HIGH, constant V, zeros, iota, exact constant V, exact "
                 "zeros, exact iota, indices END, offsets END, generator EXPRESSION or file PATH");
}

Result<Annotations> ParseAnnotations(const std::vector<Annotation>& lines,
                                     const std::string& file) {
  Annotations all;
  for (const Annotation& line : lines) {
    auto applied = ParseAnnotation(std::string(line.text), all);
    if (!applied)
      return Invalid(applied.error().what, file + ":" + std::to_string(line.line),
                     applied.error().hint);
  }
  return all;
}

}  // namespace atunner
