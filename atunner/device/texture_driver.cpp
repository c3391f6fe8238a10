#include "atunner/device/texture_driver.h"

#include <algorithm>

namespace atunner {
namespace {

using Shape = TextureSpec::Shape;

int FormatOf(DType dtype) {
  const int size = static_cast<int>(SizeOf(dtype));
  const int width = size == 1 ? 1 : size == 2 ? 2 : 3;
  switch (KindOf(dtype)) {
    case DTypeKind::kFloat:
      return size == 2 ? cuda::kFormatHalf : cuda::kFormatFloat;
    case DTypeKind::kSigned:
      return cuda::kFormatSigned + width;
    default:
      return width;
  }
}

cuda::ArrayDescriptor ArrayOf(const TextureSpec& spec) {
  cuda::ArrayDescriptor array{};
  array.width = spec.width;
  array.height = spec.shape == Shape::k1D || spec.shape == Shape::k1DLayered ? 0 : spec.height;
  array.depth = spec.shape == Shape::k1D || spec.shape == Shape::k2D ? 0 : spec.depth;
  array.format = FormatOf(spec.dtype);
  array.channels = spec.channels;
  array.flags = cuda::kArraySurface;
  const bool cubes = spec.shape == Shape::kCubeLayered;
  if (spec.shape == Shape::k1DLayered || spec.shape == Shape::k2DLayered || cubes)
    array.flags |= cuda::kArrayLayered;
  if (spec.shape == Shape::kCube || cubes) array.flags |= cuda::kArrayCube;
  return array;
}

cuda::TextureDescriptor ReadingOf(const TextureSpec& spec) {
  cuda::TextureDescriptor reading{};
  // Lines are planes to the hardware: what says how to leave them the other way must not be the
  // border.
  const auto dims = spec.shape == Shape::k1D || spec.shape == Shape::k1DLayered ? 1u
                    : spec.shape == Shape::k3D                                  ? 3u
                                                                                : 2u;
  for (size_t d = 0; d < spec.wrap.size(); ++d)
    reading.wrap[d] = static_cast<int>(d < dims ? spec.wrap[d] : TextureSpec::Wrap::kClamp);
  reading.filter = spec.linear ? 1 : 0;
  const bool integer = !IsFloat(spec.dtype) && !spec.unit_values;
  reading.flags = (integer ? cuda::kReadAsInteger : 0u) |
                  (spec.unit_coordinates ? cuda::kUnitCoordinates : 0u);
  return reading;
}

}  // namespace

class RealTexture : public Texture {
 public:
  RealTexture(const TextureDriver& driver, const TextureSpec& spec)
      : driver_(driver), spec_(spec) {}
  ~RealTexture() override {
    if (texture_ != 0) driver_.destroy_texture_(texture_);
    if (surface_ != 0) driver_.destroy_surface_(surface_);
    if (array_ != nullptr) driver_.destroy_array_(array_);
    if (linear_ != 0) driver_.free_(linear_);
  }
  uint64_t texture() const override { return texture_; }
  uint64_t surface() const override { return surface_; }
  Status CopyOut(std::span<std::byte> texels) override {
    if (texels.size() != spec_.Bytes()) return Invalid("a texture is copied as a whole");
    const cuda::Result code = array_ == nullptr
                                  ? driver_.copy_out_(texels.data(), linear_, texels.size())
                                  : driver_.Copy(spec_, array_, nullptr, texels.data());
    return code == cuda::kSuccess ? Status{}
                                  : Status(Fail(ErrorCode::kInternal, "copy from a texture"));
  }

  cuda::Result Open(std::span<const std::byte> texels) {
    if (spec_.shape == Shape::kLinear) return OpenLinear(texels);
    const cuda::ArrayDescriptor array = ArrayOf(spec_);
    cuda::Result code = driver_.create_array_(&array_, &array);
    if (code == cuda::kSuccess) code = driver_.Copy(spec_, array_, texels.data(), nullptr);
    cuda::ResourceDescriptor resource{};
    resource.array = array_;
    const cuda::TextureDescriptor reading = ReadingOf(spec_);
    if (code == cuda::kSuccess)
      code = driver_.create_texture_(&texture_, &resource, &reading, nullptr);
    if (code == cuda::kSuccess) code = driver_.create_surface_(&surface_, &resource);
    return code;
  }

 private:
  cuda::Result OpenLinear(std::span<const std::byte> texels) {
    cuda::Result code = driver_.allocate_(&linear_, texels.size());
    if (code == cuda::kSuccess) code = driver_.copy_in_(linear_, texels.data(), texels.size());
    cuda::ResourceDescriptor resource{};
    resource.type = cuda::kResourceLinear;
    resource.linear = {linear_, FormatOf(spec_.dtype), spec_.channels, texels.size()};
    const cuda::TextureDescriptor reading = ReadingOf(spec_);
    return code == cuda::kSuccess ? driver_.create_texture_(&texture_, &resource, &reading, nullptr)
                                  : code;
  }

  const TextureDriver& driver_;
  TextureSpec spec_;
  cuda::DevicePointer linear_ = 0;
  void* array_ = nullptr;
  unsigned long long texture_ = 0;
  unsigned long long surface_ = 0;
};

void TextureDriver::Bind(const DynamicLibrary& library) {
  const bool complete = library.Bind(allocate_, "cuMemAlloc_v2") &&
                        library.Bind(free_, "cuMemFree_v2") &&
                        library.Bind(copy_in_, "cuMemcpyHtoD_v2") &&
                        library.Bind(copy_out_, "cuMemcpyDtoH_v2") &&
                        library.Bind(create_array_, "cuArray3DCreate_v2") &&
                        library.Bind(destroy_array_, "cuArrayDestroy") &&
                        library.Bind(copy_, "cuMemcpy3D_v2") &&
                        library.Bind(create_texture_, "cuTexObjectCreate") &&
                        library.Bind(destroy_texture_, "cuTexObjectDestroy") &&
                        library.Bind(destroy_surface_, "cuSurfObjectDestroy") &&
                        library.Bind(create_surface_, "cuSurfObjectCreate");
  if (!complete) create_surface_ = nullptr;
}

cuda::Result TextureDriver::Create(const TextureSpec& spec, std::span<const std::byte> texels,
                                   std::unique_ptr<Texture>& texture) const {
  auto real = std::make_unique<RealTexture>(*this, spec);
  const cuda::Result code = real->Open(texels);
  if (code == cuda::kSuccess) texture = std::move(real);
  return code;
}

cuda::Result TextureDriver::Copy(const TextureSpec& spec, void* array, const void* from,
                                 void* to) const {
  cuda::ArrayCopy copy{};
  const size_t pitch = spec.width * spec.TexelBytes();
  const bool in = from != nullptr;
  (in ? copy.to : copy.from).memory = cuda::kMemoryArray;
  (in ? copy.to : copy.from).array = array;
  cuda::ArrayCopy::Side& host = in ? copy.from : copy.to;
  host.memory = cuda::kMemoryHost;
  host.host = in ? const_cast<void*>(from) : to;
  host.pitch = pitch;
  host.height = spec.height;
  copy.width_bytes = pitch;
  copy.height = spec.height;
  copy.depth = spec.depth;
  return copy_(&copy);
}

}  // namespace atunner
