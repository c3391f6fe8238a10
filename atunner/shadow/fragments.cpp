// wmma: products of fragments, whose layout PTX does not state. The shadow has a layout of its own
// for the twins, that of mma.sync: with g = lane / 4 and t = lane % 4,
//
//     A    register i, half h    row g + 8 * (i % 2), column 2 * t + h + 8 * (i / 2)
//     B    register i, half h    row 2 * t + h + 8 * (i % 2), column g + 8 * (i / 2)
//     C, D register i            row g + 8 * (i / 2 % 2), column 2 * t + i % 2 + 8 * (i / 4)
//
// (tf32: t + 4 * … in place of 2 * t + h + 8 * …; C in float16: two columns a register). It is the
// layout of GPUs since compute capability 8.0. Where another one differs, instructions that treat
// all elements alike still give the right twins, and nothing else may be done with fragments.
#include <algorithm>

#include "atunner/shadow/cell_writer.h"
#include "atunner/shadow/writers.h"

namespace atunner::shadow {
namespace {

/// Registers of A and B that hold different elements; float16 fragments hold each twice.
constexpr size_t kFactorRegisters = 4;

/// An element of a matrix: `of_group` * g + `of_thread` * t + `fixed`, twice.
struct Position {
  int row_of_group = 0, row_of_thread = 0, row = 0;
  int column_of_group = 0, column_of_thread = 0, column = 0;
};

Position PositionOf(const FragmentForm& form, size_t reg, int half) {
  const int i = static_cast<int>(reg);
  const bool tf32 = form.product.k == 8;
  const int step = tf32 ? 4 : 8, pair = tf32 ? 1 : 2;
  switch (form.matrix) {
    case 'a':
      return {1, 0, 8 * (i % 2), 0, pair, half + step * (i / 2)};
    case 'b':
      return {0, pair, half + step * (i % 2), 1, 0, 8 * (i / 2)};
    default:
      if (form.type == Type::kF16) return {1, 0, 8 * (i % 2), 0, 2, half + 8 * (i / 2)};
      return {1, 0, 8 * (i / 2 % 2), 0, 2, i % 2 + 8 * (i / 4)};
  }
}

/// Reads and writes the elements of a fragment in memory.
class FragmentAccess {
 public:
  FragmentAccess(ValueWriter& writer, const FragmentForm& form, size_t address)
      : writer_(writer), cells_(writer), form_(form), space_(SpaceOf(writer.instruction())) {
    width_ = form.type == Type::kF16 || form.type == Type::kBF16 ? 16 : 32;
    base_ = cells_.AddressOf(writer.operand(address));
    stride_ = writer.InRegister(writer.operand(2).text, 32);
    group_ = writer.Word();
    thread_ = writer.Word();
    writer.Put("mov.u32 {}, %laneid", group_);
    writer.Put("and.b32 {}, {}, 3", thread_, group_);
    writer.Put("shr.u32 {0}, {0}, 2", group_);
  }
  int width() const { return width_; }
  int halves() const { return 32 / width_; }

  RawValue Read(size_t reg, int half) {
    const std::string address = AddressOf(PositionOf(form_, reg, half));
    const CellPlace place = cells_.Locate(address, space_);
    return cells_.Read(place, width_, 0, Memory(address));
  }
  void Write(size_t reg, int half, const RawValue& value) {
    const std::string address = AddressOf(PositionOf(form_, reg, half));
    const CellPlace place = cells_.Locate(address, space_);
    cells_.Write(place, 0, value, Memory(address));
  }

 private:
  std::string Index(int of_group, int of_thread, int fixed) {
    std::string index = writer_.Word();
    writer_.Put("mov.b32 {}, {}", index, fixed);
    if (of_group) writer_.Put("add.u32 {0}, {0}, {1}", index, group_);
    if (of_thread) writer_.Put("mad.lo.u32 {0}, {1}, {2}, {0}", index, thread_, of_thread);
    return index;
  }
  std::string AddressOf(const Position& at) {
    const std::string row = Index(at.row_of_group, at.row_of_thread, at.row);
    const std::string column = Index(at.column_of_group, at.column_of_thread, at.column);
    const std::string element = writer_.Word();
    std::string address = writer_.Quad();
    writer_.Put("mad.lo.u32 {}, {}, {}, {}", element, form_.by_column ? column : row, stride_,
                form_.by_column ? row : column);
    writer_.Put("mad.wide.u32 {}, {}, {}, {}", address, element, width_ / 8, base_);
    return address;
  }
  std::string Memory(const std::string& address) {
    std::string bits = width_ == 16 ? writer_.Half() : writer_.Word();
    const std::string space = space_.empty() ? "" : "." + space_;
    writer_.PutGuarded("ld.volatile{}.b{} {}, [{}]", space, width_, bits, address);
    return bits;
  }

  ValueWriter& writer_;
  CellWriter cells_;
  const FragmentForm& form_;
  std::string space_, base_, stride_, group_, thread_;
  int width_ = 16;
};

}  // namespace

void WriteFragmentLoad(ValueWriter& writer, const FragmentForm& form) {
  const std::vector<int> results = Results(writer.instruction());
  if (std::ranges::none_of(results, [&](int reg) { return writer.flow().HasShadow(reg); })) return;
  FragmentAccess access(writer, form, 1);
  const bool factor = form.matrix == 'a' || form.matrix == 'b';
  const size_t distinct = factor ? kFactorRegisters : results.size();
  for (size_t i = 0; i < std::min(distinct, results.size()); ++i) {
    std::vector<RawValue> parts;
    for (int half = 0; half < access.halves(); ++half) parts.push_back(access.Read(i, half));
    const RawValue value = writer.Join(parts);
    for (size_t reg = i; reg < results.size(); reg += distinct) writer.Set(results[reg], value);
  }
}

void WriteFragmentStore(ValueWriter& writer, const FragmentForm& form) {
  writer.Behind();
  // Other threads have written the elements whose cells this one writes.
  writer.Line("bar.warp.sync -1");
  FragmentAccess access(writer, form, 0);
  const auto& sources = writer.operand(1).elements;
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto parts = writer.Split(writer.Raw(sources[i], 32),
                                    static_cast<size_t>(access.halves()));
    for (int half = 0; half < access.halves(); ++half)
      access.Write(i, half, parts[static_cast<size_t>(half)]);
  }
}

void WriteFragmentProduct(ValueWriter& writer, const MmaForm& form) {
  const auto& results = writer.operand(0).elements;
  const bool packed = form.addend == Type::kF16, packed_result = form.result == Type::kF16;
  const size_t addends = packed ? 4 : 8, expected = packed_result ? 4 : 8;
  if (results.size() != expected || writer.operand(3).elements.size() != addends ||
      writer.operand(1).elements.size() < kFactorRegisters ||
      writer.operand(2).elements.size() < kFactorRegisters)
    return WriteOriginal(writer);
  const auto part = [](const TextOperand& whole, size_t first, size_t count) {
    const auto begin = whole.elements.begin() + static_cast<std::ptrdiff_t>(first);
    return std::vector(begin, begin + static_cast<std::ptrdiff_t>(count));
  };
  std::vector<std::vector<std::string>> sums;
  for (size_t tile = 0; tile < 2; ++tile) {
    const auto added = SumsOf(writer, form, part(writer.operand(1), 0, kFactorRegisters),
                              part(writer.operand(2), 2 * tile, 2),
                              part(writer.operand(3), tile * addends / 2, addends / 2));
    sums.insert(sums.end(), added.begin(), added.end());
  }
  for (size_t tile = 0; tile < 2; ++tile)
    SetSums(writer, form, part(writer.operand(0), tile * expected / 2, expected / 2),
            {sums[2 * tile], sums[2 * tile + 1]});
}

}  // namespace atunner::shadow
