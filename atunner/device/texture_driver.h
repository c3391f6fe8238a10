// Textures of the CUDA driver. Drivers that lack a function have none.
#pragma once

#include <memory>
#include <span>

#include "atunner/base/cuda_abi.h"
#include "atunner/base/dylib.h"
#include "atunner/device/device.h"

namespace atunner {

class TextureDriver {
 public:
  void Bind(const DynamicLibrary& library);
  bool available() const { return create_surface_ != nullptr; }
  /// `spec` is checked, `texels` are as many as it says. The driver's code, 0 = success.
  cuda::Result Create(const TextureSpec& spec, std::span<const std::byte> texels,
                      std::unique_ptr<Texture>& texture) const;

 private:
  friend class RealTexture;
  cuda::Result Copy(const TextureSpec& spec, void* array, const void* from, void* to) const;

  cuda::Result (*allocate_)(cuda::DevicePointer*, size_t) = nullptr;
  cuda::Result (*free_)(cuda::DevicePointer) = nullptr;
  cuda::Result (*copy_in_)(cuda::DevicePointer, const void*, size_t) = nullptr;
  cuda::Result (*copy_out_)(void*, cuda::DevicePointer, size_t) = nullptr;
  cuda::Result (*create_array_)(void**, const cuda::ArrayDescriptor*) = nullptr;
  cuda::Result (*destroy_array_)(void*) = nullptr;
  cuda::Result (*copy_)(const cuda::ArrayCopy*) = nullptr;
  cuda::Result (*create_texture_)(unsigned long long*, const cuda::ResourceDescriptor*,
                                  const cuda::TextureDescriptor*, const void*) = nullptr;
  cuda::Result (*destroy_texture_)(unsigned long long) = nullptr;
  cuda::Result (*create_surface_)(unsigned long long*, const cuda::ResourceDescriptor*) = nullptr;
  cuda::Result (*destroy_surface_)(unsigned long long) = nullptr;
};

}  // namespace atunner
