#include "atunner/vgpu/conformance/tensor_copy_cases.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "atunner/base/random.h"

namespace atunner::vgpu {
namespace {

using Bytes = std::vector<std::byte>;

struct CopyCase {
  TensorMapSpec spec;  ///< without an address
  std::vector<int> corner;
  std::vector<int> offsets = {};  ///< of im2col loads
};

TensorMapSpec Spec(DType dtype, std::vector<uint64_t> dims, std::vector<uint32_t> box,
                   int swizzle = 0, uint64_t padding = 0) {
  TensorMapSpec spec;
  spec.dtype = dtype;
  uint64_t stride = SizeOf(dtype);
  for (size_t i = 0; i + 1 < dims.size(); ++i)
    spec.strides.push_back(stride = (stride * dims[i] + padding + 15) / 16 * 16);
  spec.dims = std::move(dims);
  spec.box = std::move(box);
  spec.swizzle_bytes = swizzle;
  return spec;
}

uint64_t TensorBytes(const TensorMapSpec& spec) {
  return spec.strides.empty() ? (spec.dims[0] * SizeOf(spec.dtype) + 15) / 16 * 16
                              : spec.strides.back() * spec.dims.back();
}

/// Where a byte of the dense box lies in shared memory, which is aligned to 1024: the ISA's tables
/// of swizzled lines.
uint64_t PlaceInBox(const TensorMapSpec& spec, uint64_t byte) {
  const uint64_t line = byte / 128;
  const uint64_t chunk = byte / 16 % 8;
  const uint64_t moved = spec.swizzle_bytes == 128  ? chunk ^ line % 8
                         : spec.swizzle_bytes == 64 ? chunk ^ line % 4
                         : spec.swizzle_bytes == 32 ? chunk ^ line % 2
                                                    : chunk;
  return line * 128 + moved * 16 + byte % 16;
}

/// Images: channels, pixels in each direction, images.
CopyCase Pixels(TensorMapSpec spec, std::vector<int> lower, std::vector<int> upper,
                std::vector<int> corner, std::vector<int> offsets,
                std::vector<uint32_t> steps = {}) {
  spec.im2col = PixelCorners{std::move(lower), std::move(upper)};
  spec.element_strides = std::move(steps);
  return {std::move(spec), std::move(corner), std::move(offsets)};
}

/// The pixels of a column, one after another: where a walk along the rows between the corners has
/// come to after `steps`.
std::vector<int64_t> PixelAfter(const CopyCase& one, uint64_t steps) {
  const TensorMapSpec& spec = one.spec;
  std::vector<int64_t> at(one.corner.begin(), one.corner.end());
  for (; steps > 0; --steps) {
    for (size_t i = 1; i < at.size(); ++i) {
      at[i] += spec.element_strides.empty() ? 1 : int64_t{spec.element_strides[i]};
      const bool pixels = i + 1 < at.size();
      if (!pixels || at[i] <= static_cast<int64_t>(spec.dims[i]) - 1 + spec.im2col->upper[i - 1])
        break;
      at[i] = spec.im2col->lower[i - 1];
    }
  }
  for (size_t i = 0; i < one.offsets.size(); ++i) at[i + 1] += one.offsets[i];
  return at;
}

/// Where element `e` of the dense box lies in the tensor.
std::vector<int64_t> PlaceInTensor(const CopyCase& one, uint64_t e) {
  const TensorMapSpec& spec = one.spec;
  if (spec.im2col) {
    std::vector<int64_t> at = PixelAfter(one, e / spec.box[0]);
    at[0] += static_cast<int64_t>(e % spec.box[0]);
    return at;
  }
  std::vector<int64_t> at;
  for (size_t i = 0; i < spec.dims.size(); ++i) {
    const uint32_t step = i == 0 || spec.element_strides.empty() ? 1 : spec.element_strides[i];
    const uint64_t length = (spec.box[i] + step - 1) / step;
    at.push_back(one.corner[i] + static_cast<int64_t>(e % length * step));
    e /= length;
  }
  return at;
}

/// Calls f(place in shared memory, offset in the tensor or -1) for every element of the box. Stores
/// write whole chunks of 16 bytes, so that a line of theirs may end behind the tensor's.
template <class F>
void ForElements(const CopyCase& one, bool store, F&& f) {
  const TensorMapSpec& spec = one.spec;
  const uint64_t width = SizeOf(spec.dtype);
  std::vector<uint64_t> dims = spec.dims;
  if (store) dims[0] = (dims[0] * width + 15) / 16 * 16 / width;
  for (uint64_t e = 0; e < spec.BoxBytes() / width; ++e) {
    const std::vector<int64_t> at = PlaceInTensor(one, e);
    int64_t offset = 0;
    bool inside = true;
    for (size_t i = 0; i < spec.dims.size(); ++i) {
      inside = inside && at[i] >= 0 && at[i] < static_cast<int64_t>(dims[i]);
      offset += at[i] * static_cast<int64_t>(i == 0 ? width : spec.strides[i - 1]);
    }
    f(PlaceInBox(spec, e * width), inside ? offset : -1);
  }
}

std::vector<CopyCase> Cases() {
  std::vector<CopyCase> cases = {
      {Spec(DType::kFloat32, {100}, {64}), {0}},
      {Spec(DType::kFloat32, {100}, {64}), {60}},
      {Spec(DType::kUInt8, {300}, {256}), {-16}},
      {Spec(DType::kFloat32, {100}, {64}), {-4}},
      {Spec(DType::kUInt8, {288}, {256}), {-32}},
      {Spec(DType::kFloat32, {36, 20}, {32, 16}), {-4, 1}},
      {Spec(DType::kFloat32, {36, 20}, {32, 16}), {4, -1}},
      {Spec(DType::kUInt8, {300}, {256}), {96}},
      {Spec(DType::kFloat16, {64, 40}, {64, 32}, 128), {0, 8}},
      {Spec(DType::kFloat16, {70, 40}, {32, 32}, 64, 32), {40, 20}},
      {Spec(DType::kBFloat16, {48, 40}, {16, 40}, 32), {-8, -2}},
      {Spec(DType::kFloat32, {33, 17}, {32, 16}, 128), {4, 1}},
      {Spec(DType::kInt32, {12, 9}, {4, 5}), {8, 7}},
      {Spec(DType::kFloat64, {20, 10}, {16, 8}, 128), {4, 4}},
      {Spec(DType::kFloat16, {64, 6, 5}, {64, 4, 3}, 128), {0, 3, 3}},
      {Spec(DType::kInt8, {96, 6, 5, 4}, {32, 3, 2, 2}, 32), {80, 5, -1, 3}},
      {Spec(DType::kFloat32, {8, 4, 3, 3, 2}, {8, 3, 2, 2, 2}), {4, 2, 2, 2, 1}},
      {Spec(DType::kFloat32, {16, 8}, {16, 8}), {100, 0}},
  };
  cases.push_back({Spec(DType::kFloat16, {64, 40}, {32, 9}, 64), {0, 1}});
  cases.back().spec.element_strides = {1, 4};
  // A filter of 3 with padding of 1 stands over pixels from -1 up to one before the last; offsets
  // name its taps.
  cases.push_back(Pixels(Spec(DType::kFloat32, {8, 9, 2}, {8, 12}), {-1}, {-1}, {0, -1, 0}, {0}));
  cases.push_back(
      Pixels(Spec(DType::kFloat16, {64, 20, 3}, {32, 40}, 64), {-1}, {-1}, {32, 3, 1}, {2}));
  cases.push_back(Pixels(Spec(DType::kFloat16, {64, 9, 7, 3}, {64, 64}, 128), {-1, -1}, {-1, -1},
                         {0, 2, 1, 0}, {1, 2}));
  cases.push_back(Pixels(Spec(DType::kFloat16, {64, 9, 7, 3}, {64, 64}, 128), {0, 0}, {-2, -2},
                         {0, 0, 0, 1}, {2, 0}));
  cases.push_back(Pixels(Spec(DType::kUInt8, {48, 6, 5, 2}, {16, 100}), {-2, -3}, {0, 1},
                         {16, -2, -3, 0}, {0, 1}));
  cases.push_back(Pixels(Spec(DType::kFloat32, {8, 9, 9, 2}, {8, 30}, 32), {-1, -1}, {-1, -1},
                         {0, -1, -1, 0}, {1, 1}, {1, 2, 2, 1}));
  cases.push_back(Pixels(Spec(DType::kFloat32, {8, 9, 8, 2}, {8, 30}, 32), {-1, -1}, {0, 0},
                         {0, 1, -1, 0}, {2, 0}, {1, 3, 2, 1}));
  cases.push_back(Pixels(Spec(DType::kBFloat16, {16, 5, 4, 3, 2}, {16, 90}, 32), {-1, -1, 0},
                         {-1, 0, -1}, {0, 1, 2, 1, 0}, {2, 1, 1}));
  cases.push_back(
      Pixels(Spec(DType::kFloat32, {12, 5, 4, 2}, {8, 20}), {0, 0}, {0, 0}, {8, 1, 0, 0}, {0, 0}));
  cases.push_back(
      Pixels(Spec(DType::kFloat32, {8, 5, 4, 2}, {8, 50}), {0, 0}, {0, 0}, {0, 2, 1, 0}, {0, 0}));
  return cases;
}

Bytes RandomBytes(Random& random, uint64_t bytes) {
  Bytes data(bytes);
  for (std::byte& b : data) b = static_cast<std::byte>(random.Below(0x70));  // no NaN of any type
  return data;
}

class Copies {
 public:
  Copies(Device& device, LoadedModule& module) : device_(device), module_(module) {}

  /// The box that a load leaves in shared memory.
  Result<Bytes> Load(const CopyCase& one, const Bytes& tensor, const std::string& entry,
                     uint32_t blocks = 1) {
    Bytes box(one.spec.BoxBytes() * blocks);
    ATUNNER_RETURN_IF_ERROR(Run(one, tensor, box, entry, blocks));
    ATUNNER_RETURN_IF_ERROR(device_.CopyOut(box, box_->address()));
    return box;
  }
  /// The tensor that a store leaves in memory.
  Result<Bytes> Store(const CopyCase& one, Bytes tensor, const Bytes& box,
                      const std::string& entry) {
    ATUNNER_RETURN_IF_ERROR(Run(one, tensor, box, entry, 1));
    ATUNNER_RETURN_IF_ERROR(device_.CopyOut(tensor, tensor_->address()));
    return tensor;
  }

 private:
  Status Run(const CopyCase& one, const Bytes& tensor, const Bytes& box, const std::string& entry,
             uint32_t blocks) {
    ATUNNER_TRY(tensor_, device_.Allocate(tensor.size()));
    ATUNNER_TRY(box_, device_.Allocate(box.size()));
    ATUNNER_RETURN_IF_ERROR(device_.CopyIn(tensor_->address(), tensor));
    ATUNNER_RETURN_IF_ERROR(device_.CopyIn(box_->address(), box));
    TensorMapSpec spec = one.spec;
    spec.address = tensor_->address();
    ATUNNER_TRY(const TensorMap map, device_.EncodeTensorMap(spec));
    KernelArg corner;
    corner.size = 32;
    std::memcpy(corner.bytes.data(), one.corner.data(), 4 * one.corner.size());
    std::memcpy(corner.bytes.data() + 20, one.offsets.data(), 4 * one.offsets.size());
    KernelArg bytes;
    bytes.size = 4;
    const auto box_bytes = static_cast<uint32_t>(spec.BoxBytes());
    std::memcpy(bytes.bytes.data(), &box_bytes, 4);
    const KernelArg args[] = {KernelArg::Map(map), corner, KernelArg::Address(box_->address()),
                              bytes};
    const LaunchShape shape{
        {blocks, 1, 1}, {64, 1, 1}, {blocks, 1, 1}, (box_bytes + 1023) / 1024 * 1024};
    ATUNNER_TRY(const LaunchOutcome outcome, device_.Launch(module_, entry, shape, args, {}));
    return outcome.completed() ? Status{} : Status(Invalid(outcome.message));
  }

  Device& device_;
  LoadedModule& module_;
  std::unique_ptr<Buffer> tensor_, box_;
};

std::string NameOf(const CopyCase& one, const std::string& entry) {
  std::string name = entry + " " + std::string(Name(one.spec.dtype)) + ", swizzle " +
                     std::to_string(one.spec.swizzle_bytes) + ", box";
  for (uint32_t length : one.spec.box) name += " " + std::to_string(length);
  name += " at";
  for (int at : one.corner) name += " " + std::to_string(at);
  if (one.spec.im2col) name += ", " + ToString(one.spec);
  return name;
}

std::string Differences(const Result<Bytes>& got, const Bytes& expected) {
  if (!got) return got.error().ToString();
  size_t different = 0;
  size_t first = 0;
  for (size_t i = expected.size(); i-- > 0;) {
    if ((*got)[i] != expected[i]) ++different, first = i;
  }
  return different == 0
             ? ""
             : std::to_string(different) + " bytes differ, the first at " + std::to_string(first);
}

/// Adds or compares elements of 32 bits.
uint32_t Reduced(const std::string& entry, DType dtype, uint32_t old, uint32_t with) {
  if (dtype == DType::kInt32)
    return static_cast<uint32_t>(
        entry == "max2" ? std::max(static_cast<int32_t>(old), static_cast<int32_t>(with))
                        : static_cast<int32_t>(old + with));
  return std::bit_cast<uint32_t>(std::bit_cast<float>(old) + std::bit_cast<float>(with));
}

struct Named {
  std::string entry;
  CopyCase one;
  std::string Name() const { return NameOf(one, entry); }
};

bool Reduces(const std::string& entry) { return entry == "add2" || entry == "max2"; }

std::vector<Named> AllCases() {
  std::vector<Named> all;
  for (const CopyCase& one : Cases()) {
    const std::string rank = std::to_string(one.spec.dims.size());
    if (one.spec.im2col) {
      all.push_back({"pixels" + rank, one});
      continue;
    }
    all.push_back({"load" + rank, one});
    const bool inside =
        // hardware wants that of stores
        std::ranges::all_of(one.corner, [](int at) { return at >= 0; });
    if (one.spec.element_strides.empty() && inside) all.push_back({"store" + rank, one});
    if (rank == "2") all.push_back({"multicast2", one});
  }
  for (const auto& [entry, dtype] :
       {std::pair("add2", DType::kFloat32), std::pair("add2", DType::kInt32),
        std::pair("max2", DType::kInt32)})
    all.push_back({entry, {Spec(dtype, {36, 20}, {32, 16}, 128), {8, 7}}});
  all.push_back({"store_pixels3",
                 Pixels(Spec(DType::kFloat32, {8, 9, 2}, {8, 12}), {1}, {-1}, {0, 3, 0}, {})});
  all.push_back({"store_pixels4", Pixels(Spec(DType::kFloat16, {64, 9, 7, 3}, {64, 64}, 128),
                                         {0, 1}, {-2, -1}, {0, 2, 1, 0}, {})});
  return all;
}

std::string CheckLoad(Copies& copies, const Named& named, const Bytes& tensor) {
  const CopyCase& one = named.one;
  Bytes expected(one.spec.BoxBytes());
  ForElements(one, false, [&](uint64_t place, int64_t offset) {
    if (offset >= 0)
      std::memcpy(&expected[place], &tensor[static_cast<size_t>(offset)], SizeOf(one.spec.dtype));
  });
  const bool both = named.entry == "multicast2";
  const size_t once = expected.size();
  if (both) expected.resize(2 * once);
  if (both)
    std::copy_n(expected.begin(), once, expected.begin() + static_cast<std::ptrdiff_t>(once));
  return Differences(copies.Load(one, tensor, named.entry, both ? 2 : 1), expected);
}

std::string CheckStore(Copies& copies, const Named& named, const Bytes& tensor, const Bytes& box) {
  const CopyCase& one = named.one;
  Bytes expected = tensor;
  ForElements(one, true, [&](uint64_t place, int64_t offset) {
    if (offset < 0) return;
    std::byte* to = &expected[static_cast<size_t>(offset)];
    if (!Reduces(named.entry)) {
      std::memcpy(to, &box[place], SizeOf(one.spec.dtype));
      return;
    }
    uint32_t old = 0;
    uint32_t with = 0;
    std::memcpy(&old, to, 4);
    std::memcpy(&with, &box[place], 4);
    const uint32_t result = Reduced(named.entry, one.spec.dtype, old, with);
    std::memcpy(to, &result, 4);
  });
  return Differences(copies.Store(one, tensor, box, named.entry), expected);
}

// ---- maps that the kernel itself changes
int CodeOf(DType dtype) {
  switch (dtype) {
    case DType::kUInt8:
      return 0;
    case DType::kFloat16:
      return 6;
    default:
      return 7;  // float32
  }
}

/// Every field of a map is set to what `spec` says, then the box at `corner` is loaded; parameters:
/// map, room for the changed one, output.
std::string ReplacingKernel(const TensorMapSpec& spec, const std::vector<int>& corner) {
  std::string replace;
  const auto set = [&](const std::string& field, const std::string& ordinal, uint64_t value,
                       bool wide = false) {
    const std::string in = wide ? "%wide" : "%n";
    const bool constant = field == "elemtype" || field == "interleave_layout" ||
                          field == "swizzle_mode" || field == "fill_mode";
    if (!constant)
      replace += std::string(wide ? "mov.b64 " : "mov.b32 ") + in + ", " + std::to_string(value) +
                 ";\n";
    replace += "@%first tensormap.replace.tile." + field + ".shared::cta.b1024." +
               (wide ? "b64" : "b32") + " [%map], " + ordinal +
               (constant ? std::to_string(value) : in) + ";\n";
  };
  set("global_address", "", spec.address, true);
  set("rank", "", spec.dims.size() - 1);
  set("global_stride", "0, ", spec.strides[0], true);
  for (size_t i = 0; i < spec.dims.size(); ++i) {
    const std::string ordinal = std::to_string(i) + ", ";
    set("box_dim", ordinal, spec.box[i]);
    set("global_dim", ordinal, spec.dims[i]);
    set("element_stride", ordinal, spec.element_strides.empty() ? 1 : spec.element_strides[i]);
  }
  set("elemtype", "", static_cast<uint64_t>(CodeOf(spec.dtype)));
  set("interleave_layout", "", 0);
  set("swizzle_mode", "",
      static_cast<uint64_t>(std::bit_width(static_cast<unsigned>(spec.swizzle_bytes) / 16) -
                            (spec.swizzle_bytes ? 1 : 0)));
  set("fill_mode", "", 0);
  const std::string bytes = std::to_string(spec.BoxBytes());
  return ".version 8.3\n.target sm_90a\n.address_size 64\n"
         ".visible .entry replaced(.param .align 64 .b8 given[128], .param .u64 room, .param .u64 "
         "out)\n{\n"
         ".reg .pred %first, %p;\n.reg .b32 %t, %r, %map, %box, %bar, %n;\n.reg .b64 %a, %room, "
         "%out, %wide;\n"
         ".shared .align 1024 .b8 box[" +
         bytes +
         "];\n.shared .align 128 .b8 mine[128];\n.shared .align 8 .b64 barrier;\n"
         "ld.param.u64 %room, [room];\nld.param.u64 %out, [out];\nmov.u32 %t, %tid.x;\nsetp.eq.u32 "
         "%first, %t, 0;\n"
         "mov.u32 %map, mine;\nmov.u32 %box, box;\nmov.u32 %bar, barrier;\nmov.b64 %a, given;\n"
         "mad.wide.u32 %a, %t, 4, %a;\nld.param.b32 %r, [%a];\nmad.lo.u32 %n, %t, 4, "
         "%map;\nst.shared.b32 [%n], %r;\n"
         "bar.sync 0;\n" +
         replace +
         "bar.warp.sync 0xffffffff;\n"
         "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
         "[%room], [%map], "
         "128;\n"
         "fence.proxy.tensormap::generic.acquire.gpu [%room], 128;\n"
         "@%first mbarrier.init.shared::cta.b64 [%bar], 1;\n@%first "
         "fence.mbarrier_init.release.cluster;\nbar.sync 0;\n"
         "@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], " +
         bytes +
         ";\n"
         "mov.b32 %n, " +
         std::to_string(corner[0]) + ";\nmov.b32 %r, " + std::to_string(corner[1]) +
         ";\n"
         "@%first cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
         "[%box], [%room, {%n, "
         "%r}], "
         "[%bar];\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], 0;\n@!%p bra "
         "WAIT;\nmov.u32 %n, %t;\n"
         "COPY:\nmad.lo.u32 %r, %n, 4, %box;\nld.shared.b32 %r, [%r];\nmad.wide.u32 %a, %n, 4, "
         "%out;\n"
         "st.global.b32 [%a], %r;\nadd.u32 %n, %n, 32;\nsetp.lt.u32 %p, %n, " +
         std::to_string(spec.BoxBytes() / 4) + ";\n@%p bra COPY;\nret;\n}\n";
}

Result<Bytes> LoadReplaced(Device& device, CopyCase one, const Bytes& tensor) {
  ATUNNER_TRY(const auto source, device.Allocate(tensor.size()));
  ATUNNER_TRY(const auto room, device.Allocate(128));
  ATUNNER_TRY(const auto out, device.Allocate(one.spec.BoxBytes()));
  ATUNNER_RETURN_IF_ERROR(device.CopyIn(source->address(), tensor));
  TensorMapSpec other = Spec(DType::kInt16, {64, 64, 4}, {16, 8, 1});
  other.address = out->address();
  ATUNNER_TRY(const TensorMap map, device.EncodeTensorMap(other));
  one.spec.address = source->address();
  CompiledModule compiled;
  compiled.ptx = ReplacingKernel(one.spec, one.corner);
  ATUNNER_TRY(const auto module, device.Load(compiled));
  const KernelArg args[] = {KernelArg::Map(map), KernelArg::Address(room->address()),
                            KernelArg::Address(out->address())};
  LaunchOptions options;
  options.check_hazards = true;
  ATUNNER_TRY(
      const LaunchOutcome outcome,
      device.Launch(*module, "replaced", {{1, 1, 1}, {32, 1, 1}, {1, 1, 1}, 0}, args, options));
  if (!outcome.completed()) return Invalid(outcome.message);
  Bytes box(one.spec.BoxBytes());
  ATUNNER_RETURN_IF_ERROR(device.CopyOut(box, out->address()));
  return box;
}

}  // namespace

std::vector<std::string> TensorCopyEntries() {
  std::vector<std::string> entries = {"add2",     "max2",          "multicast2",
                                      "add_bulk", "pixels3",       "pixels4",
                                      "pixels5",  "store_pixels3", "store_pixels4"};
  for (const char* name : {"load", "store"}) {
    for (int rank = 1; rank <= 5; ++rank) entries.push_back(name + std::to_string(rank));
  }
  return entries;
}

std::vector<std::string> TensorCopyNames() {
  std::vector<std::string> names;
  for (const Named& named : AllCases()) names.push_back(named.Name());
  return names;
}

std::string CheckTensorCopy(Device& device, LoadedModule& module, size_t index) {
  const Named named = AllCases().at(index);
  Random random(index);
  Copies copies(device, module);
  const Bytes tensor = RandomBytes(random, TensorBytes(named.one.spec));
  const Bytes box = RandomBytes(random, named.one.spec.BoxBytes());
  const bool stores = named.entry.starts_with("store") || Reduces(named.entry);
  const std::string what = stores ? CheckStore(copies, named, tensor, box)
                                  : CheckLoad(copies, named, tensor);
  return what.empty() ? "" : named.Name() + ": " + what;
}

std::vector<std::string> CheckReplacedMaps(Device& device) {
  std::vector<CopyCase> cases = {{Spec(DType::kFloat32, {36, 20}, {32, 16}), {4, 7}},
                                 {Spec(DType::kFloat16, {64, 40}, {64, 32}, 128), {0, 10}},
                                 {Spec(DType::kUInt8, {96, 30}, {32, 12}, 32), {64, 5}}};
  cases.back().spec.element_strides = {1, 3};
  std::vector<std::string> wrong;
  for (const CopyCase& one : cases) {
    Random random(one.spec.BoxBytes());
    const Bytes tensor = RandomBytes(random, TensorBytes(one.spec));
    Bytes expected(one.spec.BoxBytes());
    ForElements(one, false, [&](uint64_t place, int64_t offset) {
      if (offset >= 0)
        std::memcpy(&expected[place], &tensor[static_cast<size_t>(offset)], SizeOf(one.spec.dtype));
    });
    const std::string what = Differences(LoadReplaced(device, one, tensor), expected);
    if (!what.empty()) wrong.push_back(NameOf(one, "replaced") + ": " + what);
  }
  return wrong;
}

}  // namespace atunner::vgpu
