// Loads, stores and copies: their cells.
#include <algorithm>

#include "atunner/shadow/cell_writer.h"
#include "atunner/shadow/writers.h"

namespace atunner::shadow {
namespace {

using OperandKind = TextOperand::Kind;

constexpr int kMatrixRows = 8;

bool HasCells(const TextInstruction& instruction) {
  return !instruction.Has("param") && !instruction.Has("const");
}

/// The registers or values of a vector access, or the only one.
std::vector<TextOperand> ElementsOf(const TextOperand& operand) {
  return operand.kind == OperandKind::kVector ? operand.elements : std::vector{operand};
}

bool AnyResultHasShadow(const ValueWriter& writer) {
  return std::ranges::any_of(Results(writer.instruction()),
                             [&](int reg) { return reg >= 0 && writer.flow().HasShadow(reg); });
}

bool Overwrites(const TextInstruction& instruction, int reg) {
  const std::vector<int> results = Results(instruction);
  return std::ranges::find(results, reg) != results.end();
}

/// Bytes that a cp.async copies, and writes.
std::pair<int, std::string> SizesOf(const ValueWriter& writer) {
  const auto& operands = writer.instruction().operands;
  const auto bytes = IntegerOf(operands[2]);
  std::string source;
  if (operands.size() > 3 && !operands[3].negated &&
      (operands[3].kind == OperandKind::kConstant ||
       (operands[3].kind == OperandKind::kRegister &&
        ptx::BitsOf(writer.TypeOf(operands[3].reg)) == 32)))
    source = operands[3].text;
  return {static_cast<int>(bytes.value_or(0)), source};
}

/// A row's address from the lane that holds it, as a 64-bit register.
std::string RowAddress(ValueWriter& writer, const std::string& addresses, const std::string& lane) {
  const std::string word = writer.Word();
  std::string row = writer.Quad();
  writer.PutGuarded("shfl.sync.idx.b32 {}, {}, {}, 31, -1", word, addresses, lane);
  writer.Put("cvt.u64.u32 {}, {}", row, word);
  return row;
}

struct MatrixLane {
  std::string row, column;  ///< lane / 4, lane % 4
};

MatrixLane LaneOfMatrix(ValueWriter& writer) {
  MatrixLane lane{writer.Word(), writer.Word()};
  writer.Put("mov.u32 {}, %laneid", lane.row);
  writer.Put("and.b32 {}, {}, 3", lane.column, lane.row);
  writer.Put("shr.u32 {0}, {0}, 2", lane.row);
  return lane;
}

/// `number` elements of `bytes` behind a row's address.
std::string Element(ValueWriter& writer, const std::string& row, const std::string& number,
                    int bytes) {
  std::string address = writer.Quad();
  writer.Put("mad.wide.u32 {}, {}, {}, {}", address, number, bytes, row);
  return address;
}

/// The places of the two halves of a thread's part of a matrix; one place where they are one word.
std::vector<CellPlace> PlacesOfMatrix(ValueWriter& writer, const MatrixLane& lane,
                                      const std::string& addresses, int matrix) {
  CellWriter cells(writer);
  std::vector<CellPlace> places;
  const bool transposed = writer.instruction().Has("trans");
  for (int half = 0; half < (transposed ? 2 : 1); ++half) {
    const std::string source = writer.Word();
    if (transposed)
      writer.Put("mad.lo.u32 {}, {}, 2, {}", source, lane.column, kMatrixRows * matrix + half);
    else
      writer.Put("add.u32 {}, {}, {}", source, lane.row, kMatrixRows * matrix);
    const std::string row = RowAddress(writer, addresses, source);
    places.push_back(cells.Locate(
        transposed ? Element(writer, row, lane.row, 2) : Element(writer, row, lane.column, 4),
        "shared"));
  }
  return places;
}

}  // namespace

void WriteLoad(ValueWriter& writer) {
  const TextInstruction& load = writer.instruction();
  if (load.operands.size() < 2 || !AnyResultHasShadow(writer)) return;
  const int width = ptx::BitsOf(LastType(load));
  if (!HasCells(load) || width < 16 || width > 64) return WriteOriginal(writer);
  CellWriter cells(writer);
  // All code stands behind the load, because a pragma may belong to it.
  const bool early = load.operands[1].reg >= 0 && Overwrites(load, load.operands[1].reg);
  if (!early) writer.Behind();
  const CellPlace place = cells.Locate(cells.AddressOf(load.operands[1]), SpaceOf(load));
  writer.Behind();
  int offset = 0;
  for (const TextOperand& element : ElementsOf(load.operands[0])) {
    if (element.reg >= 0 && writer.flow().HasShadow(element.reg)) {
      if (ptx::BitsOf(writer.TypeOf(element.reg)) == width)
        writer.Set(element.reg,
                   cells.Read(place, width, offset, writer.OriginalBits(element, width)));
      else
        writer.SetOriginal(element.reg);
    }
    offset += width / 8;
  }
}

void WriteStore(ValueWriter& writer) {
  const TextInstruction& store = writer.instruction();
  const int width = ptx::BitsOf(LastType(store));
  if (store.operands.size() < 2 || !HasCells(store) || width < 16 || width > 64) return;
  CellWriter cells(writer);
  const CellPlace place = cells.Locate(cells.AddressOf(store.operands[0]), SpaceOf(store));
  int offset = 0;
  for (const TextOperand& element : ElementsOf(store.operands[1])) {
    const std::string bits = writer.OriginalBits(element, width);
    if (writer.HasShadow(element))
      cells.Write(place, offset, writer.Raw(element, width), bits);
    else
      cells.Forget(place, width, offset, bits);
    offset += width / 8;
  }
  const bool publishes = store.Has("volatile") || store.Has("relaxed") || store.Has("release") ||
                         store.Has("mmio");
  if (publishes) writer.Line("membar.gl");  // whoever sees the value sees its cell
}

void WriteAsyncCopy(ValueWriter& writer) {
  const TextInstruction& copy = writer.instruction();
  if (copy.operands.size() < 3) return;
  const auto [bytes, source_bytes] = SizesOf(writer);
  CellWriter cells(writer);
  const CellPlace to = cells.Locate(cells.AddressOf(copy.operands[0]), "shared");
  const CellPlace from = cells.Locate(cells.AddressOf(copy.operands[1]), "global");
  const int step = writer.facts().halves ? 2 : 4;
  for (int at = 0; at < bytes; at += step) {
    const std::string value = writer.Quad(), words = writer.Quad();
    std::string inside = from.inside;
    writer.Put("mov.b64 {}, {}", value, -1);
    writer.Put("mov.b64 {}, {}", words, -1);
    if (!source_bytes.empty()) {
      inside = writer.Predicate();
      const std::string limit = writer.Word();
      writer.Put("mov.b32 {}, {}", limit, source_bytes);
      writer.Put("setp.gt.and.u32 {}, {}, {}, {}", inside, limit, at, from.inside);
    }
    writer.Put("@{} ld.global.v2.b64 {{{}, {}}}, [{}+{}]", inside, value, words, from.address,
               8 * at);
    writer.Put("@{} st.global.v2.b64 [{}+{}], {{{}, {}}}", to.inside, to.address, 8 * at, value,
               words);
  }
}

void WriteLdMatrix(ValueWriter& writer) {
  const TextInstruction& load = writer.instruction();
  if (load.operands.size() != 2 || !AnyResultHasShadow(writer)) return;
  CellWriter cells(writer);
  const std::string address = cells.AddressOf(load.operands[1]), addresses = writer.Word();
  writer.Put("cvt.u32.u64 {}, {}", addresses, address);
  const MatrixLane lane = LaneOfMatrix(writer);
  const std::vector<TextOperand> results = ElementsOf(load.operands[0]);
  std::vector<std::vector<CellPlace>> places;
  for (size_t i = 0; i < results.size(); ++i)
    places.push_back(PlacesOfMatrix(writer, lane, addresses, static_cast<int>(i)));
  writer.Behind();
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string bits = writer.OriginalBits(results[i], 32);
    if (places[i].size() == 1) {
      writer.Set(results[i].reg, cells.Read(places[i][0], 32, 0, bits));
      continue;
    }
    const auto halves = writer.Split({.width = 32, .bits = bits, .twins = {}}, 2);
    writer.Set(results[i].reg, writer.Join({cells.Read(places[i][0], 16, 0, halves[0].bits),
                                            cells.Read(places[i][1], 16, 0, halves[1].bits)}));
  }
}

}  // namespace atunner::shadow
