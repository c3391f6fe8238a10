#include "atunner/shadow/shadow.h"

#include <fmt/format.h>

#include <algorithm>

#include "atunner/ptx/statements.h"
#include "atunner/shadow/cell_values.h"
#include "atunner/shadow/cell_writer.h"
#include "atunner/shadow/flow.h"
#include "atunner/shadow/writers.h"
#include "embed/shadow.h"

namespace atunner::shadow {
namespace {

bool IsHalf(Type type) { return type == Type::kF16 || type == Type::kBF16; }

bool UsesHalves(const TextInstruction& instruction) {
  return std::ranges::any_of(instruction.modifiers, [](const std::string& modifier) {
    return IsHalf(ElementOf(ptx::ParseType(modifier)));
  });
}

bool IsFloatAtomic(const TextInstruction& instruction) {
  return KindOf(instruction) == Kind::kAtomic && instruction.Has("add") &&
         AtomicKindOf(ElementOf(LastType(instruction))) != 0;
}

/// Additions to vectors, whose cells are not kept.
bool IsVectorAtomic(const TextInstruction& instruction) {
  return IsFloatAtomic(instruction) && VectorSize(instruction) > 1;
}

/// Text that is inserted at a place of the original.
struct Insertion {
  size_t place = 0;
  std::string text;
};

class ShadowMaker {
 public:
  ShadowMaker(std::string_view text, ptx::TextModule module)
      : text_(text), module_(std::move(module)) {}

  Result<ShadowKernel> Run();

 private:
  Status FindFacts();
  void Function(const TextFunction& function);
  void Head(const TextFunction& function);
  void Instruction(ValueWriter& writer, const Constants& constants);
  std::string Assembled();
  std::string ModuleText() const;

  std::string_view text_;
  ptx::TextModule module_;
  ModuleFacts facts_;
  ShadowKernel made_;
  std::vector<Insertion> insertions_;
};

Result<ShadowKernel> ShadowMaker::Run() {
  ATUNNER_RETURN_IF_ERROR(FindFacts());
  if (!made_.carries_floats) {
    made_.ptx = std::string(text_);
    return std::move(made_);
  }
  for (const TextFunction& function : module_.functions) Function(function);
  made_.uses_shared = facts_.uses_shared;
  insertions_.push_back({module_.variables, ModuleText()});
  made_.ptx = Assembled();
  return std::move(made_);
}

/// Tables of constants have initial values; large arrays would need much memory.
bool MayHoldResults(const ptx::Variable& variable) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 24;
  return variable.initial.empty() && variable.opaque.empty() && variable.bytes > 0 &&
         variable.bytes <= kMostBytes;
}

Status ShadowMaker::FindFacts() {
  std::ranges::copy_if(module_.globals, std::back_inserter(facts_.variables), MayHoldResults);
  for (const TextFunction& function : module_.functions) {
    for (const TextInstruction& instruction : function.body) {
      const Kind kind = KindOf(instruction);
      if (kind == Kind::kRefused)
        return Fail(ErrorCode::kUnsupported,
                    fmt::format("'{}' has no double-precision counterpart", instruction.Mnemonic()),
                    fmt::format("PTX line {}", instruction.line));
      if (!HasItsOperands(instruction))
        return Invalid(fmt::format("'{}' lacks operands", instruction.Mnemonic()),
                       fmt::format("PTX line {}", instruction.line));
      made_.carries_floats |= kind == Kind::kFloat || kind == Kind::kMma || kind == Kind::kLossy ||
                              kind == Kind::kFragmentProduct;
      facts_.halves |= UsesHalves(instruction);
      facts_.bfloats |= instruction.Has("bf16") || instruction.Has("bf16x2");
      facts_.float_atomics |= IsFloatAtomic(instruction);
      facts_.exchanges |= kind == Kind::kAtomic &&
                          (instruction.Has("cas") || instruction.Has("exch"));
      made_.carries_floats |= IsFloatAtomic(instruction);
    }
  }
  return {};
}

void ShadowMaker::Function(const TextFunction& function) {
  const Flow flow(function, facts_.halves);
  for (const size_t index : flow.lossy())
    made_.lossy.push_back({function.body[index].line, function.body[index].Mnemonic()});
  for (const TextInstruction& instruction : function.body) {
    if (IsVectorAtomic(instruction))
      made_.lossy.push_back({instruction.line, instruction.Mnemonic()});
  }
  ValueWriter writer(function, flow, facts_);
  const Constants constants = ConstantsOf(function);
  const bool shared_before = std::exchange(facts_.uses_shared, false);
  for (const TextInstruction& instruction : function.body) {
    writer.Begin(instruction);
    Instruction(writer, constants);
    if (!writer.before().empty())
      insertions_.push_back({instruction.begin, "\n" + writer.before()});
    if (!writer.after().empty()) insertions_.push_back({instruction.end, "\n" + writer.after()});
  }
  insertions_.push_back({function.begin, "\n" + CellWriter::CellsOf(function.local, ".local") +
                                             writer.Declarations() +
                                             CellWriter::Prologue(facts_.uses_shared)});
  facts_.uses_shared |= shared_before;
  Head(function);
}

/// Shadows need more registers than their originals. A kernel that states no size of block must
/// still run with the largest.
void ShadowMaker::Head(const TextFunction& function) {
  const auto states = [&](std::string_view directive) {
    return std::ranges::find(function.directives, directive) != function.directives.end();
  };
  if (!function.is_entry || states(".maxntid") || states(".reqntid") || states(".maxnreg")) return;
  insertions_.push_back({function.head, ".maxntid 1024, 1, 1\n"});
}

void ShadowMaker::Instruction(ValueWriter& writer, const Constants& constants) {
  const TextInstruction& instruction = writer.instruction();
  switch (KindOf(instruction)) {
    case Kind::kFloat:
      return WriteFloat(writer, *FloatFormOf(instruction), constants);
    case Kind::kMove:
      return WriteMove(writer);
    case Kind::kSelect:
      return WriteSelect(writer);
    case Kind::kShuffle:
      return WriteShuffle(writer);
    case Kind::kDuplicate:
      return WriteDuplicate(writer);
    case Kind::kLoad:
      return WriteLoad(writer);
    case Kind::kStore:
      return WriteStore(writer);
    case Kind::kAtomic:
      return WriteAtomic(writer);
    case Kind::kAsyncCopy:
      return WriteAsyncCopy(writer);
    case Kind::kLdMatrix:
      return WriteLdMatrix(writer);
    case Kind::kMma:
      return WriteMma(writer, *MmaFormOf(instruction));
    case Kind::kFragmentLoad:
      return WriteFragmentLoad(writer, *FragmentFormOf(instruction));
    case Kind::kFragmentStore:
      return WriteFragmentStore(writer, *FragmentFormOf(instruction));
    case Kind::kFragmentProduct:
      return WriteFragmentProduct(writer, FragmentFormOf(instruction)->product);
    default:
      return WriteOriginal(writer);
  }
}

std::string ShadowMaker::ModuleText() const {
  std::string text = fmt::format("\n.visible .global .align 8 .b64 {}[{}];\n", kSymbol,
                                 kSymbolWords);
  text += CellWriter::CellsOf(facts_.variables, ".global");
  if (facts_.calls_functions) text += embed::kFunctionsPtx;
  return text;
}

std::string ShadowMaker::Assembled() {
  std::ranges::stable_sort(insertions_, {}, &Insertion::place);
  std::string text;
  size_t at = 0;
  for (const Insertion& insertion : insertions_) {
    text += text_.substr(at, insertion.place - at);
    text += insertion.text;
    at = insertion.place;
  }
  text += text_.substr(at);
  return text;
}

}  // namespace

Result<ShadowKernel> MakeShadow(std::string_view ptx, std::span<const std::string> entries) {
  ATUNNER_TRY(ptx::TextModule module, ptx::Statements(ptx));
  std::erase_if(module.functions, [&](const TextFunction& function) {
    return function.is_entry && !entries.empty() &&
           std::ranges::find(entries, function.name) == entries.end();
  });
  return ShadowMaker(ptx, std::move(module)).Run();
}

}  // namespace atunner::shadow
