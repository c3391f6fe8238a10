#include "atunner/shadow/cell_writer.h"

#include <algorithm>

#include "atunner/shadow/cell_values.h"

namespace atunner::shadow {
namespace {

/// Bytes of cells for each byte of memory, and of one cell.
constexpr int kCellScale = 8;
constexpr int kHalfCell = 16;

bool IsStrong(const TextInstruction& instruction) {
  for (const char* modifier : {"volatile", "relaxed", "acquire", "release", "mmio", "cg", "cv"}) {
    if (instruction.Has(modifier)) return true;
  }
  return false;
}

}  // namespace

std::string SpaceOf(const TextInstruction& instruction) {
  for (const std::string& modifier : instruction.modifiers) {
    if (modifier == "global" || modifier == "local") return modifier;
    if (modifier.starts_with("shared")) return "shared";
  }
  return "";
}

std::string CellWriter::AddressOf(const TextOperand& operand) {
  std::string address = writer_.Quad();
  const bool narrow = operand.reg >= 0 && ptx::BitsOf(writer_.TypeOf(operand.reg)) == 32;
  if (narrow)
    writer_.Put("cvt.u64.u32 {}, {}", address, operand.base);
  else
    writer_.Put("mov.u64 {}, {}", address, operand.base);
  if (operand.offset.empty()) return address;
  std::string_view offset = operand.offset;
  if (offset.starts_with('+')) offset.remove_prefix(1);
  writer_.Put("add.s64 {0}, {0}, {1}", address, offset);
  return address;
}

/// ", %p1" of a guard, to be and-ed to a comparison.
std::string CellWriter::Guarded(const std::string& comparison) {
  const std::string& guard = writer_.instruction().guard;
  if (guard.empty()) return comparison;
  std::string condition = guard.substr(1);
  condition.pop_back();
  const size_t dot = comparison.find(".u64");
  return comparison.substr(0, dot) + ".and" + comparison.substr(dot) + ", " + condition;
}

void CellWriter::Offset(const std::string& address, const std::string& base,
                        const std::string& bytes, CellPlace& place) {
  const std::string offset = writer_.Quad();
  place.inside = writer_.Predicate();
  place.address = writer_.Quad();
  writer_.Put("sub.s64 {}, {}, {}", offset, address, base);
  writer_.Line(Guarded(fmt::format("setp.lt.u64 {}, {}, {}", place.inside, offset, bytes)));
  writer_.Put("shl.b64 {}, {}, 3", place.address, offset);
}

CellPlace CellWriter::Locate(const std::string& address, const std::string& space) {
  CellPlace place;
  if (space == "global") {
    LocateGlobal(address, place);
  } else if (space == "shared") {
    LocateShared(address, place);
  } else if (space == "local") {
    LocateLocal(address, place);
  } else {
    LocateGeneric(address, place);
  }
  return place;
}

void CellWriter::LocateGlobal(const std::string& address, CellPlace& place) {
  Offset(address, "%atunner_arena", "%atunner_bytes", place);
  writer_.Put("add.s64 {0}, {0}, %atunner_cells", place.address);
  place.space = ".global";
  AddVariables(address, writer_.facts().variables, place);
}

void CellWriter::LocateShared(const std::string& address, CellPlace& place) {
  writer_.facts().uses_shared = true;
  place.space = ".global";
  place.inside = writer_.Predicate();
  place.address = writer_.Quad();
  writer_.Put("shl.b64 {}, {}, 3", place.address, address);
  writer_.Line(
      Guarded(fmt::format("setp.lt.u64 {}, {}, %atunner_stride", place.inside, place.address)));
  writer_.Put("add.s64 {0}, {0}, %atunner_shared", place.address);
}

void CellWriter::LocateLocal(const std::string& address, CellPlace& place) {
  place.space = ".local";
  place.inside = writer_.Predicate();
  place.address = writer_.Quad();
  writer_.Put("setp.lt.u64 {}, {}, 0", place.inside, address);  // never: memory of a caller
  writer_.Put("mov.u64 {}, 0", place.address);
  AddVariables(address, writer_.function().local, place);
}

void CellWriter::AddVariables(const std::string& address,
                              const std::vector<ptx::Variable>& variables, CellPlace& place) {
  for (const ptx::Variable& variable : variables) {
    const std::string base = writer_.Quad(), cells = writer_.Quad();
    CellPlace own;
    writer_.Put("mov.u64 {}, {}", base, variable.name);
    writer_.Put("mov.u64 {}, {}$cells", cells, variable.name);
    Offset(address, base, std::to_string(variable.bytes), own);
    writer_.Put("add.s64 {0}, {0}, {1}", own.address, cells);
    writer_.Put("selp.b64 {0}, {1}, {0}, {2}", place.address, own.address, own.inside);
    writer_.Put("or.pred {0}, {0}, {1}", place.inside, own.inside);
  }
}

void CellWriter::LocateGeneric(const std::string& address, CellPlace& place) {
  const std::string shared = writer_.Predicate(), shared_address = writer_.Quad();
  place = Locate(address, "global");
  writer_.Put("isspacep.shared {}, {}", shared, address);
  writer_.Put("cvta.to.shared.u64 {}, {}", shared_address, address);
  CellPlace other = Locate(shared_address, "shared");
  writer_.Put("and.pred {0}, {0}, {1}", other.inside, shared);
  writer_.Put("selp.b64 {0}, {1}, {0}, {2}", place.address, other.address, other.inside);
  writer_.Put("or.pred {0}, {0}, {1}", place.inside, other.inside);
  if (writer_.function().local.empty()) return;
  const std::string local = writer_.Predicate(), local_address = writer_.Quad();
  writer_.Put("isspacep.local {}, {}", local, address);
  writer_.Put("cvta.to.local.u64 {}, {}", local_address, address);
  other = Locate(local_address, "local");
  writer_.Put("and.pred {0}, {0}, {1}", other.inside, local);
  writer_.Put("cvta.local.u64 {0}, {0}", other.address);
  writer_.Put("selp.b64 {0}, {1}, {0}, {2}", place.address, other.address, other.inside);
  writer_.Put("or.pred {0}, {0}, {1}", place.inside, other.inside);
  place.space = "";
}

CellWriter::CellRegisters CellWriter::Load(const CellPlace& place, int offset) {
  const std::string words = writer_.Quad();
  CellRegisters cell{writer_.Double(), writer_.Word(), writer_.Word()};
  // A cell of nothing, for memory without cells: its bits never count, see Read.
  writer_.Put("mov.b64 {}, 0", words);
  writer_.Put("mov.f64 {}, {}", cell.value, kNoTwin);
  const std::string_view kind = IsStrong(writer_.instruction()) ? ".volatile" : "";
  writer_.Put("@{} ld{}{}.v2.b64 {{{}, {}}}, [{}+{}]", place.inside, kind, place.space, cell.value,
              words, place.address, offset * kCellScale);
  writer_.Put("mov.b64 {{{}, {}}}, {}", cell.bits, cell.rounded, words);
  return cell;
}

/// Cells of atomics count whatever memory holds. `lane` of the value, counted in 16 bits, has type
/// `type` then.
void CellWriter::AcceptAtomic(const CellRegisters& cell, RawValue& value, Type type, size_t lane,
                              const std::string& inside) {
  if (!writer_.facts().float_atomics) return;
  const std::string atomic = writer_.Predicate();
  writer_.Put("setp.eq.and.b32 {}, {}, {}, {}", atomic, cell.rounded, kAtomicMark, inside);
  writer_.Put("setp.eq.and.b32 {0}, {1}, {2}, {0}", atomic, cell.bits, AtomicKindOf(type));
  const int width = ptx::BitsOf(type);
  std::vector<RawValue> parts = writer_.Split(value, static_cast<size_t>(value.width / width));
  RawValue& part = parts[lane * 16 / static_cast<size_t>(width)];
  const std::string bits = width == 64   ? writer_.Quad()
                           : width == 32 ? writer_.Word()
                                         : writer_.Half();
  writer_.Put("selp.b{} {}, {}, {}, {}", width, bits, writer_.Round(type, cell.value), part.bits,
              atomic);
  part.bits = bits;
  value.bits = writer_.Join(parts).bits;
  if (type == Type::kF64) return;
  const std::string twin = writer_.Double();
  const std::string& before = value.twins[lane];
  writer_.Put("selp.f64 {}, {}, {}, {}", twin, cell.value,
              before.empty() ? std::string(kNoTwin) : before, atomic);
  value.twins[lane] = twin;
}

/// The same for 16-bit floats of either type.
void CellWriter::AcceptHalf(const CellRegisters& cell, RawValue& value, size_t lane,
                            const std::string& inside) {
  if (!writer_.facts().halves) return;
  AcceptAtomic(cell, value, Type::kF16, lane, inside);
  if (writer_.facts().bfloats) AcceptAtomic(cell, value, Type::kBF16, lane, inside);
}

/// Another thread may have changed memory by an exchange and not yet the cell. Reads again, a
/// limited number of times, while the cell belongs to other bits. It never does so for cells that
/// say nothing.
void CellWriter::AwaitExchange(const CellPlace& place, int offset, const std::string& bits,
                               const CellRegisters& cell) {
  if (!writer_.facts().exchanges) return;
  constexpr int kMostReads = 1 << 14;
  const std::string label = writer_.Label(), reads = writer_.Word(), other = writer_.Word();
  const std::string again = writer_.Predicate(), words = writer_.Quad();
  writer_.Put("mov.b32 {}, 0", reads);
  writer_.Line(label + ":");
  writer_.Put("not.b32 {}, {}", other, bits);
  writer_.Put("setp.ne.and.b32 {}, {}, {}, {}", again, cell.bits, bits, place.inside);
  writer_.Put("setp.ne.and.b32 {0}, {1}, {2}, {0}", again, cell.bits, other);
  writer_.Put("setp.ne.and.b32 {0}, {1}, -1, {0}", again, cell.bits);
  writer_.Put("setp.ne.and.b32 {0}, {1}, {2}, {0}", again, cell.rounded, kAtomicMark);
  writer_.Put("setp.lt.and.u32 {0}, {1}, {2}, {0}", again, reads, kMostReads);
  writer_.Put("add.u32 {0}, {0}, 1", reads);
  writer_.Put("@{} ld.volatile{}.v2.b64 {{{}, {}}}, [{}+{}]", again, place.space, cell.value, words,
              place.address, offset * kCellScale);
  writer_.Put("@{} mov.b64 {{{}, {}}}, {}", again, cell.bits, cell.rounded, words);
  writer_.Put("@{} bra {}", again, label);
}

RawValue CellWriter::ReadWord(const CellPlace& place, int offset, const std::string& bits) {
  const CellRegisters cell = Load(place, offset);
  AwaitExchange(place, offset, bits, cell);
  const std::string valid = writer_.Predicate();
  RawValue value{.width = 32, .bits = writer_.Word(), .twins = {writer_.Double()}};
  writer_.Put("setp.eq.and.b32 {}, {}, {}, {}", valid, cell.bits, bits, place.inside);
  writer_.Put("selp.b32 {}, {}, {}, {}", value.bits, cell.rounded, bits, valid);
  if (writer_.facts().halves) AddHalves(place, offset, bits, cell, valid, value);
  writer_.Put("selp.f64 {}, {}, {}, {}", value.twins[0], cell.value, kNoTwin, valid);
  AcceptAtomic(cell, value, Type::kF32, 0, place.inside);
  AcceptHalf(cell, value, 0, place.inside);
  return value;
}

/// The word as two halves that were stored apart, or together as a word.
void CellWriter::AddHalves(const CellPlace& place, int offset, const std::string& bits,
                           const CellRegisters& cell, const std::string& valid, RawValue& value) {
  const CellRegisters upper = Load(place, offset + 2);
  const std::string low = writer_.Word(), high = writer_.Word(), joined = writer_.Word();
  const std::string own = writer_.Predicate(), both = writer_.Predicate();
  value.twins[1] = writer_.Double();
  writer_.Put("and.b32 {}, {}, 65535", low, bits);
  writer_.Put("shr.u32 {}, {}, 16", high, bits);
  writer_.Put("setp.eq.and.b32 {}, {}, {}, {}", own, upper.bits, high, place.inside);
  writer_.Put("selp.f64 {}, {}, {}, {}", value.twins[1], upper.value, kNoTwin, own);
  writer_.Put("and.b32 {}, {}, 65535", joined, cell.bits);
  writer_.Put("setp.eq.and.b32 {}, {}, {}, {}", both, joined, low, own);
  writer_.Put("prmt.b32 {}, {}, {}, 0x5410", joined, cell.rounded, upper.rounded);
  writer_.Put("selp.b32 {0}, {1}, {2}, {3}", joined, joined, bits, both);
  writer_.Put("selp.b32 {0}, {0}, {1}, {2}", value.bits, joined, valid);
  writer_.Put("or.pred {0}, {0}, {1}", valid, both);
  AcceptHalf(upper, value, 1, place.inside);
}

RawValue CellWriter::ReadHalf(const CellPlace& place, int offset, const std::string& bits) {
  const CellRegisters cell = Load(place, offset);
  const std::string valid = writer_.Predicate(), stored = writer_.Half(), rounded = writer_.Half();
  RawValue value{.width = 16, .bits = writer_.Half(), .twins = {writer_.Double()}};
  writer_.Put("cvt.u16.u32 {}, {}", stored, cell.bits);
  writer_.Put("cvt.u16.u32 {}, {}", rounded, cell.rounded);
  writer_.Put("setp.eq.and.b16 {}, {}, {}, {}", valid, stored, bits, place.inside);
  writer_.Put("selp.b16 {}, {}, {}, {}", value.bits, rounded, bits, valid);
  writer_.Put("selp.f64 {}, {}, {}, {}", value.twins[0], cell.value, kNoTwin, valid);
  AcceptHalf(cell, value, 0, place.inside);
  return value;
}

RawValue CellWriter::ReadQuad(const CellPlace& place, int offset, const std::string& bits) {
  const std::vector<RawValue> words = writer_.Split({.width = 64, .bits = bits, .twins = {}}, 2);
  RawValue value = writer_.Join(
      {ReadWord(place, offset, words[0].bits), ReadWord(place, offset + 4, words[1].bits)});
  if (writer_.facts().float_atomics)
    AcceptAtomic(Load(place, offset), value, Type::kF64, 0, place.inside);
  return value;
}

RawValue CellWriter::Read(const CellPlace& place, int width, int offset, const std::string& bits) {
  return width == 16   ? ReadHalf(place, offset, bits)
         : width == 32 ? ReadWord(place, offset, bits)
                       : ReadQuad(place, offset, bits);
}

void CellWriter::Store(const CellPlace& place, int offset, const std::string& twin,
                       const std::string& bits, const std::string& rounded) {
  const std::string words = writer_.Quad();
  writer_.Put("mov.b64 {}, {{{}, {}}}", words, bits, rounded);
  std::string value = twin;
  if (value.empty()) {
    value = writer_.Double();
    writer_.Put("mov.f64 {}, {}", value, kNoTwin);
  }
  writer_.Put("@{} st{}.v2.b64 [{}+{}], {{{}, {}}}", place.inside, place.space, place.address,
              offset * kCellScale, value, words);
}

void CellWriter::Write(const CellPlace& place, int offset, const RawValue& value,
                       const std::string& bits) {
  if (value.width == 64) {
    const std::vector<RawValue> words = writer_.Split(value, 2);
    const std::vector<RawValue> own = writer_.Split({.width = 64, .bits = bits, .twins = {}}, 2);
    Write(place, offset, words[0], own[0].bits);
    return Write(place, offset + 4, words[1], own[1].bits);
  }
  if (value.width == 16) {
    const std::string own = writer_.Word(), rounded = writer_.Word();
    writer_.Put("cvt.u32.u16 {}, {}", own, bits);
    writer_.Put("cvt.u32.u16 {}, {}", rounded, value.bits);
    return Store(place, offset, value.twins[0], own, rounded);
  }
  Store(place, offset, value.twins[0], bits, value.bits);
  if (!writer_.facts().halves) return;
  const std::string own = writer_.Word(), rounded = writer_.Word();
  writer_.Put("shr.u32 {}, {}, 16", own, bits);
  writer_.Put("shr.u32 {}, {}, 16", rounded, value.bits);
  Store(place, offset + 2, value.twins[1], own, rounded);
}

void CellWriter::Forget(const CellPlace& place, int width, int offset, const std::string& bits) {
  const int step = writer_.facts().halves ? 2 : 4;
  for (int at = 0; at < std::max(width / 8, 1); at += step) {
    // Bits that memory will not hold: a cell that never counts.
    std::string other = writer_.Quad();
    writer_.Put("{}", width == 64 ? fmt::format("mov.b64 {}, {}", other, bits)
                                  : fmt::format("cvt.u64.u{} {}, {}", width, other,
                                                writer_.InRegister(bits, width)));
    if (width == 64 && at >= 4) writer_.Put("shr.u64 {0}, {0}, 32", other);
    if (at % 4 == 2) writer_.Put("shr.u64 {0}, {0}, 16", other);
    writer_.Put("not.b64 {0}, {0}", other);
    writer_.Put("@{} st{}.b64 [{}+{}], {}", place.inside, place.space, place.address,
                (offset + at) * kCellScale + 8, other);
  }
}

std::string CellWriter::CellsOf(const std::vector<ptx::Variable>& variables,
                                std::string_view space) {
  std::string text;
  for (const ptx::Variable& variable : variables)
    text += fmt::format("\t{} .align 16 .b8 {}$cells[{}];\n", space, variable.name,
                        kCellScale * (variable.bytes + kHalfCell));
  return text;
}

std::string CellWriter::Prologue(bool shared) {
  std::string text =
      "\t.reg .b64 %atunner_arena, %atunner_bytes, %atunner_cells, %atunner_shared, "
      "%atunner_stride;\n"
      "\t.reg .b32 %atunner_block, %atunner_extent;\n";
  constexpr std::string_view kWords[] = {"arena", "bytes", "cells", "shared", "stride"};
  for (size_t i = 0; i < kSymbolWords; ++i)
    text += fmt::format("\tld.global.b64 %atunner_{}, [{}+{}];\n", kWords[i], kSymbol, 8 * i);
  if (!shared) return text;
  return text +
         "\tmov.u32 %atunner_block, %ctaid.z;\n"
         "\tmov.u32 %atunner_extent, %nctaid.y;\n"
         "\tmul.lo.u32 %atunner_block, %atunner_block, %atunner_extent;\n"
         "\tmov.u32 %atunner_extent, %ctaid.y;\n"
         "\tadd.u32 %atunner_block, %atunner_block, %atunner_extent;\n"
         "\tmov.u32 %atunner_extent, %nctaid.x;\n"
         "\tmul.lo.u32 %atunner_block, %atunner_block, %atunner_extent;\n"
         "\tmov.u32 %atunner_extent, %ctaid.x;\n"
         "\tadd.u32 %atunner_block, %atunner_block, %atunner_extent;\n"
         "\t{ .reg .b64 %wide;\n"
         "\tcvt.u64.u32 %wide, %atunner_block;\n"
         "\tmad.lo.u64 %atunner_shared, %wide, %atunner_stride, %atunner_shared; }\n";
}

}  // namespace atunner::shadow
