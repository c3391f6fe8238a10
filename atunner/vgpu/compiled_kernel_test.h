// A module of PTX for tests of what devices make of launches.
#pragma once

#include <string>

#include "atunner/model/kernel/compiled_module.h"
#include "atunner/vgpu/virtual_gpu.h"

namespace atunner::vgpu {

/// The compiled module of one kernel `k(out)` with this body.
inline CompiledModule CompiledKernel(const VirtualGpu& gpu, const std::string& body) {
  CompiledModule compiled;
  compiled.arch = gpu.arch();
  compiled.ptx =
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n" +
      body + "}\n";
  KernelResources resources;
  resources.entry = resources.mangled = "k";
  compiled.kernels = {resources};
  return compiled;
}

}  // namespace atunner::vgpu
