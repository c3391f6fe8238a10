// The writers of the shadow's code, by kind of instruction. Each leaves its code in the
// ValueWriter: before and behind the original instruction.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "atunner/shadow/value_writer.h"

namespace atunner::shadow {

/// Registers that one mov of a constant defines: the constant.
using Constants = std::map<int, TextOperand>;
Constants ConstantsOf(const TextFunction& function);

void WriteFloat(ValueWriter& writer, const FloatForm& form, const Constants& constants);
void WriteMma(ValueWriter& writer, const MmaForm& form);
/// The products of 16 rows of A with 8 columns of B, added to C: those of rows g and g + 8.
std::vector<std::vector<std::string>> SumsOf(ValueWriter& writer, const MmaForm& form,
                                             const std::vector<TextOperand>& a,
                                             const std::vector<TextOperand>& b,
                                             const std::vector<TextOperand>& c);
void SetSums(ValueWriter& writer, const MmaForm& form, const std::vector<TextOperand>& results,
             const std::vector<std::vector<std::string>>& sums);
void WriteFragmentLoad(ValueWriter& writer, const FragmentForm& form);
void WriteFragmentStore(ValueWriter& writer, const FragmentForm& form);
void WriteFragmentProduct(ValueWriter& writer, const MmaForm& form);
void WriteMove(ValueWriter& writer);
void WriteSelect(ValueWriter& writer);
void WriteShuffle(ValueWriter& writer);
void WriteDuplicate(ValueWriter& writer);
void WriteLoad(ValueWriter& writer);
void WriteStore(ValueWriter& writer);
void WriteAtomic(ValueWriter& writer);
void WriteAsyncCopy(ValueWriter& writer);
void WriteLdMatrix(ValueWriter& writer);
/// All results take the original's value.
void WriteOriginal(ValueWriter& writer);

}  // namespace atunner::shadow
