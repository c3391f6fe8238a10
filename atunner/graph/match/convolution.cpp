#include "atunner/graph/match/convolution.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "atunner/graph/match/product.h"

namespace atunner::graph {
namespace {

/// The index along an axis as a linear function of the indices of the contraction's letters:
/// divisor · index = Σ factor · letter + constant. Letters of extent 1 do not occur.
struct AxisIndex {
  std::map<char, int64_t> terms;
  int64_t constant = 0, divisor = 1;

  bool plain() const { return constant == 0 && divisor == 1; }
  void AddTimes(const AxisIndex& other, int64_t factor) {
    for (const auto& [letter, times] : other.terms) terms[letter] += times * factor;
    constant += other.constant * factor;
  }
};
using AxisIndices = std::vector<AxisIndex>;

/// A tensor in memory, with the index along each of its axes as a function of the letters.
struct Located {
  std::string name;
  Shape shape;
  AxisIndices places;

  bool Has(char letter) const {
    return std::ranges::any_of(
        places, [&](const AxisIndex& place) { return place.terms.contains(letter); });
  }
  int64_t Stride(size_t axis) const {
    return ElementCount({shape.begin() + static_cast<int64_t>(axis) + 1, shape.end()}).factor();
  }
  /// The stride of a letter in elements.
  int64_t Stride(char letter) const {
    int64_t stride = 0;
    for (size_t axis = 0; axis < places.size(); ++axis) {
      const auto term = places[axis].terms.find(letter);
      if (term != places[axis].terms.end()) stride += term->second * Stride(axis);
    }
    return stride;
  }
};

bool IsConversion(const Node& node) {
  const auto* map = node.As<Map>();
  return map && map->body.root().op == ScalarOp::kCast && map->body.nodes().size() == 2;
}

/// The contraction that an epilogue map takes; its other operands must be cheap to compute. -1 if
/// there is none, or if the map only casts it.
NodeId FinishedBy(const ValidGraph& graph, const Node& node) {
  if (!node.As<Map>() || IsConversion(node)) return -1;
  const auto taken = std::ranges::find_if(node.operands,
                                          [&](NodeId id) { return graph.node(id).As<Contract>(); });
  return taken != node.operands.end() && TakesProducts(graph, {*taken}, node) ? *taken : -1;
}

/// Follows the operands of a contraction to inputs and its result to the output, through layout
/// operations, and expresses the index of every axis on the way in the contraction's letters.
///
/// Example: y[n, k, p] = contract(w, window(pad(x, low=1), size=3), "kcr,ncpr->nkp"). The window's
/// axes p and r become one axis of pad(x) with the index p + r, and of x with the index p + r - 1:
/// a convolution with 3 taps, stride 1 and padding 1.
class Tracer {
 public:
  Tracer(const ValidGraph& graph, std::map<char, Extent> extents)
      : graph_(graph), extents_(std::move(extents)) {}

  std::optional<Located> ToInput(NodeId id, AxisIndices places) const {
    const Node& node = graph_.node(id);
    if (node.As<Input>()) return Located{node.name, node.type.shape, std::move(places)};
    if (node.operands.size() != 1) return std::nullopt;
    const Shape& from = graph_.node(node.operands[0]).type.shape;
    if (const auto* reshape = node.As<Reshape>()) {
      auto moved = Reshaped(places, reshape->shape, from);
      if (!moved) return std::nullopt;
      places = *std::move(moved);
    } else if (const auto* transpose = node.As<Transpose>()) {
      AxisIndices moved(places.size());
      for (size_t i = 0; i < places.size(); ++i) moved[transpose->order[i]] = places[i];
      places = std::move(moved);
    } else if (const auto* window = node.As<Window>()) {
      const auto at = places.begin() + window->axis;
      places[window->axis] = Windowed(at[0], at[1], window->stride, window->dilation);
      places.erase(at + 1);
    } else if (const auto* pad = node.As<Pad>()) {
      if (pad->value != 0 || places[pad->axis].divisor != 1) return std::nullopt;
      places[pad->axis].constant -= pad->low;
      places[pad->axis].divisor = pad->inner + 1;
    } else if (const auto* reverse = node.As<Reverse>()) {
      AxisIndex& place = places[reverse->axis];
      if (place.divisor != 1) return std::nullopt;
      AxisIndex back{.terms = {}, .constant = from[reverse->axis].factor() - 1};
      back.AddTimes(place, -1);
      place = back;
    } else {
      return std::nullopt;
    }
    return ToInput(node.operands[0], std::move(places));
  }

  /// Finds the contraction behind the output, then expresses the output's axes in its letters.
  std::optional<AxisIndices> FromContraction(NodeId id, const AxisIndices& letters) const {
    const Node& node = graph_.node(id);
    if (node.As<Contract>() || FinishedBy(graph_, node) >= 0) return letters;
    if (node.operands.size() != 1) return std::nullopt;
    auto places = FromContraction(node.operands[0], letters);
    if (!places || IsConversion(node)) return places;
    const Shape& from = graph_.node(node.operands[0]).type.shape;
    if (const auto* reshape = node.As<Reshape>()) return Reshaped(*places, from, reshape->shape);
    if (const auto* transpose = node.As<Transpose>()) {
      AxisIndices moved;
      for (int64_t axis : transpose->order) moved.push_back((*places)[axis]);
      return moved;
    }
    if (const auto* fold = node.As<Fold>()) {
      const auto at = places->begin() + fold->axis;
      (*places)[fold->axis] = Windowed(at[0], at[1], fold->stride, fold->dilation);
      places->erase(at + 1);
      return places;
    }
    const auto* slice = node.As<Slice>();
    if (!slice || (*places)[slice->axis].divisor != 1) return std::nullopt;
    (*places)[slice->axis].constant -= slice->start;
    (*places)[slice->axis].divisor = slice->step;
    return places;
  }

 private:
  static AxisIndex Windowed(const AxisIndex& window, const AxisIndex& inside, int64_t stride,
                            int64_t dilation) {
    AxisIndex place;
    place.AddTimes(window, stride);
    place.AddTimes(inside, dilation);
    return place;
  }

  /// The indices of a reshape's operand from those of its result: axes that were split or merged.
  std::optional<AxisIndices> Reshaped(const AxisIndices& places, const Shape& from,
                                      const Shape& to) const {
    AxisIndices moved(to.size());
    size_t i = 0;
    size_t j = 0;
    const auto skip = [](const Shape& shape, size_t& axis) {
      while (axis < shape.size() && shape[axis].one()) ++axis;
    };
    for (skip(from, i), skip(to, j); i < from.size() && j < to.size(); skip(from, i), skip(to, j)) {
      if (from[i] == to[j]) {
        moved[j++] = places[i++];
      } else if (from[i].Divided(to[j])) {
        if (!Split(places[i], from[i], to, j, moved)) return std::nullopt;
        ++i;
      } else {
        Extent merged(1);
        for (; i < from.size() && merged != to[j]; ++i) {
          if (!places[i].plain() || !from[i].constant()) return std::nullopt;
          AxisIndex sum;
          sum.AddTimes(moved[j], from[i].factor());
          sum.AddTimes(places[i], 1);
          moved[j] = std::move(sum);
          merged = merged * from[i];
        }
        if (merged != to[j++]) return std::nullopt;
      }
    }
    return moved;
  }
  /// Splits the index along one axis into the indices along the axes of `to` from `j` on: each term
  /// goes to the axis in whose range its factor is.
  bool Split(const AxisIndex& place, const Extent& whole, const Shape& to, size_t& j,
             AxisIndices& moved) const {
    if (!place.plain() || !whole.constant()) return false;
    int64_t rest = whole.factor();
    size_t left = place.terms.size();
    for (; j < to.size() && rest > 1; ++j) {
      if (!to[j].constant() || rest % to[j].factor() != 0) return false;
      const int64_t outer = rest;
      rest /= to[j].factor();
      for (const auto& [letter, times] : place.terms) {
        if (times < rest || times >= outer) continue;
        if (times % rest != 0 || times * extents_.at(letter).factor() > outer) return false;
        moved[j].terms[letter] = times / rest;
        --left;
      }
    }
    return rest == 1 && left == 0;
  }

  const ValidGraph& graph_;
  std::map<char, Extent> extents_;
};

/// Assigns roles to letters: images, groups, channels, filters, pixels and taps.
class FormReader {
 public:
  explicit FormReader(const ValidGraph& graph) : graph_(graph) {}

  std::optional<ConvForm> Read() {
    if (graph_.outputs().size() != 1) return std::nullopt;
    // A contraction without windows is a matrix product, not a convolution.
    const auto windows = [](const Node& node) { return node.As<Window>() || node.As<Fold>(); };
    if (std::ranges::none_of(graph_.nodes(), windows)) return std::nullopt;
    if (!Trace() || (form_.epilogue < 0 && graph_.inputs().size() != 2)) return std::nullopt;
    AssignTensors();
    if (!Classify() || (form_.epilogue >= 0 && !FiltersAreLast())) return std::nullopt;
    Normalise();
    return form_;
  }

 private:
  bool Trace() {
    NodeId id = graph_.outputs()[0].node;
    while (!graph_.node(id).As<Contract>()) {
      const Node& node = graph_.node(id);
      if (const NodeId finished = FinishedBy(graph_, node); finished >= 0)
        form_.epilogue = std::exchange(id, finished);
      else if (node.operands.size() == 1)
        id = node.operands[0];
      else
        return false;
    }
    form_.product = id;
    const Node& contraction = graph_.node(id);
    const Equation equation = ParsedEquation(contraction.As<Contract>()->equation);
    const auto letters = [&](const std::string& text, const Shape& shape) {
      AxisIndices places(text.size());
      for (size_t i = 0; i < text.size(); ++i) {
        extents_[text[i]] = shape[i];
        if (!shape[i].one()) places[i].terms[text[i]] = 1;
      }
      return places;
    };
    const auto shape = [&](size_t i) { return graph_.node(contraction.operands[i]).type.shape; };
    const AxisIndices left = letters(equation.left, shape(0));
    const AxisIndices right = letters(equation.right, shape(1));
    const AxisIndices result = letters(equation.result, contraction.type.shape);
    const Tracer tracer(graph_, extents_);
    auto a = tracer.ToInput(contraction.operands[0], left);
    auto b = tracer.ToInput(contraction.operands[1], right);
    const Output& output = graph_.outputs()[0];
    auto c = tracer.FromContraction(output.node, result);
    if (!a || !b || !c || a->name == b->name) return false;
    tensors_ = {*std::move(a), *std::move(b),
                Located{output.name, graph_.node(output.node).type.shape, *std::move(c)}};
    return true;
  }

  /// True if the last axis of the contraction's result counts filters.
  bool FiltersAreLast() const {
    const char last = ParsedEquation(graph_.node(form_.product).As<Contract>()->equation)
                          .result.back();
    return w_->Has(last) && !x_->Has(last);
  }

  bool IsGroup(char letter) const {
    return std::ranges::all_of(tensors_, [&](const Located& each) { return each.Has(letter); });
  }
  /// True if a tensor has an axis that is covered by windows: its index has two letters that are
  /// different axes elsewhere, or one letter with a stride.
  bool HasWindows(const Located& tensor) const {
    return std::ranges::any_of(tensor.places, [&](const AxisIndex& place) {
      const auto own = std::ranges::count_if(
          place.terms, [&](const auto& term) { return !IsGroup(term.first); });
      return own > 1 || (own == 1 && place.terms.size() == 1 && place.terms.begin()->second > 1);
    });
  }
  /// The number of letters that only this operand and the result have; with `windows` the extents
  /// of those that are on an axis with windows.
  int64_t Shared(size_t operand, bool windows) const {
    int64_t count = 0;
    for (const AxisIndex& place : tensors_[2].places) {
      for (const auto& [letter, times] : place.terms) {
        if (!tensors_[operand].Has(letter) || tensors_[1 - operand].Has(letter)) continue;
        if (!windows) ++count;
        if (windows && place.terms.size() > 1) count += extents_.at(letter).factor();
      }
    }
    return count;
  }

  /// The operand with windows is the image. If the result has the windows (a transposed
  /// convolution), the filter is the operand with fewer elements along them.
  void AssignTensors() {
    size_t filter = 1;
    if (HasWindows(tensors_[2])) {
      filter = Shared(0, true) < Shared(1, true) ? 0 : 1;
    } else if (HasWindows(tensors_[1])) {
      filter = 0;
    } else if (!HasWindows(tensors_[0])) {
      filter = Shared(0, false) < Shared(1, false) ? 0 : 1;
    }
    w_ = &tensors_[filter];
    x_ = &tensors_[1 - filter];
    y_ = &tensors_[2];
  }

  bool Classify() {
    form_.x.name = x_->name;
    form_.y.name = y_->name;
    form_.w.name = w_->name;
    for (const auto& [letter, extent] : extents_) {
      if (extent.one()) continue;
      const bool in_x = x_->Has(letter), in_y = y_->Has(letter), in_w = w_->Has(letter);
      if (in_x && in_y && !in_w) continue;  // an image, or a spatial axis
      if (IsTap(letter)) continue;
      if (!extent.constant() || !Take(letter, extent.factor(), in_x, in_y, in_w)) return false;
    }
    RemoveGroups();
    for (size_t axis = 0; axis < w_->places.size(); ++axis) {
      if (w_->places[axis].divisor != 1) return false;
      form_.w.base += w_->places[axis].constant * w_->Stride(axis);
    }
    return Spatial();
  }
  /// Removes the letters of groups from all indices. Their strides are known already, and the other
  /// letter of their axis is alone on it then.
  void RemoveGroups() {
    for (const auto& [letter, extent] : extents_) {
      if (!IsGroup(letter)) continue;
      for (Located& tensor : tensors_) {
        for (AxisIndex& place : tensor.places) place.terms.erase(letter);
      }
    }
  }
  /// Notes extent and strides of a letter that is the group, the channel or the filter. False if
  /// that role is taken.
  bool Take(char letter, int64_t extent, bool in_x, bool in_y, bool in_w) {
    const auto take = [&](int64_t& count, int64_t ConvTensor::* stride) {
      if (count != 1) return false;
      count = extent;
      form_.x.*stride = x_->Stride(letter);
      form_.y.*stride = y_->Stride(letter);
      form_.w.*stride = w_->Stride(letter);
      return true;
    };
    if (in_x && in_y && in_w) return take(form_.groups, &ConvTensor::group);
    if (in_x && in_w) return take(form_.channels, &ConvTensor::channel);
    return in_y && in_w && take(form_.filters, &ConvTensor::filter);
  }
  /// True if the letter is on one axis, of the image or of the result, with a letter that both
  /// have.
  bool SpatialOf(char letter) const {
    for (const Located* tensor : {x_, y_}) {
      for (const AxisIndex& place : tensor->places) {
        if (place.terms.contains(letter) && Partner(place) != 0 && Partner(place) != letter)
          return true;
      }
    }
    return false;
  }
  /// True for a letter that shares an axis with a pixel's letter, and for summed letters except the
  /// first one in the image's order, which is the channel.
  bool IsTap(char letter) const {
    if (SpatialOf(letter)) return !IsGroup(letter);
    const auto summed = [&](char each) { return x_->Has(each) && w_->Has(each) && !y_->Has(each); };
    if (!summed(letter)) return false;
    for (const AxisIndex& place : x_->places) {
      for (const auto& [each, times] : place.terms) {
        if (summed(each) && !SpatialOf(each)) return each != letter;
      }
    }
    return false;
  }
  char Partner(const AxisIndex& place) const {
    for (const auto& [letter, times] : place.terms) {
      if (x_->Has(letter) && y_->Has(letter) && !w_->Has(letter)) return letter;
    }
    return 0;
  }

  /// The letters of image and result in the image's order; the first one that is an axis of its own
  /// is the image number.
  bool Spatial() {
    std::vector<ConvAxis> axes;
    bool counted = false;
    for (size_t i = 0; i < x_->places.size(); ++i) {
      const char letter = Partner(x_->places[i]);
      if (letter == 0) {
        if (!AddTaps(i, axes)) return false;
        continue;
      }
      size_t j = 0;
      while (!y_->places[j].terms.contains(letter)) ++j;
      const AxisIndex &in = x_->places[i], &out = y_->places[j];
      if (IsSingleLetter(in) && IsSingleLetter(out) && !counted && axes.empty()) {
        counted = true;
        form_.images = extents_.at(letter);
        form_.x.image = x_->Stride(i);
        form_.y.image = y_->Stride(j);
      } else if (!AddAxis(i, j, letter, axes)) {
        return false;
      }
    }
    if (axes.size() > form_.axes.size()) return false;
    std::ranges::copy(axes, form_.axes.end() - static_cast<int64_t>(axes.size()));
    return true;
  }
  /// True if an index is one letter with factor 1 and nothing else.
  static bool IsSingleLetter(const AxisIndex& place) {
    return place.plain() && place.terms.size() == 1 && place.terms.begin()->second == 1;
  }
  /// An axis of the image that the result does not have: taps that see all of it, or channels.
  bool AddTaps(size_t i, std::vector<ConvAxis>& axes) {
    const AxisIndex& place = x_->places[i];
    if (place.terms.empty() || !IsTap(place.terms.begin()->first)) return place.plain();
    const auto& [tap, times] = *place.terms.begin();
    if (place.terms.size() > 1 || place.divisor > 1 || !x_->shape[i].constant() ||
        !extents_.at(tap).constant())
      return false;
    axes.push_back({.in = x_->shape[i].factor(),
                    .taps = extents_.at(tap).factor(),
                    .dilation = times,
                    .shift = place.constant,
                    .x = x_->Stride(i),
                    .w = w_->Stride(tap)});
    return true;
  }
  bool AddAxis(size_t i, size_t j, char letter, std::vector<ConvAxis>& axes) {
    const bool forward = IsSingleLetter(y_->places[j]);
    if (!forward && !IsSingleLetter(x_->places[i])) return false;
    if (!x_->shape[i].constant() || !y_->shape[j].constant()) return false;
    const AxisIndex& mixed = forward ? x_->places[i] : y_->places[j];
    if (mixed.terms.size() > 2) return false;
    ConvAxis axis{.in = x_->shape[i].factor(),
                  .out = y_->shape[j].factor(),
                  .x = x_->Stride(i),
                  .y = y_->Stride(j)};
    const int64_t sign = forward ? 1 : -1;
    axis.stride = forward ? mixed.terms.at(letter) : mixed.divisor;
    axis.inner = forward ? mixed.divisor : mixed.terms.at(letter);
    axis.shift = sign * mixed.constant;
    for (const auto& [tap, times] : mixed.terms) {
      if (tap == letter) continue;
      const Located& other = forward ? *y_ : *x_;
      if (!w_->Has(tap) || other.Has(tap) || !extents_.at(tap).constant()) return false;
      axis.taps = extents_.at(tap).factor();
      axis.dilation = sign * times;
      axis.w = w_->Stride(tap);
    }
    axes.push_back(axis);
    return axis.stride > 0 && axis.inner > 0 && (axis.stride == 1 || axis.inner == 1);
  }

  /// Numbers taps in the order of the pixels that they read: a flipped filter gets a negative
  /// stride.
  void Normalise() {
    for (ConvAxis& axis : form_.axes) {
      if (axis.dilation > 0) continue;
      axis.shift += axis.dilation * (axis.taps - 1);
      form_.w.base += axis.w * (axis.taps - 1);
      axis.dilation = -axis.dilation;
      axis.w = -axis.w;
    }
  }

  const ValidGraph& graph_;
  std::map<char, Extent> extents_;
  std::vector<Located> tensors_;  ///< the contraction's operands and its result
  const Located *x_ = nullptr, *y_ = nullptr, *w_ = nullptr;
  ConvForm form_;
};

}  // namespace

std::optional<ConvForm> ConvFormOf(const ValidGraph& graph) { return FormReader(graph).Read(); }

bool Dense(const ConvForm& form, bool of_x, int64_t step) {
  for (size_t i = form.axes.size(); i-- > 0;) {
    const ConvAxis& axis = form.axes[i];
    const int64_t extent = of_x ? axis.in : axis.out;
    if (extent > 1 && (of_x ? axis.x : axis.y) != step) return false;
    step *= extent;
  }
  return true;
}

bool IsFilterGradient(const ConvForm& form) {
  return form.images.constant() && form.Taps() > form.Outputs();
}

}  // namespace atunner::graph
