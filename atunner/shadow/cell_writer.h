// Writes the PTX that finds, reads and writes cells. The rules of cell_values.h, in PTX.
#pragma once

#include <optional>
#include <string>

#include "atunner/shadow/value_writer.h"

namespace atunner::shadow {

/// The cells of an address.
struct CellPlace {
  std::string space;    ///< ".global", ".local", "" = generic
  std::string address;  ///< register with the address of the first cell
  std::string inside;   ///< predicate: there are cells, and the instruction's guard is true
};

/// Address space of an access: "global", "shared", "local"; "" = generic.
std::string SpaceOf(const TextInstruction& instruction);

class CellWriter {
 public:
  explicit CellWriter(ValueWriter& writer) : writer_(writer) {}

  /// The address of an operand "[%rd1+4]" as a 64-bit register.
  std::string AddressOf(const TextOperand& operand);
  /// The cells of an address in that space.
  CellPlace Locate(const std::string& address, const std::string& space);
  /// The shadow of `width` bits of memory, `offset` bytes behind the place, that hold `bits`.
  RawValue Read(const CellPlace& place, int width, int offset, const std::string& bits);
  /// Writes the cells of `width` bits of memory that the instruction fills with `bits`.
  void Write(const CellPlace& place, int offset, const RawValue& value, const std::string& bits);
  /// The same for a value that is exact.
  void Forget(const CellPlace& place, int width, int offset, const std::string& bits);

  /// Registers that the prologue of a function with memory accesses sets.
  static std::string Prologue(bool shared);
  /// Declarations of the cells of variables.
  static std::string CellsOf(const std::vector<ptx::Variable>& variables, std::string_view space);

 private:
  struct CellRegisters {
    std::string value, bits, rounded;
  };
  void Offset(const std::string& address, const std::string& base, const std::string& bytes,
              CellPlace& place);
  void LocateGlobal(const std::string& address, CellPlace& place);
  void LocateShared(const std::string& address, CellPlace& place);
  /// Adds the places of variables with cells of their own.
  void AddVariables(const std::string& address, const std::vector<ptx::Variable>& variables,
                    CellPlace& place);
  void LocateLocal(const std::string& address, CellPlace& place);
  void LocateGeneric(const std::string& address, CellPlace& place);
  CellRegisters Load(const CellPlace& place, int offset);
  void AwaitExchange(const CellPlace& place, int offset, const std::string& bits,
                     const CellRegisters& cell);
  RawValue ReadWord(const CellPlace& place, int offset, const std::string& bits);
  void AddHalves(const CellPlace& place, int offset, const std::string& bits,
                 const CellRegisters& cell, const std::string& valid, RawValue& value);
  RawValue ReadHalf(const CellPlace& place, int offset, const std::string& bits);
  RawValue ReadQuad(const CellPlace& place, int offset, const std::string& bits);
  void AcceptAtomic(const CellRegisters& cell, RawValue& value, Type type, size_t lane,
                    const std::string& inside);
  void AcceptHalf(const CellRegisters& cell, RawValue& value, size_t lane,
                  const std::string& inside);
  void Store(const CellPlace& place, int offset, const std::string& twin, const std::string& bits,
             const std::string& rounded);
  std::string Guarded(const std::string& comparison);

  ValueWriter& writer_;
};

}  // namespace atunner::shadow
