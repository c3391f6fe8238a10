#include "atunner/intake/captured/captured_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "atunner/capture/blob_store.h"
#include "atunner/capture/placed_addresses.h"
#include "atunner/capture/signature.h"
#include "atunner/intake/captured/access_types.h"
#include "atunner/intake/captured/launch_tunables.h"

namespace atunner {
namespace {

using capture::BlobId;
using capture::CapturedBuffer;
using capture::CapturedLaunch;
using capture::CapturedSymbol;

/// What is known of a buffer from all parameters that lead to it.
struct BufferFacts {
  std::string name;
  std::optional<DType> dtype;
  bool typed = true;  ///< no parameters of different types
  bool read = false;
  bool direct = false;  ///< a parameter points to it
};

std::array<Expr, 3> Extents(const Dim3& dim) {
  return {Expr(int64_t{dim.x}), Expr(int64_t{dim.y}), Expr(int64_t{dim.z})};
}

/// Makes the UserKernel of a launch.
class Builder {
 public:
  Builder(const capture::Capture& capture, const CapturedLaunch& launch, const Path& blobs)
      : launch_(launch),
        kernel_(capture.kernels[launch.kernel]),
        on_gpu_(capture.head.evidence == Evidence::kMeasured),
        blobs_(blobs) {}

  Result<UserKernel> Run(const BlobId& ptx) {
    ATUNNER_RETURN_IF_ERROR(CheckLaunch());
    ATUNNER_RETURN_IF_ERROR(NameContents());
    ATUNNER_TRY(out_.source.text, capture::BlobStore(blobs_).Get(ptx));
    ATUNNER_TRY(const ptx::ValidModule module, ptx::Parse(out_.source.text));
    const ptx::Function* entry = module.Find(kernel_.name);
    if (entry == nullptr || entry->params.size() != launch_.parameters.size())
      return Invalid("the module has no such kernel: " + kernel_.name, blobs_.string());
    accesses_ = FindAccesses(*entry, launch_.configuration.block);
    signature_ = capture::ParseSignature(kernel_.readable);
    FindFacts();
    MakeSpec(module);
    MakePlan(*entry);
    out_.source.language = Language::kPtx;
    out_.source.name = out_.spec.name + ".ptx";
    return std::move(out_);
  }

 private:
  std::unexpected<Error> Cannot(const std::string& why) const {
    return Fail(ErrorCode::kUnsupported, why, kernel_.readable);
  }

  /// Reasons why its results could not be compared.
  Status CheckLaunch() const {
    if (!launch_.left_out.empty()) return Cannot(launch_.left_out);
    // The virtual GPU numbers functions; a GPU has their code elsewhere in each module.
    if (on_gpu_ && kernel_.readable.contains("(*)"))
      return Cannot(
          "its arguments have the address of a device function, which lies elsewhere in "
          "the module of a tuned kernel");
    const bool writes = std::ranges::any_of(
                            launch_.buffers,
                            [](const CapturedBuffer& one) { return !one.written.empty(); }) ||
                        std::ranges::any_of(launch_.symbols, [](const CapturedSymbol& one) {
                          return !one.after.empty();
                        });
    return writes ? Status{} : Cannot("it wrote nothing in the captured launch");
  }

  /// Contents that hold addresses get names with a list of these. Buffers are the first arguments
  /// of the task, in their order.
  Status NameContents() {
    capture::BlobStore blobs(blobs_);
    const auto name = [&](const BlobId& contents,
                          const std::vector<capture::CapturedPointer>& pointers) -> Status {
      std::vector<capture::PlacedAddress> addresses;
      for (const capture::CapturedPointer& pointer : pointers)
        addresses.push_back({pointer.at, pointer.buffer, pointer.offset});
      ATUNNER_TRY(contents_.emplace_back(), capture::PutAddresses(blobs, contents, addresses));
      return {};
    };
    for (const CapturedBuffer& buffer : launch_.buffers)
      ATUNNER_RETURN_IF_ERROR(name(buffer.before, buffer.pointers));
    for (const CapturedSymbol& symbol : launch_.symbols)
      ATUNNER_RETURN_IF_ERROR(name(symbol.before, symbol.pointers));
    return {};
  }

  void FindFacts() {
    facts_.resize(launch_.buffers.size());
    for (size_t i = 0; i < launch_.parameters.size(); ++i) {
      const capture::CapturedParameter& parameter = launch_.parameters[i];
      for (const capture::CapturedPointer& pointer : parameter.pointers)
        AddPointer(i, pointer, parameter.bytes.size());
    }
  }

  void AddPointer(size_t number, const capture::CapturedPointer& pointer, size_t bytes) {
    BufferFacts& facts = facts_[pointer.buffer];
    const bool whole = bytes == sizeof(uint64_t);
    if (facts.name.empty())
      facts.name = whole ? fmt::format("p{}", number) : fmt::format("p{}_{}", number, pointer.at);
    facts.direct = true;
    std::optional<DType> dtype;
    if (whole && number < signature_.parameters.size())
      dtype = capture::PointeeOf(signature_.parameters[number]);
    const auto use = accesses_.pointers.find({number, pointer.at});
    if (use != accesses_.pointers.end()) {
      if (!dtype) dtype = ElementTypeOf(use->second);
      facts.read |= use->second.read;
      facts.typed &= dtype.has_value();
    }
    if (!dtype) return;
    facts.typed &= !facts.dtype || *facts.dtype == *dtype;
    facts.dtype = dtype;
  }

  Role RoleOf(const CapturedBuffer& buffer, const BufferFacts& facts) const {
    if (buffer.written.empty()) return Role::kInput;
    // What a launch leaves as it was must be the same again when it is repeated.
    const bool whole = buffer.written.size() == 1 && buffer.written[0].begin == 0 &&
                       buffer.written[0].end == buffer.bytes;
    if (!whole) return Role::kInOut;
    // E.g. sums that are added to memory from cudaMalloc, which holds zeros more often than not.
    if (buffer.before.empty()) return facts.read ? Role::kInOut : Role::kOutput;
    const bool unread = accesses_.complete && facts.direct && !facts.read;
    return unread ? Role::kOutput : Role::kInOut;
  }

  void MakeSpec(const ptx::ValidModule& module) {
    KernelSpec& spec = out_.spec;
    spec.name = signature_.PlainName();
    spec.bytes = Expr(0);  // buffers may be larger than the part that the kernel touches
    for (size_t i = 0; i < launch_.buffers.size(); ++i) AddBuffer(i);
    for (size_t i = 0; i < launch_.symbols.size(); ++i) AddSymbol(i, module);
  }

  void AddSymbol(size_t number, const ptx::ValidModule& module) {
    const CapturedSymbol& symbol = launch_.symbols[number];
    if (HoldsItsInitialValue(symbol, module)) return;
    ArgSpec& arg = out_.spec.args.emplace_back();
    arg.name = "symbol_" + symbol.name;
    arg.dtype = TypeOfSymbol(symbol, module);
    arg.shape = {Expr(static_cast<int64_t>(symbol.bytes / SizeOf(arg.dtype)))};
    arg.role = symbol.after.empty() ? Role::kInput : Role::kInOut;
    arg.fill = BlobFill(launch_.buffers.size() + number);
    out_.plan.symbols.push_back({symbol.name, arg.name});
  }

  /// True if the program has not changed the variable, so that every module sets it by itself:
  /// texts of printf, and tables. The compiler chooses the names of the former anew each time.
  bool HoldsItsInitialValue(const CapturedSymbol& symbol, const ptx::ValidModule& module) const {
    if (!symbol.after.empty() || !symbol.pointers.empty()) return false;
    for (const auto* variables : {&module.globals(), &module.constants()}) {
      for (const ptx::Variable& variable : *variables) {
        if (variable.name != symbol.name || !variable.references.empty()) continue;
        const auto now = capture::BlobStore(blobs_).Get(symbol.before);
        if (!now) return false;
        if (variable.initial.empty())
          return std::ranges::all_of(*now, [](char byte) { return byte == 0; });
        return now->size() == variable.initial.size() &&
               std::memcmp(now->data(), variable.initial.data(), now->size()) == 0;
      }
    }
    return false;
  }

  /// PTX declares scalars with their types, and arrays of anything as bytes.
  static DType TypeOfSymbol(const CapturedSymbol& symbol, const ptx::ValidModule& module) {
    for (const ptx::Variable& variable : module.globals()) {
      if (variable.name != symbol.name || variable.bytes != symbol.bytes) continue;
      if (variable.type == ptx::Type::kF32) return DType::kFloat32;
      if (variable.type == ptx::Type::kF64) return DType::kFloat64;
    }
    return DType::kUInt8;
  }

  /// Fill of a buffer, or of a symbol behind them.
  Fill BlobFill(size_t number) const {
    return {.kind = Fill::Kind::kBlob, .path = blobs_.string(), .digest = contents_[number]};
  }

  void AddBuffer(size_t number) {
    const CapturedBuffer& buffer = launch_.buffers[number];
    BufferFacts& facts = facts_[number];
    if (facts.name.empty()) facts.name = fmt::format("buffer{}", number);
    ArgSpec& arg = out_.spec.args.emplace_back();
    arg.name = facts.name;
    arg.dtype = facts.typed ? facts.dtype.value_or(DType::kUInt8) : DType::kUInt8;
    if (buffer.bytes % SizeOf(arg.dtype) != 0) arg.dtype = DType::kUInt8;
    arg.shape = {Expr(static_cast<int64_t>(buffer.bytes / SizeOf(arg.dtype)))};
    arg.role = RoleOf(buffer, facts);
    if (arg.role == Role::kOutput) return;
    if (!buffer.before.empty()) {
      arg.fill = BlobFill(number);
      return;
    }
    arg.fill.kind = Fill::Kind::kZeros;
    if (facts.read && arg.role == Role::kInOut)
      out_.notes.push_back(arg.name + " is taken as zeros: the program wrote nothing to it before");
  }

  void MakePlan(const ptx::Function& entry) {
    const capture::LaunchConfiguration& given = launch_.configuration;
    LaunchStep step;
    step.entry = kernel_.name;
    step.grid = Extents(given.grid);
    step.block = Extents(given.block);
    step.cluster = Extents(given.cluster);
    step.shared_bytes = Expr(int64_t{given.shared_bytes});
    step.cooperative = given.cooperative;
    step.programmatic = false;  // there is no launch before it to overlap with
    for (const capture::CapturedParameter& parameter : launch_.parameters)
      step.args.push_back(BindingOf(parameter));
    out_.plan.steps.push_back(std::move(step));
    AddBlockParameter(entry);
    AddParameter(out_,
                 {"max_registers",
                  {int64_t{0}, int64_t{32}, int64_t{40}, int64_t{64}, int64_t{128}},
                  "registers per thread the assembler may use; 0 = no limit"},
                 int64_t{0}, {Injection::Kind::kOption, 0, 0, "--maxrregcount="});
  }

  ArgBinding BindingOf(const capture::CapturedParameter& parameter) const {
    if (!parameter.texture.empty())
      return ArgBinding::Texture(parameter.texture, parameter.surface);
    const auto& pointers = parameter.pointers;
    if (parameter.bytes.size() == sizeof(uint64_t) && pointers.size() == 1 &&
        pointers[0].offset == 0)
      return ArgBinding::Tensor(facts_[pointers[0].buffer].name);
    ParameterBytes raw{parameter.bytes, {}};
    for (const capture::CapturedPointer& pointer : pointers)
      raw.pointers.push_back({pointer.at, facts_[pointer.buffer].name, pointer.offset});
    return ArgBinding::Bytes(std::move(raw));
  }

  void AddBlockParameter(const ptx::Function& entry) {
    const capture::LaunchConfiguration& given = launch_.configuration;
    const GivenLaunch launch{given.grid, given.block, given.shared_bytes};
    std::string obstacle = BlockObstacle(accesses_, launch);
    if (entry.required_threads != 0) obstacle = "the kernel requires its size";
    if (given.cluster.Count() != 1) obstacle = "the launch has clusters";
    if (given.cooperative) obstacle = "the launch is cooperative";
    if (obstacle.empty())
      FreeLaunch(out_, accesses_, launch);
    else
      out_.notes.push_back("the block is not tuned: " + obstacle);
  }

  const CapturedLaunch& launch_;
  const capture::CapturedKernel& kernel_;
  const bool on_gpu_;  ///< it was recorded on a GPU
  const Path& blobs_;
  KernelAccesses accesses_;
  capture::Signature signature_;
  std::vector<BufferFacts> facts_;
  std::vector<std::string> contents_;  ///< names of what buffers and symbols hold before the launch
  UserKernel out_;
};

}  // namespace

Result<UserKernel> KernelOfLaunch(const capture::Capture& capture, const CapturedLaunch& launch,
                                  const Path& blobs) {
  const capture::CapturedKernel& kernel = capture.kernels[launch.kernel];
  const capture::BlobId& ptx = capture.modules[kernel.module].ptx;
  if (ptx.empty())
    return Fail(ErrorCode::kUnsupported, "the program has machine code of it only", kernel.readable,
                "build it with PTX: -gencode arch=compute_80,code=compute_80");
  return Builder(capture, launch, blobs).Run(ptx);
}

std::vector<std::string> SourceFilesOf(const std::string& ptx, const std::string& kernel) {
  const auto module = ptx::Parse(ptx);
  const ptx::Function* function = module ? module->Find(kernel) : nullptr;
  std::vector<std::string> files;
  if (function == nullptr) return files;
  for (const ptx::Instruction& instruction : function->body) {
    if (instruction.source_line == 0) continue;
    const std::string file = module->SourceFile(instruction.source_file);
    if (!file.empty() && std::ranges::find(files, file) == files.end()) files.push_back(file);
  }
  return files;
}

}  // namespace atunner
