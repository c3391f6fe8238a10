#include "atunner/graph/evaluate/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "atunner/graph/evaluate/evaluate_map.h"
#include "atunner/graph/evaluate/evaluate_sums.h"
#include "atunner/graph/evaluate/tensor_view.h"

namespace atunner::graph {
namespace {

Extents NumbersOf(const Shape& shape) {
  Extents extents;
  for (const Extent& extent : shape) extents.push_back(extent.factor());
  return extents;
}

/// A dense shape seen from one axis: [outer, extent, inner].
struct Around {
  int64_t outer, extent, inner;
  Around(const Extents& extents, int64_t axis)
      : outer(Product(std::span(extents).first(axis))),
        extent(extents[axis]),
        inner(Product(std::span(extents).subspan(axis + 1))) {}
};

class Evaluator {
 public:
  Evaluator(const ValidGraph& graph, Precision precision) : graph_(graph), precision_(precision) {}

  std::vector<Tensor> Run(std::span<const Tensor> inputs) {
    std::vector<int> uses = graph_.UseCounts();
    values_.resize(graph_.nodes().size());
    for (size_t i = 0; i < inputs.size(); ++i)
      values_[graph_.inputs()[i]] = View::Dense(inputs[i].cells, inputs[i].shape);
    for (size_t id = 0; id < graph_.nodes().size(); ++id) {
      const Node& node = graph_.nodes()[id];
      if (node.As<Input>() || uses[id] == 0) continue;
      values_[id] = Compute(node);
      for (NodeId operand : node.operands) {
        if (--uses[operand] == 0) values_[operand] = {};
      }
    }
    std::vector<Tensor> outputs;
    for (const auto& output : graph_.outputs()) {
      const TensorType& type = graph_.node(output.node).type;
      outputs.push_back({type.dtype, NumbersOf(type.shape), *Detached(values_[output.node]).cells});
    }
    return outputs;
  }

 private:
  View Compute(const Node& node) {
    node_ = &node;
    shape_ = NumbersOf(node.type.shape);
    return std::visit([this](const auto& operation) { return Of(operation); }, node.operation);
  }
  const View& Operand(size_t i) const { return values_[node_->operands[i]]; }
  DType OperandType(size_t i) const { return graph_.node(node_->operands[i]).type.dtype; }
  bool float64() const {
    return precision_ == Precision::kExact || node_->type.dtype == DType::kFloat64;
  }

  /// The view's elements as a tensor of their own.
  static View Detached(const View& view) {
    View packed = view.Packed();
    if (packed.offset == 0 && packed.cells->size() == static_cast<size_t>(packed.size()))
      return packed;
    return View::Dense({packed.base(), packed.base() + packed.size()}, packed.extents);
  }

  /// The elements of a node's result, rounded to its type if the precision is kDeclared.
  View Made(std::vector<Cell> cells) const {
    const DType dtype = node_->type.dtype;
    const bool rounds = IsFloat(dtype)
                            ? precision_ == Precision::kDeclared && dtype != DType::kFloat64
                            : SizeOf(dtype) < 8;
    if (rounds) {
      for (Cell& cell : cells) cell = Rounded(dtype, cell);
    }
    return View::Dense(std::move(cells), shape_);
  }

  View Of(const Input&) const { return {}; }
  View Of(const Constant& constant) const {
    std::vector<Cell> cells = constant.values;
    if (cells.size() == 1) {
      View one = View::Dense(std::move(cells), {1});
      one.extents = shape_;
      one.strides.assign(shape_.size(), 0);
      return one;
    }
    return View::Dense(std::move(cells), shape_);
  }

  View Of(const Map& map) const {
    std::vector<View> operands;
    for (size_t i = 0; i < node_->operands.size(); ++i) operands.push_back(Operand(i));
    return Made(EvaluateMap(map.body, operands, shape_, precision_));
  }
  View Of(const Reduce& reduce) const {
    return Made(EvaluateReduce(reduce, Operand(0), OperandType(0), float64()));
  }
  View Of(const Contract& contract) const {
    const bool wide = precision_ == Precision::kExact || OperandType(0) == DType::kFloat64;
    return Made(EvaluateContract(contract, Operand(0), Operand(1), IsFloat(OperandType(0)), wide));
  }

  View Of(const Scan& scan) const {
    const View x = Operand(0).Packed();
    const Around a(shape_, scan.axis);
    std::vector<Cell> cells(x.base(), x.base() + x.size());
    for (int64_t o = 0; o < a.outer; ++o) {
      for (int64_t i = 0; i < a.inner; ++i) {
        Cell total = Neutral(scan.op, node_->type.dtype);
        for (int64_t k = 0; k < a.extent; ++k) {
          Cell& cell = cells[(o * a.extent + (scan.reverse ? a.extent - 1 - k : k)) * a.inner + i];
          const Cell next = Combined(scan.op, node_->type.dtype, total, cell, float64());
          cell = scan.exclusive ? total : next;
          total = next;
        }
      }
    }
    return Made(std::move(cells));
  }

  // --- views ---

  View Of(const Window& window) const {
    View view = Operand(0);
    const int64_t stride = view.strides[window.axis];
    view.extents = shape_;
    view.strides[window.axis] = stride * window.stride;
    view.strides.insert(view.strides.begin() + window.axis + 1, stride * window.dilation);
    return view;
  }
  View Of(const Reshape&) const {
    View view = Operand(0).Packed();
    view.extents = shape_;
    view.strides = DenseStrides(shape_);
    return view;
  }
  View Of(const Transpose& transpose) const {
    View view = Operand(0);
    for (size_t i = 0; i < transpose.order.size(); ++i)
      view.strides[i] = Operand(0).strides[transpose.order[i]];
    view.extents = shape_;
    return view;
  }
  View Of(const Slice& slice) const {
    View view = Operand(0);
    view.offset += slice.start * view.strides[slice.axis];
    view.strides[slice.axis] *= slice.step;
    view.extents = shape_;
    return view;
  }
  View Of(const Reverse& reverse) const {
    View view = Operand(0);
    int64_t& stride = view.strides[reverse.axis];
    view.offset += stride * (view.extents[reverse.axis] - 1);
    stride = -stride;
    return view;
  }

  // --- copies ---

  View Of(const Pad& pad) const {
    const View x = Operand(0).Packed();
    std::vector<Cell> cells(static_cast<size_t>(Product(shape_)),
                            CellOf(node_->type.dtype, pad.value));
    const Around from(x.extents, pad.axis);
    const int64_t extent = shape_[pad.axis];
    for (int64_t o = 0; o < from.outer; ++o) {
      for (int64_t k = 0; k < from.extent; ++k) {
        const Cell* row = x.base() + (o * from.extent + k) * from.inner;
        std::copy(row, row + from.inner,
                  &cells[(o * extent + pad.low + k * (pad.inner + 1)) * from.inner]);
      }
    }
    return Made(std::move(cells));
  }
  View Of(const Concat& concat) const {
    std::vector<Cell> cells(static_cast<size_t>(Product(shape_)));
    const Around to(shape_, concat.axis);
    int64_t done = 0;
    for (size_t i = 0; i < node_->operands.size(); ++i) {
      const View x = Operand(i).Packed();
      const int64_t row = x.extents[concat.axis] * to.inner;
      for (int64_t o = 0; o < to.outer; ++o)
        std::copy_n(x.base() + o * row, row, &cells[(o * to.extent + done) * to.inner]);
      done += x.extents[concat.axis];
    }
    return View::Dense(std::move(cells), shape_);
  }
  View Of(const Fold& fold) const {
    const View x = Operand(0).Packed();
    const Around windows(x.extents, fold.axis);
    const int64_t size = x.extents[fold.axis + 1];
    const int64_t inner = windows.inner / size;
    const DType dtype = node_->type.dtype;
    std::vector<Cell> cells(static_cast<size_t>(Product(shape_)), CellOf(dtype, 0));
    for (int64_t o = 0; o < windows.outer; ++o) {
      for (int64_t p = 0; p < windows.extent; ++p) {
        for (int64_t r = 0; r < size; ++r) {
          const int64_t place = o * fold.extent + p * fold.stride + r * fold.dilation;
          const Cell* from = x.base() + ((o * windows.extent + p) * size + r) * inner;
          for (int64_t i = 0; i < inner; ++i) {
            Cell& sum = cells[place * inner + i];
            sum = Combined(Combine::kSum, dtype, sum, from[i], float64());
          }
        }
      }
    }
    return Made(std::move(cells));
  }

  /// Calls visit(o, slice, index) for every index of a gather or scatter and each `o` of the
  /// `outer` elements before the axis. `slice` is the number of the slice in the gathered shape.
  template <class Visit>
  static void ForEachIndex(const View& indices, int64_t batch, int64_t outer, const Visit& visit) {
    const View packed = indices.Packed();
    const int64_t batches = Product(std::span(packed.extents).first(batch));
    const int64_t per_batch = packed.size() / batches;
    for (int64_t o = 0; o < outer; ++o) {
      const Cell* from = packed.base() + o / (outer / batches) * per_batch;
      for (int64_t p = 0; p < per_batch; ++p) visit(o, o * per_batch + p, from[p].whole);
    }
  }
  View Of(const Gather& gather) const {
    const View x = Operand(0).Packed();
    const Around a(x.extents, gather.axis);
    std::vector<Cell> cells(static_cast<size_t>(Product(shape_)));
    ForEachIndex(Operand(1), gather.batch, a.outer, [&](int64_t o, int64_t slice, int64_t index) {
      const int64_t inside = std::clamp<int64_t>(index, 0, a.extent - 1);
      std::copy_n(x.base() + (o * a.extent + inside) * a.inner, a.inner, &cells[slice * a.inner]);
    });
    return View::Dense(std::move(cells), shape_);
  }
  View Of(const Scatter& scatter) const {
    const View x = Operand(0).Packed();
    const View updates = Operand(2).Packed();
    const Around a(x.extents, scatter.axis);
    std::vector<Cell> cells(x.base(), x.base() + x.size());
    ForEachIndex(Operand(1), scatter.batch, a.outer, [&](int64_t o, int64_t slice, int64_t index) {
      if (index < 0 || index >= a.extent) return;
      Cell* to = &cells[(o * a.extent + index) * a.inner];
      const Cell* from = updates.base() + slice * a.inner;
      for (int64_t i = 0; i < a.inner; ++i)
        to[i] = scatter.op == Combine::kSet
                    ? from[i]
                    : Combined(scatter.op, node_->type.dtype, to[i], from[i], float64());
    });
    return Made(std::move(cells));
  }

  View Of(const Sort& sort) const {
    const View x = Operand(0).Packed();
    const Around a(x.extents, sort.axis);
    const bool real = IsFloat(OperandType(0));
    const int64_t count = shape_[sort.axis];
    std::vector<Cell> cells(static_cast<size_t>(Product(shape_)));
    std::vector<int64_t> order(static_cast<size_t>(a.extent));
    for (int64_t o = 0; o < a.outer; ++o) {
      for (int64_t i = 0; i < a.inner; ++i) {
        const Cell* row = x.base() + o * a.extent * a.inner + i;
        const auto less = [&](int64_t l, int64_t r) {
          const Cell p = row[l * a.inner];
          const Cell q = row[r * a.inner];
          if (!real) return p.whole < q.whole;
          return std::isnan(q.real) ? !std::isnan(p.real) : p.real < q.real;
        };
        std::iota(order.begin(), order.end(), 0);
        std::ranges::stable_sort(
            order, [&](int64_t l, int64_t r) { return sort.descending ? less(r, l) : less(l, r); });
        for (int64_t k = 0; k < count; ++k) cells[(o * count + k) * a.inner + i] = Whole(order[k]);
      }
    }
    return View::Dense(std::move(cells), shape_);
  }

  const ValidGraph& graph_;
  Precision precision_;
  std::vector<View> values_;
  const Node* node_ = nullptr;
  Extents shape_;  ///< the shape of node_
};

Status CheckInputs(const ValidGraph& graph, std::span<const Tensor> inputs) {
  const std::string where = "evaluating " + graph.name();
  if (!graph.symbols().empty())
    return Invalid("the size " + graph.symbols().begin()->first + " is open", where,
                   "Specialise the graph first");
  if (inputs.size() != graph.inputs().size())
    return Invalid(std::to_string(graph.inputs().size()) + " inputs are needed, " +
                       std::to_string(inputs.size()) + " given",
                   where);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Node& node = graph.node(graph.inputs()[i]);
    const bool same = inputs[i].dtype == node.type.dtype &&
                      inputs[i].shape == NumbersOf(node.type.shape) &&
                      static_cast<int64_t>(inputs[i].cells.size()) == Product(inputs[i].shape);
    if (!same) return Invalid("input '" + node.name + "' must be " + node.type.ToString(), where);
  }
  return {};
}

}  // namespace

Tensor Tensor::Of(DType dtype, std::vector<int64_t> shape, std::span<const double> values) {
  Tensor tensor{dtype, std::move(shape), {}};
  tensor.cells.reserve(values.size());
  for (double value : values) tensor.cells.push_back(CellOf(dtype, value));
  return tensor;
}

std::vector<double> Tensor::Reals() const {
  std::vector<double> values;
  values.reserve(cells.size());
  for (Cell cell : cells) values.push_back(ToReal(dtype, cell));
  return values;
}

Result<std::vector<Tensor>> Evaluate(const ValidGraph& graph, std::span<const Tensor> inputs,
                                     Precision precision) {
  ATUNNER_RETURN_IF_ERROR(CheckInputs(graph, inputs));
  return Evaluator(graph, precision).Run(inputs);
}

}  // namespace atunner::graph
