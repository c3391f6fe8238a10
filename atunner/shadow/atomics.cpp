// Atomics on floats, and atomics on integers that carry the bits of floats.
//
// A float addition adds the twins with an atomic of its own. The bits of memory and the cell cannot
// change in one step, so a cell that atomics add to no longer says which bits it belongs to: it is
// marked and counts always, until a store gives it an ordinary twin. The first thread marks it:
//
//     word = cell.bits and cell.rounded          (8 bytes)
//     if word is not a mark:
//       old = cell.value; bits = memory; again = word
//       if again == word:                        // nobody has added yet
//         cas(cell.value, old, the twin if it counts, else the value of bits)
//         cas(word of the cell, word, mark)
//     cell.value += twin                         // atomically
//
// If another thread did all that in between, both exchanges fail, which is right. The two halves of
// a word have a cell each.
#include <algorithm>

#include "atunner/shadow/cell_values.h"
#include "atunner/shadow/cell_writer.h"
#include "atunner/shadow/writers.h"

namespace atunner::shadow {
namespace {

using OperandKind = TextOperand::Kind;

struct AtomicForm {
  std::string operation;  ///< "add", "cas", …
  Type type = Type::kNone;
  size_t address = 1;  ///< index of the operand
  size_t value = 2;    ///< likewise; a cache policy may follow
  bool returns = true;
};

AtomicForm FormOf(const TextInstruction& instruction) {
  AtomicForm form{.operation = "", .type = LastType(instruction)};
  for (const std::string& modifier : instruction.modifiers) {
    for (const char* name :
         {"add", "min", "max", "exch", "cas", "and", "or", "xor", "inc", "dec"}) {
      if (modifier == name) form.operation = name;
    }
  }
  form.returns = instruction.opcode == "atom";
  form.address = form.returns ? 1 : 0;
  form.value = form.address + (form.operation == "cas" ? 2 : 1);
  return form;
}

class AtomicWriter {
 public:
  AtomicWriter(ValueWriter& writer, AtomicForm form)
      : writer_(writer), cells_(writer), form_(std::move(form)) {
    address_ = cells_.AddressOf(writer_.operand(form_.address));
    space_ = SpaceOf(writer_.instruction());
    place_ = cells_.Locate(address_, space_);
    width_ = ptx::BitsOf(form_.type);
    element_ = ElementOf(form_.type);
  }

  void Add();
  void Exchange();
  /// Integer operations whose result may be the operand itself, e.g. a maximum of float bits.
  void Choose();

 private:
  const TextOperand& value() const { return writer_.operand(form_.value); }
  std::string Space() const { return space_.empty() ? "" : "." + space_; }
  /// Marks the cell `offset` bytes behind the address.
  void Mark(int offset);
  std::string InitialValue(const std::string& bits, const std::string& rounded,
                           const std::string& old, const std::string& memory);
  void SetResult(const RawValue& value) { writer_.Set(writer_.operand(0).reg, value); }

  ValueWriter& writer_;
  CellWriter cells_;
  AtomicForm form_;
  std::string address_, space_;
  CellPlace place_;
  Type element_ = Type::kF32;
  int width_ = 32;
};

/// What the cell's value becomes as it is marked.
std::string AtomicWriter::InitialValue(const std::string& bits, const std::string& rounded,
                                       const std::string& old, const std::string& memory) {
  if (element_ == Type::kF64)
    return writer_.Widen(Type::kF64, cells_.Read(place_, 64, 0, memory).bits);
  const std::string valid = writer_.Predicate();
  if (width_ == 32) {
    const std::string own = writer_.Word();
    writer_.Put("setp.eq.b32 {}, {}, {}", valid, bits, memory);
    writer_.Put("selp.b32 {}, {}, {}, {}", own, rounded, memory, valid);
    return writer_.Fetch({.width = 32, .bits = own, .twins = {old}}, element_);
  }
  const std::string low = writer_.Half(), own = writer_.Half();
  writer_.Put("cvt.u16.u32 {}, {}", low, bits);
  writer_.Put("setp.eq.b16 {}, {}, {}", valid, low, memory);
  writer_.Put("cvt.u16.u32 {}, {}", own, rounded);
  writer_.Put("selp.b16 {0}, {0}, {1}, {2}", own, memory, valid);
  return writer_.Fetch({.width = 16, .bits = own, .twins = {old}}, element_);
}

void AtomicWriter::Mark(int offset) {
  const std::string word = writer_.Quad(), again = writer_.Quad(), old = writer_.Double();
  const std::string bits = writer_.Word(), rounded = writer_.Word(), first = writer_.Predicate();
  const std::string memory = width_ == 64   ? writer_.Quad()
                             : width_ == 32 ? writer_.Word()
                                            : writer_.Half();
  const std::string cell = fmt::format("[{}+{}]", place_.address, 8 * offset);
  const std::string description = fmt::format("[{}+{}]", place_.address, 8 * offset + 8);
  writer_.Put("mov.b64 {}, 0", word);
  writer_.Put("@{} ld.volatile{}.b64 {}, {}", place_.inside, place_.space, word, description);
  writer_.Put("mov.b64 {{{}, {}}}, {}", bits, rounded, word);
  writer_.Put("setp.ne.and.b32 {}, {}, {}, {}", first, rounded, kAtomicMark, place_.inside);
  writer_.Put("@{} ld.volatile{}.f64 {}, {}", first, place_.space, old, cell);
  writer_.Put("@{} ld.volatile{}.b{} {}, [{}+{}]", first, Space(), width_, memory, address_,
              offset);
  writer_.Put("@{} ld.volatile{}.b64 {}, {}", first, place_.space, again, description);
  writer_.Put("setp.eq.and.b64 {0}, {1}, {2}, {0}", first, again, word);
  const std::string initial = InitialValue(bits, rounded, old, memory);
  const std::string before = writer_.Quad(), after = writer_.Quad(), ignored = writer_.Quad();
  writer_.Put("mov.b64 {}, {}", before, old);
  writer_.Put("mov.b64 {}, {}", after, initial);
  writer_.Put("@{} atom{}.cas.b64 {}, {}, {}, {}", first, place_.space, ignored, cell, before,
              after);
  writer_.Put("mov.b64 {}, {}", after, uint64_t{kAtomicMark} << 32 | AtomicKindOf(element_));
  writer_.Put("@{} atom{}.cas.b64 {}, {}, {}, {}", first, place_.space, ignored, description, word,
              after);
}

void AtomicWriter::Add() {
  const int lanes = form_.type == element_ ? 1 : 2;
  width_ = ptx::BitsOf(element_);
  const bool used = form_.returns && writer_.HasShadow(writer_.operand(0));
  std::vector<std::string> before;
  for (int lane = 0; lane < lanes; ++lane) {
    const std::string twin = writer_.Fetch(value(), element_, lane);
    Mark(2 * lane);
    before.push_back(writer_.Double());
    writer_.Put("@{} atom{}.add.f64 {}, [{}+{}], {}", place_.inside, place_.space, before.back(),
                place_.address, 16 * lane, twin);
  }
  if (!used) return;
  writer_.Behind();
  std::vector<std::string> results;
  for (int lane = 0; lane < lanes; ++lane) {
    const RawValue own{.width = width_ * lanes,
                       .bits = writer_.OriginalBits(writer_.operand(0), width_ * lanes),
                       .twins = {}};
    results.push_back(writer_.Double());
    writer_.Put("selp.f64 {}, {}, {}, {}", results.back(), before[static_cast<size_t>(lane)],
                writer_.Fetch(own, element_, lane), place_.inside);
  }
  writer_.SetFloats(writer_.operand(0).reg, element_, results);
}

void AtomicWriter::Exchange() {
  const bool compares = form_.operation == "cas";
  const RawValue stored = writer_.Raw(value(), width_);
  const std::string bits = writer_.OriginalBits(value(), width_);
  RawValue expected;
  if (compares) expected = writer_.Raw(writer_.operand(2), width_);
  writer_.Behind();
  const TextOperand& result = writer_.operand(0);
  if (result.kind != OperandKind::kRegister) return;
  const std::string found = writer_.OriginalBits(result, width_);
  if (!compares) {  // the cell before the exchange tells what was found
    if (writer_.flow().HasShadow(result.reg))
      writer_.Set(result.reg, cells_.Read(place_, width_, 0, found));
    return cells_.Write(place_, 0, stored, bits);
  }
  const std::string success = writer_.Predicate();
  writer_.Put("setp.eq.and.b{} {}, {}, {}, {}", width_, success, found,
              writer_.OriginalBits(writer_.operand(2), width_), place_.inside);
  CellPlace written = place_;
  written.inside = success;
  cells_.Write(written, 0, stored, bits);
  // Who failed finds what another thread has stored, with its twin.
  if (writer_.flow().HasShadow(result.reg))
    writer_.Set(result.reg, cells_.Read(place_, width_, 0, found));
}

void AtomicWriter::Choose() {
  const RawValue stored = writer_.Raw(value(), width_);
  const std::string bits = writer_.OriginalBits(value(), width_);
  writer_.Behind();
  const std::string memory = width_ == 64 ? writer_.Quad() : writer_.Word();
  const std::string own = writer_.Predicate();
  writer_.Put("mov.b{} {}, {}", width_, memory, 0);
  writer_.Put("@{} ld.volatile{}.b{} {}, [{}]", place_.inside, Space(), width_, memory, address_);
  writer_.Put("setp.eq.and.b{} {}, {}, {}, {}", width_, own, memory,
              writer_.InRegister(bits, width_), place_.inside);
  CellPlace written = place_;
  written.inside = own;
  cells_.Write(written, 0, stored, bits);
  if (form_.returns) WriteOriginal(writer_);
}

}  // namespace

void WriteAtomic(ValueWriter& writer) {
  AtomicForm form = FormOf(writer.instruction());
  if (writer.instruction().operands.size() <= form.value || VectorSize(writer.instruction()) > 1)
    return WriteOriginal(writer);
  if (form.operation == "add" && AtomicKindOf(ElementOf(form.type)) != 0)
    return AtomicWriter(writer, std::move(form)).Add();
  const int width = ptx::BitsOf(form.type);
  const bool shadowed = writer.HasShadow(writer.operand(form.value));
  const bool exchanges = form.operation == "cas" || form.operation == "exch";
  if ((width != 32 && width != 64) || !(shadowed || exchanges)) return WriteOriginal(writer);
  if (exchanges) return AtomicWriter(writer, std::move(form)).Exchange();
  if (form.operation == "min" || form.operation == "max")
    return AtomicWriter(writer, std::move(form)).Choose();
  WriteOriginal(writer);
}

}  // namespace atunner::shadow
