// CUDA's runtime interface: arrays, textures and surfaces. Arrays store their texels on the host.
// The copies that textures and surfaces hold are updated before each launch, and texels that
// kernels wrote to surfaces are copied back after it.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "faces/program/runtime_state.h"

namespace atunner::program {
namespace {

constexpr unsigned kLayered = 1, kCube = 4;

struct Array {
  abi::ChannelFormat format;
  abi::Extent extent;  ///< zeros where there is no such dimension
  unsigned flags;
  std::vector<char> texels;

  size_t TexelBytes() const {
    return static_cast<size_t>(format.x + format.y + format.z + format.w) / 8;
  }
  size_t Width() const { return extent.width; }
  size_t Height() const { return std::max<size_t>(extent.height, 1); }
  size_t Depth() const { return std::max<size_t>(extent.depth, 1); }
  size_t RowBytes() const { return Width() * TexelBytes(); }
  char* At(size_t x_bytes, size_t y, size_t z) {
    return &texels[(z * Height() + y) * RowBytes() + x_bytes];
  }
};

/// A texture object, or a surface object.
struct Object {
  std::unique_ptr<Texture> texture;
  Array* array = nullptr;  ///< null: memory, or an array that is gone
  VirtualDevice::Rows memory;
  bool surface = false;
  abi::ResourceDescriptor resource;
};
std::map<uint64_t, Object>& Objects() {
  static auto* objects = new std::map<uint64_t, Object>;
  return *objects;
}

DType TypeOf(const abi::ChannelFormat& format) {
  const int bits = format.x;
  if (format.kind == 2) return bits == 16 ? DType::kFloat16 : DType::kFloat32;
  if (format.kind == 0)
    return bits == 8 ? DType::kInt8 : bits == 16 ? DType::kInt16 : DType::kInt32;
  return bits == 8 ? DType::kUInt8 : bits == 16 ? DType::kUInt16 : DType::kUInt32;
}

TextureSpec::Shape ShapeOf(const Array& array) {
  using Shape = TextureSpec::Shape;
  if (array.flags & kCube) return array.flags & kLayered ? Shape::kCubeLayered : Shape::kCube;
  if (array.flags & kLayered)
    return array.extent.height > 0 ? Shape::k2DLayered : Shape::k1DLayered;
  if (array.extent.depth > 0) return Shape::k3D;
  return array.extent.height > 0 ? Shape::k2D : Shape::k1D;
}

TextureSpec SpecOf(const Array& array, const abi::TextureDescriptor* how) {
  TextureSpec spec;
  spec.shape = ShapeOf(array);
  spec.dtype = TypeOf(array.format);
  spec.channels = array.format.w ? 4 : array.format.y ? 2 : 1;
  spec.width = static_cast<uint32_t>(array.Width());
  spec.height = static_cast<uint32_t>(array.Height());
  spec.depth = static_cast<uint32_t>(array.Depth());
  if (how == nullptr) return spec;
  spec.linear = how->linear != 0;
  spec.unit_values = how->unit_values != 0;
  spec.unit_coordinates = how->unit_coordinates != 0;
  for (size_t i = 0; i < spec.wrap.size(); ++i) {
    spec.wrap[i] = static_cast<TextureSpec::Wrap>(how->wrap[i]);
    const bool clamps = spec.wrap[i] == TextureSpec::Wrap::kClamp ||
                        spec.wrap[i] == TextureSpec::Wrap::kBorder;
    // as the hardware does
    if (!spec.unit_coordinates && !clamps) spec.wrap[i] = TextureSpec::Wrap::kClamp;
  }
  return spec;
}

/// Objects may outlive their memory as long as they are not used.
bool IsThere(const Object& object) {
  if (object.resource.kind == abi::kResourceArray) return object.array != nullptr;
  const abi::ResourceDescriptor& from = object.resource;
  const uint64_t bytes = from.kind == abi::kResourcePitched
                             ? from.pitched.pitch * (from.pitched.height - 1) + 1
                             : from.linear.bytes;
  const auto at = reinterpret_cast<uint64_t>(object.memory.at);
  const auto range = VirtualDevice::Get().gpu().memory().Find(at);
  return range && range->Contains(at, at + bytes);
}

void BringUpToDate() {
  vgpu::VirtualGpu& gpu = VirtualDevice::Get().gpu();
  for (auto& [handle, object] : Objects()) {
    const std::span<std::byte> texels = gpu.Texels(handle);
    if (object.array != nullptr) {
      std::memcpy(texels.data(), object.array->texels.data(), texels.size());
      continue;
    }
    const abi::ResourceDescriptor& from = object.resource;
    if (!IsThere(object)) continue;
    const bool pitched = from.kind == abi::kResourcePitched;
    const size_t rows = pitched ? from.pitched.height : 1;
    const size_t width = texels.size() / rows;
    for (size_t row = 0; row < rows; ++row)
      std::memcpy(texels.data() + row * width, object.memory.at + row * object.memory.pitch, width);
  }
}

void TakeOver() {
  for (auto& [handle, object] : Objects()) {
    if (!object.surface || !IsThere(object)) continue;
    const std::span<std::byte> texels = VirtualDevice::Get().gpu().Texels(handle);
    std::memcpy(object.array->texels.data(), texels.data(), texels.size());
  }
}

/// Linear memory as an array of its extents, without texels.
Array MemoryAs(const abi::ResourceDescriptor& resource) {
  if (resource.kind == abi::kResourcePitched)
    return {resource.pitched.format, {resource.pitched.width, resource.pitched.height, 0}, 0, {}};
  Array array{resource.linear.format, {0, 0, 0}, 0, {}};
  array.extent.width = resource.linear.bytes / std::max<size_t>(array.TexelBytes(), 1);
  return array;
}

int CreateObject(uint64_t* handle, const abi::ResourceDescriptor& resource,
                 const abi::TextureDescriptor* how) {
  VirtualDevice& virtual_device = VirtualDevice::Get();
  const Lock lock(virtual_device.mutex);
  Object object;
  object.resource = resource;
  object.surface = how == nullptr;
  TextureSpec spec;
  if (resource.kind == abi::kResourceArray) {
    object.array = static_cast<Array*>(resource.array.array);
    spec = SpecOf(*object.array, how);
  } else if (resource.kind == abi::kResourceLinear || resource.kind == abi::kResourcePitched) {
    object.memory = {static_cast<char*>(resource.linear.at), resource.pitched.pitch};
    spec = SpecOf(MemoryAs(resource), how);
    if (resource.kind == abi::kResourceLinear) spec.shape = TextureSpec::Shape::kLinear;
  } else {
    return Remember(
        virtual_device.Misuse(kNotSupported, "the virtual GPU has no textures with mipmaps"));
  }
  const std::vector<std::byte> texels(spec.Bytes());
  auto texture = virtual_device.gpu().CreateTexture(spec, texels);
  if (!texture)
    return Remember(
        virtual_device.Misuse(kInvalidValue, "a texture object: " + texture.error().ToString()));
  object.texture = *std::move(texture);
  *handle = object.surface ? object.texture->surface() : object.texture->texture();
  virtual_device.OnLaunch(BringUpToDate, TakeOver);
  Objects()[*handle] = std::move(object);
  return kSuccess;
}

int MakeArray(void** array, const abi::ChannelFormat* format, abi::Extent extent, unsigned flags) {
  auto made = std::make_unique<Array>(Array{*format, extent, flags, {}});
  made->texels.resize(made->RowBytes() * made->Height() * made->Depth());
  *array = made.release();
  return kSuccess;
}

int CopyRowsOf(const char* call, Array& array, size_t x_bytes, size_t y, VirtualDevice::Rows memory,
               size_t width, size_t height, bool to_array) {
  VirtualDevice& virtual_device = VirtualDevice::Get();
  if (y + height > array.Height() || x_bytes + width > array.RowBytes())
    return virtual_device.Misuse(kInvalidValue, std::string(call) + ": beyond the array");
  const VirtualDevice::Rows texels{array.At(x_bytes, y, 0), array.RowBytes()};
  return to_array ? virtual_device.Copy(call, texels, memory, width, height)
                  : virtual_device.Copy(call, memory, texels, width, height);
}

}  // namespace

int CopyAll(const char* call, const abi::Copy3D& copy) {
  VirtualDevice& virtual_device = VirtualDevice::Get();
  auto* from_array = static_cast<Array*>(copy.from_array);
  auto* to_array = static_cast<Array*>(copy.to_array);
  const Array* any = from_array != nullptr ? from_array : to_array;
  // Widths are in texels where there is an array, else in bytes.
  const size_t unit = any != nullptr ? any->TexelBytes() : 1;
  const size_t width = copy.extent.width * unit;
  const auto rows = [&](Array* array, const abi::Position& at, const abi::PitchedPointer& memory,
                        size_t plane) {
    if (array != nullptr)
      return VirtualDevice::Rows{array->At(at.x * unit, at.y, at.z + plane), array->RowBytes()};
    return VirtualDevice::Rows{static_cast<char*>(memory.at) +
                                   ((at.z + plane) * memory.height + at.y) * memory.pitch +
                                   at.x * unit,
                               memory.pitch};
  };
  const auto fits = [&](const Array* array, const abi::Position& at) {
    return array == nullptr || ((at.x + copy.extent.width) * unit <= array->RowBytes() &&
                                at.y + copy.extent.height <= array->Height() &&
                                at.z + copy.extent.depth <= array->Depth());
  };
  if (!fits(from_array, copy.from_at) || !fits(to_array, copy.to_at))
    return virtual_device.Misuse(kInvalidValue, std::string(call) + ": beyond the array");
  for (size_t plane = 0; plane < copy.extent.depth; ++plane) {
    const int code = virtual_device.Copy(call, rows(to_array, copy.to_at, copy.to, plane),
                                         rows(from_array, copy.from_at, copy.from, plane), width,
                                         copy.extent.height);
    if (code != kSuccess) return code;
  }
  return kSuccess;
}

}  // namespace atunner::program

using namespace atunner::program;  // a file of C functions

// NOLINTBEGIN(performance-no-int-to-ptr,readability-identifier-naming): CUDA's names.
extern "C" {

int cudaMallocArray(void** array, const abi::ChannelFormat* format, size_t width, size_t height,
                    unsigned flags) {
  return MakeArray(array, format, {width, height, 0}, flags);
}
int cudaMalloc3DArray(void** array, const abi::ChannelFormat* format, abi::Extent extent,
                      unsigned flags) {
  return MakeArray(array, format, extent, flags);
}
int cudaFreeArray(void* array) {
  const Lock lock(VirtualDevice::Get().mutex);
  for (auto& [handle, object] : Objects()) {
    if (object.array == array) object.array = nullptr;
  }
  delete static_cast<Array*>(array);
  return kSuccess;
}
int cudaArrayGetInfo(abi::ChannelFormat* format, abi::Extent* extent, unsigned* flags,
                     void* array) {
  const auto& of = *static_cast<const Array*>(array);
  if (format != nullptr) *format = of.format;
  if (extent != nullptr) *extent = of.extent;
  if (flags != nullptr) *flags = of.flags;
  return kSuccess;
}
int cudaGetChannelDesc(abi::ChannelFormat* format, void* array) {
  return cudaArrayGetInfo(format, nullptr, nullptr, array);
}

int cudaMemcpy3DAsync(const abi::Copy3D* copy, void* stream) {
  return DoIn(stream, Node::kCopy, [copy = *copy] { return CopyAll("cudaMemcpy3D", copy); });
}
int cudaMemcpy3D(const abi::Copy3D* copy) { return cudaMemcpy3DAsync(copy, nullptr); }
int cudaMemcpy2DToArrayAsync(void* array, size_t x_bytes, size_t y, const void* from, size_t pitch,
                             size_t width, size_t height, int, void* stream) {
  const VirtualDevice::Rows memory{static_cast<char*>(const_cast<void*>(from)), pitch};
  return DoIn(stream, Node::kCopy, [=] {
    return CopyRowsOf("cudaMemcpy2DToArray", *static_cast<Array*>(array), x_bytes, y, memory, width,
                      height, true);
  });
}
int cudaMemcpy2DToArray(void* array, size_t x_bytes, size_t y, const void* from, size_t pitch,
                        size_t width, size_t height, int direction) {
  return cudaMemcpy2DToArrayAsync(array, x_bytes, y, from, pitch, width, height, direction,
                                  nullptr);
}
int cudaMemcpy2DFromArrayAsync(void* to, size_t pitch, void* array, size_t x_bytes, size_t y,
                               size_t width, size_t height, int, void* stream) {
  const VirtualDevice::Rows memory{static_cast<char*>(to), pitch};
  return DoIn(stream, Node::kCopy, [=] {
    return CopyRowsOf("cudaMemcpy2DFromArray", *static_cast<Array*>(array), x_bytes, y, memory,
                      width, height, false);
  });
}
int cudaMemcpy2DFromArray(void* to, size_t pitch, void* array, size_t x_bytes, size_t y,
                          size_t width, size_t height, int direction) {
  return cudaMemcpy2DFromArrayAsync(to, pitch, array, x_bytes, y, width, height, direction,
                                    nullptr);
}
/// Deprecated forms: so many bytes, row after row.
int cudaMemcpyToArray(void* array, size_t x_bytes, size_t y, const void* from, size_t bytes,
                      int direction) {
  const size_t width = std::min(bytes, static_cast<Array*>(array)->RowBytes());
  return cudaMemcpy2DToArray(array, x_bytes, y, from, width, width, width ? bytes / width : 0,
                             direction);
}
int cudaMemcpyFromArray(void* to, void* array, size_t x_bytes, size_t y, size_t bytes,
                        int direction) {
  const size_t width = std::min(bytes, static_cast<Array*>(array)->RowBytes());
  return cudaMemcpy2DFromArray(to, width, array, x_bytes, y, width, width ? bytes / width : 0,
                               direction);
}

int cudaCreateTextureObject(uint64_t* object, const abi::ResourceDescriptor* resource,
                            const abi::TextureDescriptor* how, const void*) {
  return CreateObject(object, *resource, how);
}
int cudaCreateSurfaceObject(uint64_t* object, const abi::ResourceDescriptor* resource) {
  return CreateObject(object, *resource, nullptr);
}
int cudaDestroyTextureObject(uint64_t object) {
  const Lock lock(VirtualDevice::Get().mutex);
  Objects().erase(object);
  return kSuccess;
}
int cudaDestroySurfaceObject(uint64_t object) { return cudaDestroyTextureObject(object); }
int cudaGetTextureObjectResourceDesc(abi::ResourceDescriptor* resource, uint64_t object) {
  const Lock lock(VirtualDevice::Get().mutex);
  const auto found = Objects().find(object);
  if (found == Objects().end()) return Remember(kInvalidValue);
  *resource = found->second.resource;
  return kSuccess;
}
}
// NOLINTEND(performance-no-int-to-ptr,readability-identifier-naming)
