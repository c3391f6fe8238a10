#include "atunner/intake/bare/annotations.h"

#include <cctype>
#include <functional>

#include "atunner/intake/c_type.h"
#include "atunner/intake/value_list.h"

namespace atunner {
namespace {

/// "NAME = VALUE" or "NAME: VALUE".
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

/// "x inout float32[n, m]" or "alpha = 1.5"
Status Argument(const std::string& rest, Annotations& all) {
  const size_t open = rest.find('[');
  if (open == std::string::npos || !rest.ends_with(']')) {
    auto pair = Assignment(rest);
    if (!pair) return Invalid("expected 'name in float32[n]' or 'name = value'");
    all.scalars[pair->first] = pair->second;
    return {};
  }
  StatedArgument argument;
  argument.extents = rest.substr(open + 1, rest.size() - open - 2);
  std::string head = Trim(rest.substr(0, open));
  const size_t space = head.find(' ');
  const size_t second = space == std::string::npos ? space : head.find(' ', space + 1);
  if (second == std::string::npos) return Invalid("expected 'name in float32[n]'");
  const std::string role = head.substr(space + 1, second - space - 1);
  const std::string type = Trim(head.substr(second));
  if (role != "in" && role != "out" && role != "inout")
    return Invalid("'" + role + "' is none of in, out, inout");
  argument.role = role == "in" ? Role::kInput : role == "out" ? Role::kOutput : Role::kInOut;
  const auto known = ParseCType(type);
  if (!known || known->lanes != 1)
    return Invalid("unknown element type '" + type + "'", "", "use " + DTypeNames());
  argument.dtype = known->dtype;
  all.arguments[head.substr(0, space)] = argument;
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
  ATUNNER_TRY(all.tolerance.relative, Real(rest));
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

Status One(const std::string& text, Annotations& all) {
  for (const Verb& verb : Verbs()) {
    const std::string name = verb.name;
    if (!text.starts_with(name) ||
        (text.size() > name.size() &&
         (std::isalnum(static_cast<unsigned char>(text[name.size()])) || text[name.size()] == '_')))
      continue;
    std::string rest = Trim(text.substr(name.size()));
    // Verbs without a name of their own take "verb = value".
    if (rest.starts_with('=') || rest.starts_with(':')) rest = Trim(rest.substr(1));
    if (rest.empty())
      return Invalid("nothing after '" + name + "'", "",
                     std::string("write: // atunner: ") + verb.usage);
    auto applied = verb.apply(rest, all);
    if (!applied)
      return Invalid(applied.error().what, "", std::string("write: // atunner: ") + verb.usage);
    return {};
  }
  std::string names;
  for (const Verb& verb : Verbs()) names += std::string(names.empty() ? "" : ", ") + verb.name;
  return Invalid("unknown annotation '" + text + "'", "", "there are " + names);
}

}  // namespace

Result<Fill> ParseFill(const std::string& text) {
  const std::vector<std::string> words = SplitOutsideBrackets(text, ' ');
  const auto number = [&](size_t i) -> Result<double> {
    if (i >= words.size()) return Invalid("'" + text + "' lacks a number");
    return Real(words[i]);
  };
  Fill fill;
  const std::string kind = words.empty() ? "" : words[0];
  if (kind == "normal") {
    fill.kind = Fill::Kind::kFamilies;
  } else if (kind == "zeros") {
    fill.kind = Fill::Kind::kZeros;
  } else if (kind == "iota") {
    fill.kind = Fill::Kind::kIota;
  } else if (kind == "constant") {
    fill.kind = Fill::Kind::kConstant;
    ATUNNER_TRY(fill.low, number(1));
  } else if (kind == "uniform") {
    fill.kind = Fill::Kind::kUniform;
    ATUNNER_TRY(fill.low, number(1));
    ATUNNER_TRY(fill.high, number(2));
    if (!(fill.low < fill.high))
      return Invalid("'" + text + "': the upper end must be above the lower one");
  } else if (kind == "file" && words.size() > 1) {
    fill.kind = Fill::Kind::kFile;
    fill.path = words[1];
  } else if (kind == "generator" && words.size() > 1) {
    fill.kind = Fill::Kind::kGenerator;
    fill.path = Trim(text).substr(kind.size() + 1);
    ATUNNER_TRY(const Expr expr, Expr::Parse(fill.path));
    for (const std::string& name : expr.Names()) {
      if (name != "i")
        return Invalid("'" + text + "': unknown name '" + name + "'", "",
                       "a generator knows the index i");
    }
  } else if ((kind == "indices" || kind == "offsets") && words.size() > 1) {
    fill.kind = kind == "indices" ? Fill::Kind::kIndices : Fill::Kind::kOffsets;
    fill.path = Trim(text).substr(kind.size() + 1);
    ATUNNER_TRY(const Expr end, Expr::Parse(fill.path));
  } else {
    return Invalid("unknown fill '" + text + "'", "",
                   "use normal, uniform LOW HIGH, constant V, zeros, iota, indices END, offsets "
                   "END, generator EXPRESSION "
                   "or file PATH");
  }
  return fill;
}

Result<Annotations> ParseAnnotations(const std::vector<Annotation>& lines,
                                     const std::string& file) {
  Annotations all;
  for (const Annotation& line : lines) {
    auto applied = One(std::string(line.text), all);
    if (!applied)
      return Invalid(applied.error().what, file + ":" + std::to_string(line.line),
                     applied.error().hint);
  }
  return all;
}

}  // namespace atunner
