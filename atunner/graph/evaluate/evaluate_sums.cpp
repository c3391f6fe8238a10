#include "atunner/graph/evaluate/evaluate_sums.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "atunner/graph/scalar_math.h"

namespace atunner::graph {
namespace {

int64_t Lowest(DType dtype) {
  const int bits = static_cast<int>(SizeOf(dtype)) * 8;
  return KindOf(dtype) == DTypeKind::kUnsigned ? 0
                                               : std::numeric_limits<int64_t>::min() >> (64 - bits);
}
int64_t Highest(DType dtype) {
  const int bits = static_cast<int>(SizeOf(dtype)) * 8;
  return KindOf(dtype) == DTypeKind::kUnsigned ? (int64_t{1} << bits) - 1 : ~Lowest(dtype);
}

/// The index of the largest (smallest) element: the first of equal ones, and the first NaN if any.
class Best {
 public:
  Best(bool largest, bool real) : largest_(largest), real_(real) {}
  void See(Cell value, int64_t place) {
    if (place_ >= 0 && !Beats(value)) return;
    value_ = value;
    place_ = place;
  }
  int64_t place() const { return place_; }

 private:
  bool Beats(Cell value) const {
    if (!real_) return largest_ ? value.whole > value_.whole : value.whole < value_.whole;
    if (std::isnan(value_.real)) return false;
    if (std::isnan(value.real)) return true;
    return largest_ ? value.real > value_.real : value.real < value_.real;
  }
  bool largest_;
  bool real_;
  Cell value_{};
  int64_t place_ = -1;
};

template <class Number>
Number Get(Cell cell) {
  if constexpr (std::is_same_v<Number, uint64_t>)
    return static_cast<uint64_t>(cell.whole);
  else
    return static_cast<Number>(cell.real);
}

/// A dot product in four partial sums, which shortens the chain of additions and can be vectorised.
template <bool SPARSE, class Number>
Number Dot(const Number* a, const Number* b, int64_t count) {
  const auto product = [&](int64_t at) {
    return SPARSE && (a[at] == 0 || b[at] == 0) ? Number(0) : a[at] * b[at];
  };
  Number sums[4] = {};
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (int k = 0; k < 4; ++k) sums[k] += product(i + k);
  }
  for (; i < count; ++i) sums[0] += product(i);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

Extents Pick(const std::string& letters, const std::string& from, const Extents& values) {
  Extents picked;
  for (char letter : letters) {
    const size_t at = from.find(letter);
    picked.push_back(at == std::string::npos ? 0 : values[at]);
  }
  return picked;
}

/// A contraction as matrix products of [batch, rows, depth] with [batch, columns, depth].
struct Plan {
  std::string batch, rows, columns, depth, left_only, right_only;
};
Plan PlanOf(const Equation& e) {
  Plan plan;
  const auto in = [](const std::string& text, char letter) {
    return text.find(letter) != std::string::npos;
  };
  for (char letter : e.result) {
    (in(e.left, letter) && in(e.right, letter) ? plan.batch
     : in(e.left, letter)                      ? plan.rows
                                               : plan.columns) += letter;
  }
  for (char letter : e.left) {
    if (!in(e.result, letter)) plan.depth += letter;
  }
  for (char letter : e.right) {
    if (!in(e.result, letter) && !in(e.left, letter)) plan.depth += letter;
  }
  return plan;
}

/// The operand as a dense [batch, free, depth]; it is broadcast along letters that it lacks.
template <class Number>
std::vector<Number> Matrices(const View& x, const std::string& letters, const std::string& order,
                             const Extents& extents) {
  View view = x;
  view.extents = extents;
  view.strides = Pick(order, letters, x.strides);
  std::vector<Number> dense(static_cast<size_t>(view.size()));
  const Walk walk(view.extents, {view.strides});
  const int64_t step = walk.steps()[0];
  walk.Run([&](int64_t first, int64_t length, std::span<const int64_t> at) {
    for (int64_t i = 0; i < length; ++i)
      dense[first + i] = Get<Number>(view.base()[at[0] + i * step]);
  });
  return dense;
}

/// Calls use(number, offsets) for each element of a shape: its row-major index, and its offset in
/// each operand.
template <class Use>
void ForEachElement(const Extents& shape, const std::vector<Extents>& strides, const Use& use) {
  const Walk walk(shape, strides);
  Extents places(strides.size());
  walk.Run([&](int64_t first, int64_t length, std::span<const int64_t> at) {
    for (int64_t i = 0; i < length; ++i) {
      for (size_t k = 0; k < places.size(); ++k) places[k] = at[k] + i * walk.steps()[k];
      use(first + i, places);
    }
  });
}

View Moved(View view, int64_t by) {
  view.offset += by;
  return view;
}

Extents Joined(const Extents& a, const Extents& b) {
  Extents all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

template <class Number, bool SPARSE>
class Multiplication {
 public:
  Multiplication(const Equation& equation, const View& left, const View& right)
      : e_(equation),
        left_(left),
        right_(right),
        plan_(PlanOf(equation)),
        batch_(ExtentsOf(plan_.batch)),
        rows_(ExtentsOf(plan_.rows)),
        columns_(ExtentsOf(plan_.columns)),
        depth_(ExtentsOf(plan_.depth)) {}

  std::vector<Cell> Run() const {
    const Extents computed = Joined(batch_, Joined(rows_, columns_));
    std::vector<Cell> cells(static_cast<size_t>(Product(computed)));
    const int64_t of_matrix = Product(rows_) * Product(columns_);
    const Extents batch_left = Pick(plan_.batch, e_.left, left_.strides);
    const Extents batch_right = Pick(plan_.batch, e_.right, right_.strides);
    ForEachElement(batch_, {batch_left, batch_right}, [&](int64_t matrix, const Extents& at) {
      MultiplyMatrix(Moved(left_, at[0]), Moved(right_, at[1]), cells.data() + matrix * of_matrix);
    });
    View result = View::Dense(std::move(cells), computed);
    const std::string order = plan_.batch + plan_.rows + plan_.columns;
    result.strides = Pick(e_.result, order, result.strides);
    result.extents = Pick(e_.result, order, computed);
    const View packed = result.Packed();
    return {packed.base(), packed.base() + packed.size()};
  }

 private:
  Extents ExtentsOf(const std::string& letters) const {
    Extents extents = Pick(letters, e_.left, left_.extents);
    const Extents right = Pick(letters, e_.right, right_.extents);
    for (size_t i = 0; i < extents.size(); ++i) extents[i] = std::max(extents[i], right[i]);
    return extents;
  }

  /// Copies one matrix of the right operand and one row of the left at a time, so that the windows
  /// of an image are never all in memory.
  void MultiplyMatrix(const View& left, const View& right, Cell* out) const {
    const int64_t n = Product(columns_), k = Product(depth_);
    const auto matrix = Matrices<Number>(right, e_.right, plan_.columns + plan_.depth,
                                         Joined(columns_, depth_));
    ForEachElement(
        rows_, {Pick(plan_.rows, e_.left, left_.strides)}, [&](int64_t row, const Extents& at) {
          const auto values = Matrices<Number>(Moved(left, at[0]), e_.left, plan_.depth, depth_);
          for (int64_t c = 0; c < n; ++c) {
            const Number sum = Dot<SPARSE>(values.data(), matrix.data() + c * k, k);
            Cell& cell = out[row * n + c];
            if constexpr (std::is_same_v<Number, uint64_t>)
              cell.whole = static_cast<int64_t>(sum);
            else
              cell.real = sum;
          }
        });
  }

  const Equation& e_;
  const View& left_;
  const View& right_;
  const Plan plan_;
  const Extents batch_, rows_, columns_, depth_;
};

template <class Number, bool SPARSE = false>
std::vector<Cell> Multiply(const Equation& e, const View& a, const View& b) {
  return Multiplication<Number, SPARSE>(e, a, b).Run();
}

}  // namespace

Cell Neutral(Combine op, DType dtype) {
  switch (op) {
    case Combine::kProd:
      return CellOf(dtype, 1);
    case Combine::kMax:
      return IsFloat(dtype) ? Real(-INFINITY) : Whole(Lowest(dtype));
    case Combine::kMin:
      return IsFloat(dtype) ? Real(INFINITY) : Whole(Highest(dtype));
    case Combine::kAll:
      return Whole(1);
    default:
      return CellOf(dtype, 0);
  }
}

Cell Combined(Combine op, DType dtype, Cell a, Cell b, bool wide) {
  const bool real = IsFloat(dtype);
  const auto rounded = [&](double value) {
    return Real(wide ? value : static_cast<double>(static_cast<float>(value)));
  };
  switch (op) {
    case Combine::kProd:
      return real ? rounded(a.real * b.real)
                  : Whole(static_cast<int64_t>(static_cast<uint64_t>(a.whole) *
                                               static_cast<uint64_t>(b.whole)));
    case Combine::kMax:
      return real ? Real(Maximum(a.real, b.real)) : Whole(std::max(a.whole, b.whole));
    case Combine::kMin:
      return real ? Real(Minimum(a.real, b.real)) : Whole(std::min(a.whole, b.whole));
    case Combine::kAny:
      return Whole(a.whole | b.whole);
    case Combine::kAll:
      return Whole(a.whole & b.whole);
    default:
      return real ? rounded(a.real + b.real)
                  : Whole(static_cast<int64_t>(static_cast<uint64_t>(a.whole) +
                                               static_cast<uint64_t>(b.whole)));
  }
}

std::vector<Cell> EvaluateReduce(const Reduce& reduce, const View& x, DType dtype, bool wide) {
  Extents kept;
  Extents kept_strides;
  Extents reduced;
  Extents reduced_strides;
  for (size_t i = 0; i < x.extents.size(); ++i) {
    const bool gone = std::ranges::find(reduce.axes, static_cast<int64_t>(i)) != reduce.axes.end();
    (gone ? reduced : kept).push_back(x.extents[i]);
    (gone ? reduced_strides : kept_strides).push_back(x.strides[i]);
  }
  const auto count = static_cast<double>(Product(reduced));
  const bool place = reduce.op == Combine::kArgMax || reduce.op == Combine::kArgMin;
  const bool real = IsFloat(dtype);
  const DType type = real || reduce.op == Combine::kMax || reduce.op == Combine::kMin
                         ? dtype
                         : DType::kInt64;
  std::vector<Cell> cells(static_cast<size_t>(Product(kept)));
  const Walk inside(reduced, {reduced_strides});
  const int64_t step = inside.steps()[0];
  const Walk outside(kept, {kept_strides});
  outside.Run([&](int64_t first, int64_t length, std::span<const int64_t> start) {
    for (int64_t i = 0; i < length; ++i) {
      const Cell* base = x.base() + start[0] + i * outside.steps()[0];
      Cell total = Neutral(reduce.op, type);
      Best best(reduce.op == Combine::kArgMax, real);
      inside.Run([&](int64_t number, int64_t run, std::span<const int64_t> at) {
        const Cell* from = base + at[0];
        if (real && wide && (reduce.op == Combine::kSum || reduce.op == Combine::kMean)) {
          double sum = total.real;
          for (int64_t k = 0; k < run; ++k) sum += from[k * step].real;
          total.real = sum;
          return;
        }
        for (int64_t k = 0; k < run; ++k) {
          if (place)
            best.See(from[k * step], number + k);
          else
            total = Combined(reduce.op, type, total, from[k * step], wide);
        }
      });
      if (reduce.op == Combine::kMean) total.real /= count;
      cells[first + i] = place ? Whole(best.place()) : total;
    }
  });
  return cells;
}

std::vector<Cell> EvaluateContract(const Contract& contract, const View& a, const View& b,
                                   bool real, bool wide) {
  const Equation e = ParsedEquation(contract.equation);
  if (!real) return Multiply<uint64_t>(e, a, b);  // unsigned, because int64 must wrap
  if (contract.sparse)
    return wide ? Multiply<double, true>(e, a, b) : Multiply<float, true>(e, a, b);
  return wide ? Multiply<double>(e, a, b) : Multiply<float>(e, a, b);
}

}  // namespace atunner::graph
