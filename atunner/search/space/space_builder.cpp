#include "atunner/search/space/space_builder.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "atunner/model/expr/expr_program.h"
#include "atunner/search/space/level_order.h"
#include "atunner/search/space/state_table.h"

namespace atunner {
namespace {

using CellId = ExprProgram::CellId;

/// A constraint at the root of which no `and` is left: `a and b` are two.
struct Condition {
  CellId cell = 0;
  size_t constraint = 0;
  size_t level = 0;  ///< known when this many levels are bound
};

void SplitConjunction(const Expr::Node& node, std::vector<Expr::Node>& parts) {
  if (node.kind == Expr::Node::Kind::kAnd) {
    for (const Expr::Node& child : node.children) SplitConjunction(child, parts);
    return;
  }
  if (node.kind == Expr::Node::Kind::kCompare && node.compare_ops.size() > 1) {
    for (size_t i = 0; i < node.compare_ops.size(); ++i) {
      Expr::Node link;
      link.kind = Expr::Node::Kind::kCompare;
      link.children = {node.children[i], node.children[i + 1]};
      link.compare_ops = {node.compare_ops[i]};
      parts.push_back(std::move(link));
    }
    return;
  }
  parts.push_back(node);
}

/// Appends the parameters with several values, each once, in the order in which the expression
/// names them.
void CollectParameters(const Expr::Node& node, const ParameterSpace& space,
                       std::vector<size_t>& found) {
  if (node.kind == Expr::Node::Kind::kName) {
    const int at = space.Find(node.name);
    const auto p = static_cast<size_t>(at);
    if (at >= 0 && space.parameters[p].values.size() > 1 &&
        std::ranges::find(found, p) == found.end())
      found.push_back(p);
  }
  for (const Expr::Node& child : node.children) CollectParameters(child, space, found);
}

/// The order in which the parameters of one condition become levels.
enum class WithinCondition { kAsListed, kAsNamed };

std::string TooLarge(const std::string& parameter, size_t level, size_t levels, size_t states) {
  return "parameter '" + parameter + "', " + std::to_string(level + 1) + " of " +
         std::to_string(levels) + " in the order of construction, after " + std::to_string(states) +
         " different states of the constraints";
}

class Builder {
 public:
  Builder(const ParameterSpace& space, std::span<const Constraint> constraints, const Dims& dims,
          const BuildLimits& limits, WithinCondition order = WithinCondition::kAsListed)
      : space_(space),
        constraints_(constraints),
        dims_(dims),
        limits_(limits),
        within_condition_(order) {}

  bool exceeded_limits() const { return exceeded_limits_; }

  /// `skip` marks constraints to leave out.
  Result<DecisionDiagram> Run(const std::vector<bool>& skip) {
    ATUNNER_RETURN_IF_ERROR(Compile(skip));
    order_ = ChooseLevelOrder(space_, uses_);
    AssignLevels();
    std::vector<DecisionDiagram::Level> levels;
    StateTable states(1);
    // The first cell of a state is the number + 1 of a constraint that could not be computed, or 0.
    if (const auto start = StartState()) states.IdOf(std::span(&*start, 1));
    std::vector<CellId> live;
    for (size_t l = 0; l < order_.size(); ++l) {
      DecisionDiagram::Level level;
      StateTable next(1 + live_[l].size());
      ATUNNER_RETURN_IF_ERROR(BuildLevel(l, live, states, next, level));
      levels.push_back(std::move(level));
      live = live_[l];
      states = std::move(next);
    }
    for (size_t i = 0; i < states.count(); ++i) {
      if (const int64_t failed = states.Row(i)[0].integer)
        return Uncomputable(static_cast<size_t>(failed - 1));
    }
    if (states.count() == 0) return DecisionDiagram::FromRows({}, order_.size());
    return DecisionDiagram::FromLevels(std::move(levels));
  }

 private:
  Status Compile(const std::vector<bool>& skip) {
    for (const Parameter& parameter : space_.parameters) {
      if (parameter.values.size() == 1)
        program_.Bind(parameter.name, parameter.values[0]);
      else
        program_.Variable(parameter.name);
    }
    for (const auto& [name, extent] : dims_) program_.Bind(name, extent);
    for (size_t c = 0; c < constraints_.size(); ++c) {
      if (!skip[c]) ATUNNER_RETURN_IF_ERROR(CompileConstraint(c));
    }
    return {};
  }

  Status CompileConstraint(size_t c) {
    std::vector<Expr::Node> parts;
    SplitConjunction(constraints_[c].condition.root(), parts);
    for (const Expr::Node& part : parts) {
      auto cell = program_.Add(part);
      if (!cell) {
        cell.error().where = "constraint '" + constraints_[c].condition.text() + "'";
        return std::unexpected(cell.error());
      }
      conditions_.push_back({*cell, c, 0});
      std::vector<size_t>& parameters = uses_.emplace_back();
      CollectParameters(part, space_, parameters);
      if (within_condition_ == WithinCondition::kAsListed) std::ranges::sort(parameters);
    }
    return {};
  }

  /// Decides at which level each cell is computed and each condition tested, and which cells are
  /// live behind each level.
  void AssignLevels() {
    cells_ = program_.initial_cells();
    std::vector<size_t> level_of(cells_.size(), 0);  // 0: constant; l + 1: computed at level l
    std::vector<size_t> last_use(cells_.size(), 0);
    for (size_t l = 0; l < order_.size(); ++l) {
      const Parameter& parameter = space_.parameters[order_[l]];
      if (parameter.values.size() > 1) level_of[program_.Variable(parameter.name)] = l + 1;
    }
    AssignInstructions(level_of, last_use);
    tests_.resize(order_.size() + 1);
    for (Condition& condition : conditions_) {
      condition.level = level_of[condition.cell];
      tests_[condition.level].push_back(condition);
    }
    live_.resize(order_.size());
    for (CellId cell = 0; cell < cells_.size(); ++cell) {
      for (size_t l = level_of[cell]; l > 0 && l < last_use[cell]; ++l)
        live_[l - 1].push_back(cell);
    }
    for (const Parameter& parameter : space_.parameters) {
      std::vector<Cell>& cells = values_.emplace_back();
      for (const Value& value : parameter.values) cells.push_back(program_.CellOf(value));
    }
  }

  void AssignInstructions(std::vector<size_t>& level_of, std::vector<size_t>& last_use) {
    run_.resize(order_.size());
    for (const auto& instruction : program_.instructions()) {
      size_t level = 0;
      for (CellId operand : {instruction.a, instruction.b, instruction.c})
        level = std::max(level, level_of[operand]);
      level_of[instruction.to] = level;
      for (CellId operand : {instruction.a, instruction.b, instruction.c})
        last_use[operand] = std::max(last_use[operand], level);
      run_[level - 1].push_back(instruction);
    }
  }

  /// nullopt when a constraint without variables is false.
  std::optional<Cell> StartState() {
    Cell flag = Cell::Integer(0);
    for (const Condition& condition : tests_[0]) {
      const Cell& cell = cells_[condition.cell];
      if (cell.IsError())
        flag.integer = static_cast<int64_t>(condition.constraint + 1);
      else if (!ExprProgram::Truthy(cell, program_))
        return std::nullopt;
    }
    return flag;
  }

  Status BuildLevel(size_t l, const std::vector<CellId>& live, const StateTable& states,
                    StateTable& next, DecisionDiagram::Level& level) {
    level.parameter = order_[l];
    const std::vector<Cell>& values = values_[order_[l]];
    const CellId variable = values.size() > 1 ? program_.Variable(space_.parameters[order_[l]].name)
                                              : 0;
    std::vector<Cell> row(1 + live_[l].size());
    for (size_t node = 0; node < states.count(); ++node) {
      level.first_edge.push_back(static_cast<uint32_t>(level.edges.size()));
      const auto state = states.Row(node);
      for (size_t i = 0; i < live.size(); ++i) cells_[live[i]] = state[i + 1];
      for (size_t v = 0; v < values.size(); ++v) {
        if (values.size() > 1) cells_[variable] = values[v];
        row[0] = state[0];
        if (!Passes(l, row[0])) continue;
        for (size_t i = 0; i < live_[l].size(); ++i) row[i + 1] = cells_[live_[l][i]];
        level.edges.push_back({0, next.IdOf(row), static_cast<uint16_t>(v)});
      }
      edges_ += level.edges.size() - level.first_edge.back();
      steps_ += values.size();
      ATUNNER_RETURN_IF_ERROR(CheckLimits(l, next.count(), row.size()));
    }
    cells_stored_ += next.count() * row.size();
    level.first_edge.push_back(static_cast<uint32_t>(level.edges.size()));
    return {};
  }

  Status CheckLimits(size_t level, size_t states, size_t width) {
    exceeded_limits_ = edges_ > limits_.edges || steps_ > limits_.steps ||
                       cells_stored_ + states * width > limits_.cells;
    if (!exceeded_limits_) return {};
    return Invalid("the constraints tie too many values together to number what is valid",
                   TooLarge(space_.parameters[order_[level]].name, level, order_.size(), states),
                   "add constraints or remove values");
  }

  bool Passes(size_t l, Cell& flag) {
    for (const auto& instruction : run_[l]) program_.Run(instruction, cells_);
    for (const Condition& condition : tests_[l + 1]) {
      const Cell& cell = cells_[condition.cell];
      if (cell.IsError())
        flag.integer = static_cast<int64_t>(condition.constraint + 1);
      else if (!ExprProgram::Truthy(cell, program_))
        return false;
    }
    return true;
  }

  std::unexpected<Error> Uncomputable(size_t constraint) const {
    return Invalid("cannot be computed for every combination that the other constraints allow",
                   "constraint '" + constraints_[constraint].condition.text() + "'",
                   "guard divisions and powers: `x == 0 or y % x == 0`");
  }

  const ParameterSpace& space_;
  std::span<const Constraint> constraints_;
  const Dims& dims_;
  const BuildLimits& limits_;
  WithinCondition within_condition_;
  bool exceeded_limits_ = false;
  size_t edges_ = 0;
  size_t steps_ = 0;
  size_t cells_stored_ = 0;  ///< in the states of complete levels
  ExprProgram program_;
  std::vector<Condition> conditions_;
  std::vector<std::vector<size_t>> uses_;  ///< parameters of each condition
  std::vector<size_t> order_;
  std::vector<std::vector<ExprProgram::Instruction>> run_;
  std::vector<std::vector<Condition>> tests_;
  std::vector<std::vector<CellId>> live_;
  std::vector<std::vector<Cell>> values_;
  std::vector<Cell> cells_;
};

/// Leaves out one constraint after another for as long as the rest still contradicts itself.
std::unexpected<Error> NameContradiction(const ParameterSpace& space,
                                         std::span<const Constraint> constraints, const Dims& dims,
                                         const BuildLimits& limits) {
  std::vector<bool> skip(constraints.size(), false);
  for (size_t c = 0; c < skip.size(); ++c) {
    skip[c] = true;
    const auto rest = Builder(space, constraints, dims, limits).Run(skip);
    if (!rest || rest->size() > 0) skip[c] = false;
  }
  std::string names;
  size_t count = 0;
  for (size_t c = 0; c < skip.size(); ++c) {
    if (skip[c]) continue;
    names += (count++ ? "' and '" : "constraint '") + constraints[c].condition.text();
  }
  return Invalid("no configuration satisfies all constraints", names + "'",
                 count == 1
                     ? "nothing fulfils this one: widen it or the values it uses"
                     : "these contradict each other: widen one of them or the values they use");
}

/// Limits for one of several attempts.
BuildLimits Fraction(const BuildLimits& limits, size_t parts) {
  return {limits.edges / parts, limits.cells / parts, limits.steps / parts};
}

}  // namespace

Result<DecisionDiagram> BuildDiagram(const ParameterSpace& space, const Dims& dims,
                                     const BuildLimits& limits) {
  ATUNNER_TRY(const std::vector<Constraint> constraints, space.AllConstraints());
  const std::vector<bool> none(constraints.size(), false);
  const BuildLimits tenth = Fraction(limits, 10);
  // Sums and products have few states when their parameters become levels in the order in which the
  // expression names them. That is tried when the usual order turns out to be expensive.
  Builder first(space, constraints, dims, tenth);
  auto diagram = first.Run(none);
  if (first.exceeded_limits()) {
    Builder second(space, constraints, dims, tenth, WithinCondition::kAsNamed);
    diagram = second.Run(none);
    if (second.exceeded_limits()) diagram = Builder(space, constraints, dims, limits).Run(none);
  }
  if (diagram && diagram->size() == 0) return NameContradiction(space, constraints, dims, tenth);
  return diagram;
}

}  // namespace atunner
