#include "atunner/base/dylib.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>

#include "atunner/base/files.h"

namespace atunner {
namespace {

std::vector<std::string> Glob(const std::string& pattern) {
  std::vector<std::string> paths;
  glob_t found{};
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  }
  ::globfree(&found);
  return paths;
}

std::vector<std::string> CudaRoots() {
  std::vector<std::string> roots;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* value = std::getenv(variable); value && *value) roots.emplace_back(value);
  }
  roots.emplace_back("/usr/local/cuda");
  for (std::string& root : Glob("/usr/local/cuda-*")) roots.push_back(std::move(root));
  return roots;
}

/// Folders of pip's packages:
/// <prefix>/lib/python3.x/{site,dist}-packages/nvidia/<name>/{lib,include}.
std::vector<std::string> PipFolders(const char* leaf) {
  std::vector<std::string> prefixes = {"/usr", "/usr/local", "/opt/*", "/opt/*/.venv"};
  if (const char* venv = std::getenv("VIRTUAL_ENV"); venv && *venv)
    prefixes.insert(prefixes.begin(), venv);
  std::vector<std::string> folders;
  for (const std::string& prefix : prefixes) {
    for (std::string& path : Glob(prefix + "/lib/python3*/*-packages/nvidia/*/" + leaf))
      folders.push_back(std::move(path));
  }
  return folders;
}

void KeepExisting(std::vector<std::string>& folders) {
  std::erase_if(folders, [](const std::string& folder) { return !IsFolder(folder); });
}

/// The path under which the loader found a library, else `name`.
std::string LoadedPath(void* handle, const std::string& name) {
  link_map* map = nullptr;
  const bool known = ::dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 && map &&
                     map->l_name && *map->l_name;
  return known ? map->l_name : name;
}

}  // namespace

Result<DynamicLibrary> DynamicLibrary::Open(std::span<const std::string> names,
                                            std::span<const std::string> folders) {
  std::vector<std::string> attempts(names.begin(), names.end());
  for (const std::string& folder : folders) {
    for (const std::string& name : names) attempts.push_back(folder + "/" + name);
  }
  std::string first_error;
  for (const std::string& attempt : attempts) {
    if (attempt.find('/') != std::string::npos && !Exists(attempt)) continue;
    void* handle = ::dlopen(attempt.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) {
      DynamicLibrary library;
      library.handle_ = handle;
      library.path_ = LoadedPath(handle, attempt);
      return library;
    }
    if (const char* error = ::dlerror(); first_error.empty() && error) first_error = error;
  }
  return Fail(ErrorCode::kUnavailable,
              "cannot load " + names.front() + (first_error.empty() ? "" : ": " + first_error));
}

void* DynamicLibrary::Find(const char* symbol) const { return ::dlsym(handle_, symbol); }

Status DynamicLibrary::Lacks(std::string_view symbol) const {
  std::string what = "lacks the function ";
  what.append(symbol);
  return Fail(ErrorCode::kUnavailable, std::move(what), path_);
}

std::vector<std::string> CudaLibraryFolders() {
  std::vector<std::string> folders;
  for (const std::string& root : CudaRoots()) {
    folders.push_back(root + "/lib64");
    folders.push_back(root + "/targets/x86_64-linux/lib");
  }
  for (const char* system :
       {"/usr/lib/x86_64-linux-gnu", "/usr/local/nvidia/lib64", "/usr/lib/wsl/lib"})
    folders.emplace_back(system);
  for (std::string& folder : PipFolders("lib")) folders.push_back(std::move(folder));
  KeepExisting(folders);
  return folders;
}

Result<DynamicLibrary> OpenCudaLibrary(CudaLibrary library) {
  using Names = std::vector<std::string>;
  const auto names = [&]() -> Names {
    switch (library) {
      case CudaLibrary::kDriver:
        return {"libcuda.so.1"};
      case CudaLibrary::kNvrtc:
        return {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
      case CudaLibrary::kNvJitLink:
        return {"libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so"};
      case CudaLibrary::kNvml:
        return {"libnvidia-ml.so.1", "libnvidia-ml.so"};
      case CudaLibrary::kCublas:
        return {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
      case CudaLibrary::kCudnn:
        return {"libcudnn.so.9", "libcudnn.so"};
    }
    return {};
  };
  return DynamicLibrary::Open(names(), CudaLibraryFolders());
}

std::vector<std::string> CudaIncludeFolders() {
  std::vector<std::string> folders;
  for (const std::string& root : CudaRoots()) folders.push_back(root + "/include");
  folders.emplace_back("/usr/include");
  for (std::string& folder : PipFolders("include")) folders.push_back(std::move(folder));
  std::erase_if(folders,
                [](const std::string& folder) { return !Exists(folder + "/cuda_fp16.h"); });
  // nvcc of CUDA 13 also searches cccl by default: <cuda/std/…>, <cub/…> and the headers that
  // cooperative_groups.h includes.
  std::vector<std::string> core;
  for (const std::string& folder : folders) {
    if (Exists(folder + "/cccl")) core.push_back(folder + "/cccl");
  }
  folders.insert(folders.end(), core.begin(), core.end());
  return folders;
}

}  // namespace atunner
