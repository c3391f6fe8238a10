// Functions that the driver provides to kernels: printf, assert, malloc and free.
#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "atunner/vgpu/checks/access.h"
#include "atunner/vgpu/instructions/handlers.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

constexpr size_t kMaxPrinted = size_t{1} << 16;
constexpr size_t kMaxString = 1024;
constexpr int32_t kMaxWidth = 500;

template <class T>
T Argument(BlockState& x, const Op& op, int lane, size_t index) {
  const FramePart& part = x.kernel->calls[op.imm].arguments[index];
  T value{};
  std::memcpy(&value, FrameByte(x, op.dst, lane, part.offset),
              std::min<size_t>(sizeof value, part.bytes));
  return value;
}
template <class T>
void Result(BlockState& x, const Op& op, int lane, T value) {
  const CallSite& site = x.kernel->calls[op.imm];
  if (site.results.empty()) return;
  std::byte* at = FrameByte(x, op.dst, lane, site.results[0].offset);
  std::memcpy(at, &value, std::min<size_t>(sizeof value, site.results[0].bytes));
  MarkLocal(x.local, at, site.results[0].bytes);
}

/// Host pointer of `bytes` at a generic address, or nullptr after reporting.
const std::byte* Pointer(BlockState& x, const Op& op, int lane, uint64_t address, uint64_t bytes) {
  const Space space = Resolve(Space::kGeneric, address);
  return space == Space::kGlobal ? GlobalPointer(x, op, lane, address, bytes, "printf")
                                 : WindowPointer(x, op, lane, space, address, bytes, "printf");
}
bool ReadString(BlockState& x, const Op& op, int lane, uint64_t address, std::string& text) {
  text.clear();
  while (text.size() < kMaxString) {
    const std::byte* at = Pointer(x, op, lane, address + text.size(), 1);
    if (at == nullptr) return false;
    if (*at == std::byte{0}) return true;
    text += static_cast<char>(*at);
  }
  return true;
}

/// Walks the buffer that the compiler packs arguments into, each aligned to its size.
class ArgumentReader {
 public:
  ArgumentReader(BlockState& x, const Op& op, int lane, uint64_t buffer)
      : x_(x), op_(op), lane_(lane), at_(buffer) {}
  bool Next(uint64_t bytes, uint64_t& raw) {
    at_ = (at_ + bytes - 1) / bytes * bytes;
    const std::byte* from = Pointer(x_, op_, lane_, at_, bytes);
    if (from == nullptr) return false;
    raw = 0;
    std::memcpy(&raw, from, bytes);
    at_ += bytes;
    return true;
  }

 private:
  BlockState& x_;
  const Op& op_;
  int lane_;
  uint64_t at_;
};

/// A width or precision that is an argument of its own: "%*d" → "%12d".
bool FillStars(ArgumentReader& arguments, std::string& spec) {
  for (size_t star = spec.find('*'); star != std::string::npos; star = spec.find('*')) {
    uint64_t raw = 0;
    if (!arguments.Next(4, raw)) return false;
    const int32_t value = std::clamp(static_cast<int32_t>(raw), -kMaxWidth, kMaxWidth);
    const bool no_precision = value < 0 && spec[star - 1] == '.';
    spec.replace(no_precision ? star - 1 : star, no_precision ? 2 : 1,
                 no_precision ? "" : std::to_string(value));
  }
  return true;
}

/// Formats one conversion such as "%-8.3lld"; its length modifiers are replaced by those of the
/// host.
bool FormatOne(BlockState& x, const Op& op, int lane, const std::string& spec,
               ArgumentReader& arguments, std::string& out) {
  const char kind = spec.back();
  std::string flags;
  int longs = 0;
  for (char c : spec.substr(0, spec.size() - 1)) {
    if (c == 'l') ++longs;
    if (c == 'j' || c == 'z' || c == 't') longs = 2;
    if (std::string_view("lhjztL").find(c) == std::string_view::npos) flags += c;
  }
  char text[512];
  uint64_t raw = 0;
  const bool real = std::string_view("fFeEgGaA").find(kind) != std::string_view::npos;
  const bool pointer = kind == 's' || kind == 'p';
  if (!arguments.Next(real || pointer || longs > 0 ? 8 : 4, raw)) return false;
  if (real) {
    std::snprintf(text, sizeof text, (flags + kind).c_str(), std::bit_cast<double>(raw));
  } else if (kind == 's') {
    std::string value;
    if (!ReadString(x, op, lane, raw, value)) return false;
    std::snprintf(text, sizeof text, (flags + kind).c_str(), value.c_str());
  } else if (kind == 'p') {
    std::snprintf(text, sizeof text, "0x%" PRIx64, raw);
  } else if (kind == 'c') {
    std::snprintf(text, sizeof text, (flags + kind).c_str(), static_cast<int>(raw));
  } else if (kind == 'd' || kind == 'i') {
    const int64_t value = longs > 0 ? static_cast<int64_t>(raw) : static_cast<int32_t>(raw);
    std::snprintf(text, sizeof text, (flags + PRId64).c_str(), value);
  } else {
    std::snprintf(text, sizeof text, (flags + "l" + kind).c_str(), static_cast<unsigned long>(raw));
  }
  out += text;
  return true;
}

bool Format(BlockState& x, const Op& op, int lane, const std::string& format, uint64_t buffer,
            std::string& out) {
  ArgumentReader arguments(x, op, lane, buffer);
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    const size_t end = format.find_first_of("diouxXfFeEgGaAcsp%", i + 1);
    // text that is not a conversion is printed unchanged
    if (end == std::string::npos || end - i > 16) {
      out += format[i];
      continue;
    }
    std::string spec = format.substr(i, end - i + 1);
    if (!FillStars(arguments, spec)) return false;
    if (format[end] == '%')
      out += '%';
    else if (!FormatOne(x, op, lane, spec, arguments, out))
      return false;
    i = end;
  }
  return true;
}

void Print(BlockState& x, const Op& op, uint32_t mask) {
  for (uint32_t m = mask; m != 0 && !x.stop; m &= m - 1) {
    const int l = std::countr_zero(m);
    Result<int32_t>(x, op, l, 0);
    if (x.record.printed.size() > kMaxPrinted) continue;  // as on hardware, the buffer is bounded
    std::string format;
    if (!ReadString(x, op, l, Argument<uint64_t>(x, op, l, 0), format)) return;
    if (!Format(x, op, l, format, Argument<uint64_t>(x, op, l, 1), x.record.printed)) return;
  }
}

void FailAssertion(BlockState& x, const Op& op, uint32_t mask) {
  const int l = std::countr_zero(mask);
  std::string message;
  std::string file;
  if (!ReadString(x, op, l, Argument<uint64_t>(x, op, l, 0), message) ||
      !ReadString(x, op, l, Argument<uint64_t>(x, op, l, 1), file))
    return;
  Report(x, op, Hazard::Kind::kTrap, l,
         "fails the assertion '" + message + "' (" + file + ":" +
             std::to_string(Argument<uint32_t>(x, op, l, 2)) + ")");
}

void DeviceMalloc(BlockState& x, const Op& op, uint32_t mask) {
  const auto index = static_cast<uint32_t>(&op - x.kernel->ops.data());
  ForLanes(mask, [&](int l) {
    const auto bytes = Argument<uint64_t>(x, op, l, 0);
    const uint64_t taken = x.launch->heap->Take(
        {bytes, index, x.kernel->function->name, x.block, x.ThreadOf(l)});
    Result<uint64_t>(x, op, l, taken);
  });
}
void DeviceFree(BlockState& x, const Op& op, uint32_t mask) {
  ForLanes(mask, [&](int l) {
    const auto address = Argument<uint64_t>(x, op, l, 0);
    if (x.stop || address == 0 || x.launch->heap->Give(address)) return;
    Report(x, op, Hazard::Kind::kOutOfBounds, l,
           "frees " + Hex(address) + ", which malloc did not return");
  });
}

}  // namespace

Handler SystemCallHandler(std::string_view name, size_t arguments, size_t results) {
  if (name == "vprintf" && arguments == 2) return Print;
  if (name == "__assertfail" && arguments >= 3) return FailAssertion;
  if (name == "malloc" && arguments == 1 && results == 1) return DeviceMalloc;
  return name == "free" && arguments == 1 ? DeviceFree : nullptr;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
