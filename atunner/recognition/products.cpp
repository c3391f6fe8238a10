// Products of two matrices, of batches of them, of a matrix and a vector, and of two vectors.
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "atunner/recognition/kinds.h"

namespace atunner::recognition {
namespace {

/// [m, k] · [k, n], `batch` times.
struct ProductSizes {
  int64_t batch = 1, m = 0, n = 0, k = 0;
};

std::optional<int64_t> RootOf(int64_t over, int64_t under) {
  if (under == 0 || over % under != 0) return std::nullopt;
  const auto root = static_cast<int64_t>(std::llround(std::sqrt(double(over / under))));
  return root * root == over / under ? std::optional(root) : std::nullopt;
}

/// m² = |A| |C| / |B|, and so on.
std::optional<ProductSizes> SizesOf(int64_t a, int64_t b, int64_t c, int64_t batch) {
  constexpr int64_t kMost = int64_t{1} << 31;  // so that products of two fit
  if (batch < 1 || a % batch != 0 || b % batch != 0 || c % batch != 0) return std::nullopt;
  a /= batch, b /= batch, c /= batch;
  if (a > kMost || b > kMost || c > kMost) return std::nullopt;
  const auto m = RootOf(a * c, b), n = RootOf(b * c, a), k = RootOf(a * b, c);
  if (!m || !n || !k || *k < 2 || (*m == 1 && *n == 1)) return std::nullopt;
  if (*m * *k != a || *k * *n != b || *m * *n != c) return std::nullopt;
  return ProductSizes{batch, *m, *n, *k};
}

/// A way to read an operand: its letters, and the extents in that order.
struct Side {
  std::string letters;
  std::vector<int64_t> shape;
};

Side SideOf(const ProductSizes& sizes, char outer, int64_t extent, bool outer_first) {
  Side side;
  if (sizes.batch > 1) side = {"p", {sizes.batch}};
  const bool both = extent > 1;
  if (both && outer_first) side.letters += outer, side.shape.push_back(extent);
  side.letters += 'k', side.shape.push_back(sizes.k);
  if (both && !outer_first) side.letters += outer, side.shape.push_back(extent);
  return side;
}

Side ResultOf(const ProductSizes& sizes) {
  Side side;
  if (sizes.batch > 1) side = {"p", {sizes.batch}};
  if (sizes.m > 1) side.letters += 'm', side.shape.push_back(sizes.m);
  if (sizes.n > 1) side.letters += 'n', side.shape.push_back(sizes.n);
  return side;
}

struct Operands {
  const BufferFact *a, *b;
};

enum class Relu : uint8_t {
  kNone,
  kOfNumbers,  ///< NaN gives 0, as `v > 0 ? v : 0` and fmaxf do
  kOfAll       ///< NaN stays
};

/// What follows a product in a layer of a network.
struct Tail {
  const BufferFact* bias = nullptr;  ///< one number for each column of the result
  Relu relu = Relu::kNone;

  std::string Form() const {
    return (bias == nullptr ? "" : " plus " + bias->name) + (relu == Relu::kNone ? ""
                                                             : relu == Relu::kOfAll
                                                                 ? ", at least 0 or NaN"
                                                                 : ", at least 0");
  }
  std::string After(HypothesisWriter& writer, std::string value, int64_t columns) const {
    if (bias != nullptr)
      value = writer.Line(value + " + " + writer.Wide(writer.Input(*bias, {columns}), *bias));
    if (relu == Relu::kNone) return value;
    return writer.Line(relu == Relu::kOfAll ? fmt::format("maximum({}, 0)", value)
                                            : fmt::format("select({0} > 0, {0}, 0)", value));
  }
};

/// None first.
std::vector<Tail> TailsOf(const Facts& facts, const Operands& of, int64_t columns) {
  constexpr Relu kAll[] = {Relu::kNone, Relu::kOfNumbers, Relu::kOfAll};
  std::vector<Tail> tails;
  for (const Relu relu : kAll) tails.push_back({nullptr, relu});
  for (const BufferFact* input : facts.Inputs()) {
    if (input == of.a || input == of.b || input->elements != columns) continue;
    for (const Relu relu : kAll) tails.push_back({input, relu});
  }
  return tails;
}

/// The product in all ways of being transposed, with one epilogue.
void AddProducts(const Facts& facts, const Operands& of, const ProductSizes& sizes,
                 const std::string& batch_name, const Epilogue& epilogue, const Tail& tail,
                 std::vector<Hypothesis>& all) {
  const BufferFact& output = *facts.Output();
  const Side result = ResultOf(sizes);
  for (const bool a_by_rows : {true, false}) {
    for (const bool b_by_rows : {true, false}) {
      if ((sizes.m == 1 && !a_by_rows) || (sizes.n == 1 && !b_by_rows)) continue;
      const Side a = SideOf(sizes, 'm', sizes.m, a_by_rows),
                 b = SideOf(sizes, 'n', sizes.n, !b_by_rows);
      const std::string form = fmt::format(
          "{}[{}] · {}[{}]{}{}{}", of.a->name, a.letters, of.b->name, b.letters,
          batch_name.empty() ? "" : ", batches: " + batch_name, epilogue.form, tail.Form());
      const bool vector = sizes.m == 1 || sizes.n == 1;
      HypothesisWriter writer(vector ? "product of a matrix and a vector" : "product of matrices",
                              form);
      const std::string x = writer.Input(*of.a, a.shape), y = writer.Input(*of.b, b.shape);
      const std::string as = output.dtype == of.a->dtype
                                 ? ""
                                 : fmt::format(", as={}", Name(output.dtype));
      const std::string product = writer.Line(
          fmt::format("contract({}, {}, equation=\"{},{}->{}\"{})", x, y, a.letters, b.letters,
                      result.letters, as));
      const bool plain = epilogue.form.empty() && tail.Form().empty();
      const std::string wide = tail.After(writer, plain ? product : writer.Wide(product, output),
                                          result.shape.back());
      all.push_back(Finish(std::move(writer), facts, wide, epilogue, result.shape));
    }
  }
}

struct Batches {
  std::string name;  ///< "" for a single product
  ProductSizes sizes;
};

std::vector<Batches> BatchesOf(const Facts& facts, const Operands& of) {
  const int64_t a = of.a->elements, b = of.b->elements, c = facts.Output()->elements;
  std::vector<Batches> found;
  if (const auto one = SizesOf(a, b, c, 1)) found.push_back({"", *one});
  for (const SizeFact& size : facts.sizes) {
    const int64_t value = size.value;
    if (const auto many = SizesOf(a, b, c, value); many && value > 1)
      found.push_back({size.name, *many});
    // Square matrices of an extent that is a size.
    if (value < 2 || value > 65536 || a != b || a != c || a % (value * value) != 0) continue;
    if (const int64_t count = a / (value * value); count > 1)
      found.push_back({"of " + size.name + " squared", {count, value, value, value}});
  }
  return found;
}

void AddDotProduct(const Facts& facts, const Operands& of, const Epilogue& epilogue,
                   std::vector<Hypothesis>& all) {
  HypothesisWriter writer("product of two vectors",
                          fmt::format("{} · {}{}", of.a->name, of.b->name, epilogue.form));
  const std::vector<int64_t> shape{of.a->elements};
  const std::string a = writer.Wide(writer.Input(*of.a, shape), *of.a),
                    b = writer.Wide(writer.Input(*of.b, shape), *of.b);
  const std::string products = writer.Line(fmt::format("{} * {}", a, b));
  const std::string sum = writer.Line(fmt::format("reduce_sum({}, axes=[0], keep=true)", products));
  all.push_back(Finish(std::move(writer), facts, sum, epilogue, {1}));
}

/// A matrix times its own transpose, and the other way round.
void AddSelfProducts(const Facts& facts, const BufferFact& a, const Epilogue& epilogue,
                     std::vector<Hypothesis>& all) {
  const BufferFact& output = *facts.Output();
  const auto n = RootOf(output.elements, 1);
  if (!n || *n < 2 || a.elements % *n != 0 || a.elements / *n < 2 || a.dtype != output.dtype)
    return;
  const int64_t k = a.elements / *n;
  for (const bool by_rows : {true, false}) {
    const std::string letters = by_rows ? "mk,nk" : "km,kn";
    HypothesisWriter writer("product of a matrix and its transpose",
                            fmt::format("{}: {}->mn{}", a.name, letters, epilogue.form));
    const std::string x = writer.Input(
        a, by_rows ? std::vector<int64_t>{*n, k} : std::vector<int64_t>{k, *n});
    const std::string product = writer.Line(
        fmt::format("contract({0}, {0}, equation=\"{1}->mn\")", x, letters));
    const std::string wide = epilogue.form.empty() ? product : writer.Wide(product, output);
    all.push_back(Finish(std::move(writer), facts, wide, epilogue, {*n, *n}));
  }
}

}  // namespace

std::vector<Hypothesis> ProductHypotheses(const Facts& facts) {
  std::vector<Hypothesis> all;
  const BufferFact& output = *facts.Output();
  const auto inputs = facts.Inputs();
  if (!IsFloat(output.dtype)) return all;
  for (const Epilogue& epilogue : EpiloguesOf(facts)) {
    for (const BufferFact* a : inputs) {
      AddSelfProducts(facts, *a, epilogue, all);
      for (const BufferFact* b : inputs) {
        if (a == b || a->dtype != b->dtype) continue;
        for (const Batches& batches : BatchesOf(facts, {a, b})) {
          for (const Tail& tail : TailsOf(facts, {a, b}, batches.sizes.n)) {
            if (epilogue.form.empty() || tail.Form().empty())
              AddProducts(facts, {a, b}, batches.sizes, batches.name, epilogue, tail, all);
          }
        }
        if (output.elements == 1 && a->elements == b->elements && a < b)
          AddDotProduct(facts, {a, b}, epilogue, all);
      }
    }
  }
  return all;
}

}  // namespace atunner::recognition
