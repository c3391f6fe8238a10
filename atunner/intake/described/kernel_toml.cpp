#include "atunner/intake/described/kernel_toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "atunner/base/closest_name.h"
#include "atunner/intake/bare/annotations.h"
#include "atunner/intake/c_type.h"
#include "atunner/intake/check_sizes.h"
#include "atunner/intake/cuda/cuda_syntax.h"
#include "atunner/intake/described/toml_library.h"
#include "atunner/intake/parameter_form.h"
#include "atunner/intake/rewrite/source_headers.h"
#include "atunner/intake/value_list.h"

namespace atunner {
namespace {

class Reader {
 public:
  Reader(const toml::table& root, std::string where, const FileReader& read)
      : root_(root), where_(std::move(where)), read_(read) {}

  Result<UserKernel> Run() {
    ATUNNER_RETURN_IF_ERROR(
        KnownKeys(root_, {"name", "source", "options", "sizes", "check", "parameters", "default",
                          "constraints", "argument", "launch", "workspace", "symbols", "tolerance",
                          "flops", "bytes", "reference"}));
    ATUNNER_RETURN_IF_ERROR(Sizes());
    ATUNNER_RETURN_IF_ERROR(Parameters());
    ATUNNER_RETURN_IF_ERROR(Source(root_, kernel_.source));
    ATUNNER_RETURN_IF_ERROR(Arguments());
    ATUNNER_RETURN_IF_ERROR(Plan(root_, kernel_.plan));
    ATUNNER_RETURN_IF_ERROR(Work());
    ATUNNER_RETURN_IF_ERROR(Reference());
    ATUNNER_TRY(kernel_.spec.name, Text(root_, "name", kernel_.plan.steps.front().entry));
    if (root_.get("check") == nullptr)
      kernel_.check_dims = HalvedCheckSizes(kernel_, FreeSizesOf(kernel_));
    return std::move(kernel_);
  }

 private:
  std::string Place(const toml::node& node) const {
    return fmt::format("{}:{}", where_, node.source().begin.line);
  }
  std::unexpected<Error> Bad(const toml::node& node, const std::string& what,
                             const std::string& hint = "") const {
    return Invalid(what, Place(node), hint);
  }

  Status KnownKeys(const toml::table& table, const std::vector<std::string>& known) const {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      if (std::ranges::find(known, name) != known.end()) continue;
      const std::string near = ClosestName(name, known);
      return Bad(node, "unknown key '" + name + "'",
                 near.empty() ? "there are " + fmt::format("{}", fmt::join(known, ", "))
                              : "did you mean '" + near + "'?");
    }
    return {};
  }

  /// A number, flag or text as text; nullopt for tables and lists.
  std::optional<std::string> AsText(const toml::node& node) const {
    if (const auto text = node.value_exact<std::string>()) return text;
    if (const auto whole = node.value_exact<int64_t>()) return std::to_string(*whole);
    if (const auto real = node.value_exact<double>()) return fmt::format("{}", *real);
    if (const auto flag = node.value_exact<bool>()) return *flag ? "True" : "False";
    return std::nullopt;
  }

  Result<std::string> Text(const toml::table& table, const char* key,
                           std::optional<std::string> fallback = {}) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) {
      if (fallback) return *fallback;
      return Bad(table, fmt::format("'{}' is missing", key));
    }
    if (auto text = AsText(*node)) return *std::move(text);
    return Bad(*node, fmt::format("'{}' must be a text or a number", key));
  }

  Result<Expr> Expression(const toml::node& node, const char* key) const {
    const auto text = AsText(node);
    if (!text) return Bad(node, fmt::format("'{}' must be an expression", key));
    auto expr = Expr::Parse(*text);
    if (!expr) return Bad(node, fmt::format("'{}': {}", key, expr.error().what));
    return *std::move(expr);
  }

  /// A list of expressions, or a single one.
  Result<std::vector<Expr>> Expressions(const toml::table& table, const char* key) const {
    std::vector<Expr> all;
    const toml::node* node = table.get(key);
    if (node == nullptr) return all;
    if (const toml::array* list = node->as_array()) {
      for (const toml::node& each : *list) {
        ATUNNER_TRY(Expr one, Expression(each, key));
        all.push_back(std::move(one));
      }
    } else {
      ATUNNER_TRY(Expr one, Expression(*node, key));
      all.push_back(std::move(one));
    }
    return all;
  }

  template <class Each>
  Status ForEachTable(const toml::table& parent, const char* key, const Each& each) const {
    const toml::node* node = parent.get(key);
    if (node == nullptr) return {};
    const toml::array* list = node->as_array();
    if (list == nullptr) return Bad(*node, fmt::format("write [[{}]] for each", key));
    for (const toml::node& item : *list) {
      const toml::table* table = item.as_table();
      if (table == nullptr) return Bad(item, fmt::format("each [[{}]] is a table", key));
      ATUNNER_RETURN_IF_ERROR(each(*table));
    }
    return {};
  }

  Result<const toml::table*> Table(const toml::table& parent, const char* key) const {
    const toml::node* node = parent.get(key);
    if (node == nullptr) return nullptr;
    if (const toml::table* table = node->as_table()) return table;
    return Bad(*node, fmt::format("[{}] is a table", key));
  }

  Result<Dims> ReadDims(const toml::table& table) const {
    Dims dims;
    for (const auto& [key, node] : table) {
      ATUNNER_TRY(const Expr expr, Expression(node, key.data()));
      const auto value = expr.EvaluateInt({});
      if (!value || *value < 1)
        return Bad(node, fmt::format("'{}' must be an integer of at least 1", key.str()));
      dims[std::string(key.str())] = *value;
    }
    return dims;
  }

  Status Sizes() {
    ATUNNER_TRY(const toml::table* sizes, Table(root_, "sizes"));
    if (sizes == nullptr) return {};
    ATUNNER_TRY(kernel_.spec.dims, ReadDims(*sizes));
    const toml::node* check = root_.get("check");
    if (check == nullptr) return {};
    const toml::array* list = check->as_array();
    if (list == nullptr) return Bad(*check, "'check' is a list of sizes", "check = [{ n = 1000 }]");
    for (const toml::node& each : *list) {
      ATUNNER_RETURN_IF_ERROR(CheckSize(each));
    }
    return {};
  }

  Status CheckSize(const toml::node& node) {
    const toml::table* table = node.as_table();
    if (table == nullptr) return Bad(node, "'check' is a list of sizes", "check = [{ n = 1000 }]");
    ATUNNER_TRY(const Dims stated, ReadDims(*table));
    Dims dims = kernel_.spec.dims;
    for (const auto& [name, value] : stated) {
      if (!dims.contains(name)) return Bad(node, "'" + name + "' is not among [sizes]");
      dims[name] = value;
    }
    kernel_.check_dims.push_back(std::move(dims));
    return {};
  }

  Status Parameters() {
    ATUNNER_TRY(const toml::table* parameters, Table(root_, "parameters"));
    ATUNNER_TRY(const toml::table* defaults, Table(root_, "default"));
    if (parameters != nullptr) {
      for (const auto& [key, node] : *parameters)
        ATUNNER_RETURN_IF_ERROR(OneParameter(std::string(key.str()), node));
    }
    if (defaults != nullptr) ATUNNER_RETURN_IF_ERROR(Defaults(*defaults));
    ATUNNER_TRY(const std::vector<Expr> all, Expressions(root_, "constraints"));
    for (const Expr& condition : all) kernel_.space.constraints.push_back({condition, ""});
    if (kernel_.space.parameters.empty() && all.empty()) return {};
    const toml::node* constraints = root_.get("constraints");
    const Status valid = kernel_.space.Validate(kernel_.spec.dims);
    if (!valid) return Bad(constraints ? *constraints : *parameters, valid.error().ToString());
    return {};
  }

  std::optional<Value> AsValue(const toml::node& node) const {
    if (const auto flag = node.value_exact<bool>()) return *flag;
    if (const auto whole = node.value_exact<int64_t>()) return *whole;
    if (const auto real = node.value_exact<double>()) return *real;
    if (auto text = node.value_exact<std::string>()) return *std::move(text);
    return std::nullopt;
  }

  /// Values of a list, or of a text in Python's notation.
  Result<std::vector<Value>> Values(const toml::node& node, const std::string& name) const {
    if (const auto text = node.value_exact<std::string>()) {
      auto values = ParseValueList(*text);
      if (!values) return Bad(node, "'" + name + "': " + values.error().what, values.error().hint);
      return values;
    }
    const toml::array* list = node.as_array();
    if (list == nullptr)
      return Bad(node,
                 "the values of '" + name + "' are a list, or a text like \"range(32, 1025, 32)\"");
    std::vector<Value> values;
    for (const toml::node& each : *list) {
      auto value = AsValue(each);
      if (!value) return Bad(each, "a value of '" + name + "' is neither number, flag nor text");
      values.push_back(*std::move(value));
    }
    if (values.empty()) return Bad(node, "'" + name + "' has no values");
    return values;
  }

  Result<ParameterForm> Form(const std::string& name, const toml::node& node) const {
    ParameterForm form;
    const toml::table* table = node.as_table();
    if (table == nullptr) {
      ATUNNER_TRY(form.values, Values(node, name));
      return form;
    }
    ATUNNER_RETURN_IF_ERROR(KnownKeys(*table, {"values", "permutation", "from", "to", "step",
                                               "count", "spacing", "if", "otherwise", "meaning"}));
    for (const auto& [key, target] :
         {std::pair("values", &form.values), std::pair("permutation", &form.items)}) {
      if (const toml::node* listed = table->get(key)) {
        ATUNNER_TRY(*target, Values(*listed, name));
      }
    }
    ATUNNER_RETURN_IF_ERROR(RangeAndCondition(*table, form));
    ATUNNER_TRY(form.spacing, Text(*table, "spacing", form.spacing));
    ATUNNER_TRY(form.meaning, Text(*table, "meaning", ""));
    return form;
  }

  Status RangeAndCondition(const toml::table& table, ParameterForm& form) const {
    for (const auto& [key, target] :
         {std::pair("from", &form.from), std::pair("to", &form.to), std::pair("step", &form.step),
          std::pair("otherwise", &form.otherwise)}) {
      const toml::node* stated = table.get(key);
      if (stated != nullptr && !(*target = AsValue(*stated)))
        return Bad(*stated, fmt::format("'{}' is a value", key));
    }
    if (const toml::node* count = table.get("count");
        count && !(form.count = count->value_exact<int64_t>()))
      return Bad(*count, "'count' is a whole number");
    if (const toml::node* condition = table.get("if");
        condition && !(form.only_if = AsText(*condition)))
      return Bad(*condition, "'if' is an expression");
    return {};
  }

  Status OneParameter(const std::string& name, const toml::node& node) {
    if (kernel_.spec.dims.contains(name))
      return Bad(node, "'" + name + "' is a size and a parameter");
    ATUNNER_TRY(const ParameterForm form, Form(name, node));
    const Status added = AddParameter(name, form, kernel_.space);
    if (!added) return Bad(node, "'" + name + "': " + added.error().what, added.error().hint);
    kernel_.initial.values.push_back(kernel_.space.parameters.back().values.front());
    kernel_.injections.push_back({});
    return {};
  }

  Status Defaults(const toml::table& defaults) {
    for (const auto& [key, node] : defaults) {
      const int index = kernel_.space.Find(key.str());
      if (index < 0) return Bad(node, fmt::format("'{}' is not among [parameters]", key.str()));
      const auto text = AsText(node);
      const auto& values = kernel_.space.parameters[static_cast<size_t>(index)].values;
      const auto found = std::ranges::find_if(values, [&](const Value& value) {
        return text && (ToString(value) == *text || (*text == "True" && value == Value(true)) ||
                        (*text == "False" && value == Value(false)));
      });
      if (found == values.end())
        return Bad(
            node, fmt::format("'{}' is none of the values of '{}'", text.value_or("?"), key.str()));
      kernel_.initial.values[static_cast<size_t>(index)] = *found;
    }
    return {};
  }

  Status Source(const toml::table& table, SourceUnit& source) const {
    ATUNNER_TRY(source.name, Text(table, "source"));
    auto text = read_(source.name);
    if (!text) return Bad(*table.get("source"), text.error().ToString());
    if (const toml::node* options = table.get("options")) {
      const toml::array* list = options->as_array();
      if (list == nullptr) return Bad(*options, "'options' is a list of texts");
      for (const toml::node& each : *list) {
        const auto option = each.value_exact<std::string>();
        if (!option) return Bad(each, "'options' is a list of texts");
        source.options.push_back(*option);
      }
    }
    source.text = CompilableText(ParseCuda(WithHeaders(*text, source.name, read_, source.options)));
    return {};
  }

  Status Arguments() {
    return ForEachTable(root_, "argument",
                        [&](const toml::table& table) { return OneArgument(table); });
  }

  Status OneArgument(const toml::table& table) {
    ATUNNER_RETURN_IF_ERROR(KnownKeys(table, {"name", "type", "shape", "role", "value", "fill"}));
    ArgSpec arg;
    ATUNNER_TRY(arg.name, Text(table, "name"));
    ATUNNER_TRY(const std::string type, Text(table, "type"));
    if (kernel_.spec.FindArg(arg.name) != nullptr)
      return Bad(table, "argument '" + arg.name + "' is there twice");
    const auto known = ParseCType(type);
    if (!known)
      return Bad(*table.get("type"), "unknown type '" + type + "'", "use " + DTypeNames());
    arg.dtype = known->dtype;
    if (const toml::node* value = table.get("value")) {
      if (table.get("shape") != nullptr)
        return Bad(*value, "an argument has a value or a shape, not both");
      arg.role = Role::kScalar;
      ATUNNER_TRY(arg.value, Expression(*value, "value"));
      kernel_.spec.args.push_back(std::move(arg));
      return {};
    }
    if (table.get("shape") == nullptr)
      return Bad(table,
                 "argument '" + arg.name + "' needs a shape (a tensor) or a value (a scalar)");
    return Tensor(table, known->lanes, std::move(arg));
  }

  /// Reads shape, role and fill of an argument and adds it.
  Status Tensor(const toml::table& table, int lanes, ArgSpec arg) {
    ATUNNER_TRY(arg.shape, Expressions(table, "shape"));
    if (lanes > 1) arg.shape.emplace_back(lanes);
    ATUNNER_TRY(const std::string role, Text(table, "role", "in"));
    if (role != "in" && role != "out" && role != "inout")
      return Bad(*table.get("role"), "'" + role + "' is not one of in, out, inout");
    arg.role = role == "in" ? Role::kInput : role == "out" ? Role::kOutput : Role::kInOut;
    if (const toml::node* fill = table.get("fill")) {
      auto parsed = ParseFill(AsText(*fill).value_or(""));
      if (!parsed) return Bad(*fill, parsed.error().what, parsed.error().hint);
      arg.fill = *std::move(parsed);
    }
    kernel_.spec.args.push_back(std::move(arg));
    return {};
  }

  Status Plan(const toml::table& table, LaunchPlan& plan) const {
    ATUNNER_RETURN_IF_ERROR(
        ForEachTable(table, "launch", [&](const toml::table& each) { return Launch(each, plan); }));
    if (plan.steps.empty())
      return Bad(table, "no [[launch]]", "say which kernel runs with which grid and block");
    ATUNNER_RETURN_IF_ERROR(ForEachTable(
        table, "workspace", [&](const toml::table& each) { return OneWorkspace(each, plan); }));
    ATUNNER_TRY(const toml::table* symbols, Table(table, "symbols"));
    if (symbols == nullptr) return {};
    for (const auto& [key, node] : *symbols) {
      const auto tensor = node.value_exact<std::string>();
      if (!tensor || kernel_.spec.FindArg(*tensor) == nullptr)
        return Bad(node, fmt::format("symbol '{}' must name an [[argument]]", key.str()));
      plan.symbols.push_back({std::string(key.str()), *tensor});
    }
    return {};
  }

  Status OneWorkspace(const toml::table& table, LaunchPlan& plan) const {
    ATUNNER_RETURN_IF_ERROR(KnownKeys(table, {"name", "bytes"}));
    Workspace workspace;
    ATUNNER_TRY(workspace.name, Text(table, "name"));
    if (table.get("bytes") == nullptr) return Bad(table, "'bytes' is missing");
    ATUNNER_TRY(workspace.bytes, Expression(*table.get("bytes"), "bytes"));
    plan.workspaces.push_back(std::move(workspace));
    return {};
  }

  Status Launch(const toml::table& table, LaunchPlan& plan) const {
    ATUNNER_RETURN_IF_ERROR(
        KnownKeys(table, {"kernel", "grid", "block", "cluster", "shared", "arguments"}));
    LaunchStep step;
    ATUNNER_TRY(step.entry, Text(table, "kernel"));
    for (const auto& [key, extents] :
         {std::pair("grid", &step.grid), std::pair("block", &step.block),
          std::pair("cluster", &step.cluster)}) {
      ATUNNER_TRY(const std::vector<Expr> stated, Expressions(table, key));
      if (stated.size() > 3)
        return Bad(*table.get(key), fmt::format("'{}' has at most three extents", key));
      if (stated.empty() && key != std::string("cluster"))
        return Bad(table, fmt::format("'{}' is missing", key));
      std::ranges::copy(stated, extents->begin());
    }
    if (const toml::node* shared = table.get("shared")) {
      ATUNNER_TRY(step.shared_bytes, Expression(*shared, "shared"));
    }
    ATUNNER_RETURN_IF_ERROR(LaunchArguments(table, step));
    plan.steps.push_back(std::move(step));
    return {};
  }

  /// Adds the listed arguments (arguments, workspaces, and "name:type" for a size or parameter), or
  /// every
  /// [[argument]] in order if none are listed.
  Status LaunchArguments(const toml::table& table, LaunchStep& step) const {
    const toml::node* stated = table.get("arguments");
    if (stated == nullptr) {
      for (const ArgSpec& arg : kernel_.spec.args) step.args.push_back(Binding(arg));
      return {};
    }
    const toml::array* list = stated->as_array();
    if (list == nullptr) return Bad(*stated, "'arguments' is a list of names");
    for (const toml::node& each : *list) {
      const std::string name = AsText(each).value_or("");
      ATUNNER_TRY(step.args.emplace_back(), ListedArgument(each, name));
    }
    return {};
  }

  Result<ArgBinding> ListedArgument(const toml::node& node, const std::string& name) const {
    if (const ArgSpec* arg = kernel_.spec.FindArg(name)) return Binding(*arg);
    if (const size_t colon = name.find(':'); colon != std::string::npos) {
      const auto type = ParseCType(Trim(name.substr(colon + 1)));
      auto value = Expr::Parse(name.substr(0, colon));
      if (!type || !value) return Bad(node, "'" + name + "': expected \"expression: type\"");
      return ArgBinding::Scalar(type->dtype, *value);
    }
    if (IsWorkspace(name)) return ArgBinding::Workspace(name);
    std::vector<std::string> known;
    for (const ArgSpec& one : kernel_.spec.args) known.push_back(one.name);
    const std::string near = ClosestName(name, known);
    return Bad(node, "'" + name + "' is not an argument",
               near.empty() ? "name an [[argument]], a [[workspace]], or \"n: int32\""
                            : "did you mean '" + near + "'?");
  }

  bool IsWorkspace(const std::string& name) const {
    const toml::array* list = root_["workspace"].as_array();
    if (list == nullptr) return false;
    return std::ranges::any_of(*list, [&](const toml::node& each) {
      return each.is_table() && each.as_table()->get("name") &&
             AsText(*each.as_table()->get("name")) == name;
    });
  }

  static ArgBinding Binding(const ArgSpec& arg) {
    return arg.role == Role::kScalar ? ArgBinding::Scalar(arg.dtype, *arg.value)
                                     : ArgBinding::Tensor(arg.name);
  }

  Status Work() {
    // Buffers may be larger than the part that the kernel touches, so no minimum traffic is
    // claimed.
    kernel_.spec.bytes = Expr(0);
    if (const toml::node* bytes = root_.get("bytes")) {
      ATUNNER_TRY(kernel_.spec.bytes, Expression(*bytes, "bytes"));
    }
    if (const toml::node* flops = root_.get("flops")) {
      ATUNNER_TRY(kernel_.spec.flops, Expression(*flops, "flops"));
    }
    return Tolerances();
  }

  Status Tolerances() {
    ATUNNER_TRY(const toml::table* tolerance, Table(root_, "tolerance"));
    if (tolerance == nullptr) return {};
    ATUNNER_RETURN_IF_ERROR(KnownKeys(*tolerance, {"relative", "absolute", "nondeterminism"}));
    for (const auto& [key, target] : {std::pair("relative", &kernel_.spec.tolerance.relative),
                                      std::pair("absolute", &kernel_.spec.tolerance.absolute)}) {
      const toml::node* node = tolerance->get(key);
      if (node == nullptr) continue;
      const auto value = node->value<double>();
      if (!value || !(*value >= 0) || std::isinf(*value))
        return Bad(*node, fmt::format("'{}' must be a finite number of at least 0", key));
      *target = value;
    }
    kernel_.spec.tolerance.allow_nondeterminism = (*tolerance)["nondeterminism"].value_or(false);
    return {};
  }

  Status Reference() {
    ATUNNER_TRY(const toml::table* reference, Table(root_, "reference"));
    if (reference == nullptr) return {};
    ATUNNER_RETURN_IF_ERROR(
        KnownKeys(*reference, {"source", "options", "launch", "symbols", "workspace"}));
    RenderedKernel rendered;
    ATUNNER_RETURN_IF_ERROR(Source(*reference, rendered.source));
    ATUNNER_RETURN_IF_ERROR(Plan(*reference, rendered.plan));
    kernel_.reference = std::move(rendered);
    return {};
  }

  const toml::table& root_;
  std::string where_;
  const FileReader& read_;
  UserKernel kernel_;
};

}  // namespace

Result<UserKernel> ParseKernelToml(std::string_view text, const std::string& where,
                                   const FileReader& read) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    return Invalid(std::string(parsed.error().description()),
                   fmt::format("{}:{}", where, parsed.error().source().begin.line));
  }
  return Reader(parsed.table(), where, read).Run();
}

}  // namespace atunner
