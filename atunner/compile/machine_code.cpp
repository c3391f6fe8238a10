#include "atunner/compile/machine_code.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "atunner/compile/elf.h"

namespace atunner {
namespace {

// Bytes of an instruction, from sm_70 on.
constexpr uint64_t kBytes = 16;
// A DWARF line table like .debug_line that names lines of the PTX.
constexpr std::string_view kLineSection = ".nv_debug_line_sass";
constexpr uint16_t kBranch = 0x147, kCall = 0x143, kCallRelative = 0x144, kNop = 0x118;

/// Reads consecutive numbers; returns zeros past the end.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  size_t at() const { return at_; }
  void Seek(size_t at) { at_ = std::min(at, bytes_.size()); }
  bool done() const { return at_ >= bytes_.size(); }

  template <class T>
  T Take() {
    T value{};
    if (bytes_.size() - at_ >= sizeof(T)) std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    Seek(at_ + sizeof(T));
    return value;
  }
  uint64_t TakeUnsigned() { return TakeLeb().first; }
  int64_t TakeSigned() {
    const auto [value, bits] = TakeLeb();
    const bool negative = bits > 0 && bits < 64 && ((value >> (bits - 1)) & 1) != 0;
    return static_cast<int64_t>(negative ? value | ~uint64_t{0} << bits : value);
  }

 private:
  std::pair<uint64_t, unsigned> TakeLeb() {
    uint64_t value = 0;
    unsigned bits = 0;
    uint8_t byte = 0x80;
    while ((byte & 0x80) != 0 && !done()) {
      byte = Take<uint8_t>();
      if (bits < 64) value |= uint64_t{byte & 0x7fu} << bits;
      bits += 7;
    }
    return {value, bits};
  }

  std::string_view bytes_;
  size_t at_ = 0;
};

std::vector<Elf64_Sym> Symbols(const Elf& elf) {
  std::vector<Elf64_Sym> symbols;
  for (const Elf64_Shdr& section : elf.sections()) {
    if (section.sh_type != SHT_SYMTAB) continue;
    Reader reader(elf.Bytes(section));
    while (!reader.done()) symbols.push_back(reader.Take<Elf64_Sym>());
  }
  return symbols;
}

/// The section that each relocated address of the line table belongs to, by the address's offset in
/// the table.
std::map<uint64_t, uint64_t> AddressSections(const Elf& elf) {
  std::map<uint64_t, uint64_t> sections;
  const std::vector<Elf64_Sym> symbols = Symbols(elf);
  for (const Elf64_Shdr& section : elf.sections()) {
    const bool addends = section.sh_type == SHT_RELA;
    if ((!addends && section.sh_type != SHT_REL) || !elf.NameOf(section).ends_with(kLineSection))
      continue;
    Reader reader(elf.Bytes(section));
    while (!reader.done()) {
      const auto entry = reader.Take<Elf64_Rel>();
      if (addends) reader.Take<uint64_t>();
      const uint64_t symbol = ELF64_R_SYM(entry.r_info);
      if (symbol < symbols.size()) sections[entry.r_offset] = symbols[symbol].st_shndx;
    }
  }
  return sections;
}

/// Interpreter of a DWARF line table that keeps the rows of one section.
class LineProgram {
 public:
  LineProgram(std::string_view table, const std::map<uint64_t, uint64_t>& sections, uint64_t wanted)
      : reader_(table), sections_(sections), wanted_(wanted) {}

  /// The PTX line of each instruction.
  std::vector<uint32_t> Run(size_t instructions) {
    lines_.assign(instructions, 0);
    while (!reader_.done()) RunUnit();
    return std::move(lines_);
  }

 private:
  struct Row {
    bool here = false;  ///< the row is in the wanted section
    uint64_t address = 0;
    int64_t line = 1;
  };

  void RunUnit() {
    const size_t start = reader_.at();
    const auto length = reader_.Take<uint32_t>();
    const auto version = reader_.Take<uint16_t>();
    const auto header = reader_.Take<uint32_t>();
    const size_t program = reader_.at() + header;
    least_ = reader_.Take<uint8_t>();
    if (version >= 4) reader_.Take<uint8_t>();  // operations of one instruction
    reader_.Take<uint8_t>();                    // is_stmt by default
    line_base_ = reader_.Take<int8_t>();
    line_range_ = std::max<uint8_t>(1, reader_.Take<uint8_t>());
    opcode_base_ = reader_.Take<uint8_t>();
    operands_.assign(opcode_base_, 0);
    for (size_t i = 1; i < operands_.size(); ++i) operands_[i] = reader_.Take<uint8_t>();
    reader_.Seek(program);
    row_ = {};
    while (!reader_.done() && reader_.at() < start + 4 + length) Step();
    reader_.Seek(std::max(start + 4 + length, reader_.at()));
  }

  void Step() {
    const auto opcode = reader_.Take<uint8_t>();
    if (opcode >= opcode_base_) return Special(static_cast<uint8_t>(opcode - opcode_base_));
    switch (opcode) {
      case 0:
        return Extended();
      case 1:  // copy
        return EndRange();
      case 2:  // advance_pc
        return Advance(reader_.TakeUnsigned());
      case 3:  // advance_line
        row_.line += reader_.TakeSigned();
        return;
      case 8:  // const_add_pc
        return Advance(static_cast<uint64_t>((255 - opcode_base_) / line_range_));
      case 9:  // fixed_advance_pc
        row_.address += reader_.Take<uint16_t>();
        return;
      default:
        for (int i = 0; i < operands_[opcode]; ++i) reader_.TakeUnsigned();
    }
  }

  /// A special opcode advances address and line at once.
  void Special(uint8_t code) {
    Advance(code / line_range_);
    row_.line += line_base_ + code % line_range_;
    EndRange();
  }

  void Extended() {
    const uint64_t length = reader_.TakeUnsigned();
    const size_t start = reader_.at();
    const auto opcode = reader_.Take<uint8_t>();
    if (opcode == 1) {  // end_sequence
      EndRange();
      row_ = {};
      last_ = {};
    } else if (opcode == 2) {  // set_address
      const auto section = sections_.find(reader_.at());
      row_.here = section != sections_.end() && section->second == wanted_;
      row_.address = reader_.Take<uint64_t>();
    }
    reader_.Seek(start + length);
  }

  void Advance(uint64_t instructions) { row_.address += instructions * least_; }

  /// Ends the range of the last row at the current one: all instructions in between have its line.
  void EndRange() {
    const uint64_t end = std::min<uint64_t>(row_.address / kBytes, lines_.size());
    for (uint64_t i = last_.address / kBytes; last_.here && row_.here && i < end; ++i)
      lines_[i] = static_cast<uint32_t>(std::max<int64_t>(0, last_.line));
    last_ = row_;
  }

  Reader reader_;
  const std::map<uint64_t, uint64_t>& sections_;
  uint64_t wanted_;
  std::vector<uint32_t> lines_;
  std::vector<uint8_t> operands_;  ///< number of operands of each standard opcode
  uint8_t least_ = 1, line_range_ = 1, opcode_base_ = 1;
  int8_t line_base_ = 0;
  Row row_, last_;
};

uint64_t Field(uint64_t word, int from, int bits) {
  return word >> from & ((uint64_t{1} << bits) - 1);
}

MachineInstruction Decode(uint64_t low, uint64_t high) {
  // Bits 105 to 121 of an instruction control the scheduler.
  MachineInstruction instruction;
  instruction.opcode = static_cast<uint16_t>(Field(low, 0, 9));
  constexpr uint64_t kAlways = 7, kNever = 15;
  const uint64_t predicate = Field(low, 12, 4);
  instruction.conditional = predicate != kAlways;
  // Never executed, like the three loads before each copy to shared memory on sm_90: they take
  // issue slots and have no effect.
  if (predicate == kNever) instruction.opcode = kNop;
  // Size codes of loads and stores: 0 to 3 are signed and unsigned 1 and 2 bytes, then 4, 8, 16
  // bytes.
  const uint64_t size = Field(high, 9, 3);
  instruction.words = size == 5 ? 2 : size == 6 ? 4 : 1;
  instruction.stall = static_cast<uint8_t>(Field(high, 41, 4));
  instruction.result_barrier = static_cast<uint8_t>(Field(high, 46, 3));
  instruction.read_barrier = static_cast<uint8_t>(Field(high, 49, 3));
  instruction.waits = static_cast<uint8_t>(Field(high, 52, 6));
  return instruction;
}

/// Distance from the next instruction to a branch's target, in 4-byte words.
int64_t BranchWords(uint64_t low, uint64_t high, int sm) {
  const uint64_t field = Field(low, 34, 30) | Field(high, 0, 18) << 30;
  const auto words = static_cast<int64_t>(field << 16) >> 16;
  return sm >= 90 ? words * 256 + static_cast<int64_t>(Field(low, 16, 8)) : words;
}

int SmOf(std::string_view arch) {
  int sm = 0;
  if (arch.starts_with("sm_")) std::from_chars(arch.data() + 3, arch.data() + arch.size(), sm);
  return sm;
}

MachineCode DecodeAll(std::string_view text, int sm) {
  MachineCode code;
  Reader reader(text);
  const auto count = static_cast<int64_t>(text.size() / kBytes);
  for (int64_t i = 0; i < count; ++i) {
    const auto low = reader.Take<uint64_t>();
    const auto high = reader.Take<uint64_t>();
    MachineInstruction instruction = Decode(low, high);
    if (instruction.opcode == kBranch || instruction.opcode == kCall ||
        instruction.opcode == kCallRelative) {
      const int64_t target = i + 1 + BranchWords(low, high, sm) / 4;
      if (target >= 0 && target < count) instruction.target = static_cast<uint32_t>(target);
    }
    code.push_back(instruction);
  }
  return code;
}

}  // namespace

Result<MachineCode> ReadMachineCode(std::string_view cubin, std::string_view symbol,
                                    std::string_view arch) {
  ATUNNER_TRY(const Elf elf, Elf::Open(cubin));
  const int sm = SmOf(arch);
  if (sm < 70) return MachineCode{};
  std::optional<size_t> text;
  std::string_view table;
  for (size_t i = 0; i < elf.sections().size(); ++i) {
    const std::string_view name = elf.NameOf(elf.sections()[i]);
    if (name == ".text." + std::string(symbol)) text = i;
    if (name == kLineSection) table = elf.Bytes(elf.sections()[i]);
  }
  if (!text || table.empty()) return MachineCode{};
  MachineCode code = DecodeAll(elf.Bytes(elf.sections()[*text]), sm);
  const std::map<uint64_t, uint64_t> sections = AddressSections(elf);
  const std::vector<uint32_t> lines = LineProgram(table, sections, *text).Run(code.size());
  for (size_t i = 0; i < code.size(); ++i) code[i].line = lines[i];
  return code;
}

}  // namespace atunner
