#include "atunner/search/space/space_builder.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "atunner/model/expr/expr_program.h"

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

/// Variables of each condition, as parameter numbers.
void CollectParameters(const Expr::Node& node, const ParameterSpace& space,
                       std::set<size_t>& found) {
  if (node.kind == Expr::Node::Kind::kName) {
    const int at = space.Find(node.name);
    if (at >= 0 && space.parameters[static_cast<size_t>(at)].values.size() > 1)
      found.insert(static_cast<size_t>(at));
  }
  for (const Expr::Node& child : node.children) CollectParameters(child, space, found);
}

/// Parameters level by level: always the condition next that costs the fewest new combinations, so
/// that as much as possible is ruled out early and groups that share no condition stay apart.
std::vector<size_t> ChooseOrder(const ParameterSpace& space,
                                const std::vector<std::set<size_t>>& uses) {
  std::vector<size_t> order;
  std::vector<bool> placed(space.parameters.size(), false);
  std::vector<bool> done(uses.size(), false);
  for (size_t step = 0; step < uses.size(); ++step) {
    size_t best = uses.size();
    std::pair<bool, double> least{true, INFINITY};
    for (size_t c = 0; c < uses.size(); ++c) {
      if (done[c]) continue;
      double combinations = 1;
      bool touches = order.empty();
      for (size_t p : uses[c]) {
        if (placed[p])
          touches = true;
        else
          combinations *= static_cast<double>(space.parameters[p].values.size());
      }
      if (std::pair(!touches, combinations) < least) {
        least = {!touches, combinations};
        best = c;
      }
    }
    if (best == uses.size())
      best = static_cast<size_t>(std::ranges::find(done, false) - done.begin());
    done[best] = true;
    for (size_t p : uses[best]) {
      if (!placed[p]) order.push_back(p);
      placed[p] = true;
    }
  }
  for (size_t p = 0; p < placed.size(); ++p) {
    if (!placed[p]) order.push_back(p);
  }
  return order;
}

/// Distinct states of one level, as rows of cells.
class StateTable {
 public:
  explicit StateTable(size_t width) : width_(width), slots_(1024, kNone) {}
  size_t count() const { return count_; }
  std::span<const Cell> Row(size_t i) const {
    return std::span(cells_).subspan(i * width_, width_);
  }

  uint32_t IdOf(std::span<const Cell> row) {
    uint64_t hash = 0x9e3779b97f4a7c15ull;
    for (const Cell& cell : row) {
      hash = (hash ^ static_cast<uint64_t>(cell.integer)) * 0xff51afd7ed558ccdull +
             static_cast<uint64_t>(cell.kind);
      hash ^= hash >> 32;
    }
    if (2 * (count_ + 1) > slots_.size()) Grow();
    size_t at = hash & (slots_.size() - 1);
    for (; slots_[at] != kNone; at = (at + 1) & (slots_.size() - 1)) {
      if (hashes_[slots_[at]] == hash && std::ranges::equal(Row(slots_[at]), row))
        return slots_[at];
    }
    slots_[at] = static_cast<uint32_t>(count_++);
    hashes_.push_back(hash);
    cells_.insert(cells_.end(), row.begin(), row.end());
    return slots_[at];
  }

 private:
  static constexpr uint32_t kNone = ~0u;
  void Grow() {
    slots_.assign(slots_.size() * 4, kNone);
    for (size_t i = 0; i < count_; ++i) {
      size_t at = hashes_[i] & (slots_.size() - 1);
      while (slots_[at] != kNone) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = static_cast<uint32_t>(i);
    }
  }

  size_t width_;
  size_t count_ = 0;
  std::vector<Cell> cells_;
  std::vector<uint64_t> hashes_;
  std::vector<uint32_t> slots_;
};

class Builder {
 public:
  Builder(const ParameterSpace& space, std::span<const Constraint> constraints, const Dims& dims,
          size_t most_edges)
      : space_(space), constraints_(constraints), dims_(dims), most_edges_(most_edges) {}

  /// `skip` marks constraints to leave out.
  Result<DecisionDiagram> Run(const std::vector<bool>& skip) {
    ATUNNER_RETURN_IF_ERROR(Compile(skip));
    Schedule();
    std::vector<DecisionDiagram::Level> levels;
    StateTable states(1);
    // The first cell of a state says which constraint could not be computed: 0 none, else its
    // number + 1.
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
      if (skip[c]) continue;
      std::vector<Expr::Node> parts;
      SplitConjunction(constraints_[c].condition.root(), parts);
      for (const Expr::Node& part : parts) {
        auto cell = program_.Add(part);
        if (!cell) {
          cell.error().where = "constraint '" + constraints_[c].condition.text() + "'";
          return std::unexpected(cell.error());
        }
        conditions_.push_back({*cell, c, 0});
        CollectParameters(part, space_, uses_.emplace_back());
      }
    }
    return {};
  }

  /// Which level computes which cell, and which cells outlive it.
  void Schedule() {
    order_ = ChooseOrder(space_, uses_);
    cells_ = program_.initial_cells();
    std::vector<size_t> level_of(cells_.size(), 0);  // 0: constant; l + 1: computed at level l
    for (size_t l = 0; l < order_.size(); ++l) {
      const Parameter& parameter = space_.parameters[order_[l]];
      if (parameter.values.size() > 1) level_of[program_.Variable(parameter.name)] = l + 1;
    }
    run_.resize(order_.size());
    std::vector<size_t> last_use(cells_.size(), 0);
    for (const auto& instruction : program_.instructions()) {
      size_t level = 0;
      for (CellId operand : {instruction.a, instruction.b, instruction.c})
        level = std::max(level, level_of[operand]);
      level_of[instruction.to] = level;
      for (CellId operand : {instruction.a, instruction.b, instruction.c})
        last_use[operand] = std::max(last_use[operand], level);
      run_[level - 1].push_back(instruction);
    }
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
      if (edges_ > most_edges_)
        return Fail(ErrorCode::kInvalidInput,
                    "the constraints tie too many values together to number what is valid",
                    "parameter '" + space_.parameters[order_[l]].name + "'",
                    "add constraints or remove values");
    }
    level.first_edge.push_back(static_cast<uint32_t>(level.edges.size()));
    return {};
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
  size_t most_edges_;
  size_t edges_ = 0;
  ExprProgram program_;
  std::vector<Condition> conditions_;
  std::vector<std::set<size_t>> uses_;
  std::vector<size_t> order_;
  std::vector<std::vector<ExprProgram::Instruction>> run_;
  std::vector<std::vector<Condition>> tests_;
  std::vector<std::vector<CellId>> live_;
  std::vector<std::vector<Cell>> values_;
  std::vector<Cell> cells_;
};

/// Leaves out one constraint after another for as long as the rest still contradicts itself.
std::unexpected<Error> NameCulprits(const ParameterSpace& space,
                                    std::span<const Constraint> constraints, const Dims& dims,
                                    size_t most_edges) {
  std::vector<bool> skip(constraints.size(), false);
  for (size_t c = 0; c < skip.size(); ++c) {
    skip[c] = true;
    const auto rest = Builder(space, constraints, dims, most_edges).Run(skip);
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

}  // namespace

Result<DecisionDiagram> BuildDiagram(const ParameterSpace& space, const Dims& dims,
                                     size_t most_edges) {
  ATUNNER_TRY(const std::vector<Constraint> constraints, space.AllConstraints());
  const std::vector<bool> none(constraints.size(), false);
  auto diagram = Builder(space, constraints, dims, most_edges).Run(none);
  if (diagram && diagram->size() == 0) return NameCulprits(space, constraints, dims, most_edges);
  return diagram;
}

}  // namespace atunner
