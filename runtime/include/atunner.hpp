// C++17 face of atunner.h: the same, with destructors and exceptions. Header only.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "atunner.h"

namespace atunner::runtime {

/// A call that failed; what() is the library's message.
class Error : public std::runtime_error {
 public:
  Error(atunner_status status, const std::string& text)
      : std::runtime_error(text), status_(status) {}
  atunner_status status() const { return status_; }

 private:
  atunner_status status_;
};

inline void Check(atunner_status status) {
  if (status != ATUNNER_OK) throw Error(status, atunner_last_error());
}

struct Problem {
  std::string name;   ///< "" when the set holds one name only
  std::string dtype;  ///< "" when the set holds one only
  std::vector<std::pair<std::string, std::int64_t>> dims;
  std::vector<std::pair<std::string, std::string>> attributes;
  atunner_match least = ATUNNER_MATCH_NONE;
};

/// A loaded kernel. Movable; launching is const and may be done by several threads.
class Kernel {
 public:
  explicit Kernel(atunner_kernel* handle) : handle_(handle) {}
  ~Kernel() { atunner_kernel_destroy(handle_); }
  Kernel(Kernel&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Kernel& operator=(Kernel&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }

  atunner_match match() const { return atunner_kernel_match(handle_); }
  std::string match_text() const { return atunner_kernel_match_text(handle_); }
  std::size_t artifact() const { return atunner_kernel_artifact(handle_); }
  std::uint64_t workspace_bytes() const { return atunner_kernel_workspace_bytes(handle_); }
  std::vector<atunner_argument> arguments() const {
    std::vector<atunner_argument> all(atunner_kernel_argument_count(handle_));
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].struct_size = sizeof(atunner_argument);
      Check(atunner_kernel_argument(handle_, i, &all[i]));
    }
    return all;
  }

  /// Device addresses in the order of arguments(). `workspace` 0: scratch memory comes from the
  /// driver's pool.
  void Launch(void* stream, const std::vector<std::uint64_t>& tensors, std::uint64_t workspace = 0,
              std::uint64_t workspace_bytes = 0) const {
    atunner_launch_info launch = ATUNNER_LAUNCH_INIT;
    launch.stream = stream;
    launch.tensors = tensors.data();
    launch.tensor_count = tensors.size();
    launch.workspace = workspace;
    launch.workspace_bytes = workspace_bytes;
    Check(atunner_launch(handle_, &launch));
  }
  /// By name, in any order: kernel.LaunchNamed(stream, {{"x", x}, {"y", y}}).
  void LaunchNamed(void* stream, std::initializer_list<atunner_tensor> tensors) const {
    atunner_launch_info launch = ATUNNER_LAUNCH_INIT;
    launch.stream = stream;
    launch.named = tensors.begin();
    launch.named_count = tensors.size();
    Check(atunner_launch(handle_, &launch));
  }

  atunner_kernel* handle() const { return handle_; }

 private:
  atunner_kernel* handle_;
};

/// Artifacts to choose among.
class Set {
 public:
  /// `libcuda` "": $ATUNNER_LIBCUDA, else libcuda.so.1.
  explicit Set(const std::string& libcuda = {}) {
    Check(atunner_set_create(libcuda.empty() ? nullptr : libcuda.c_str(), &handle_));
  }
  ~Set() { atunner_set_destroy(handle_); }
  Set(Set&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Set& operator=(Set&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }

  void Add(const std::string& folder) { Check(atunner_set_add(handle_, folder.c_str())); }
  std::size_t size() const { return atunner_set_size(handle_); }
  atunner_artifact_info info(std::size_t index) const {
    atunner_artifact_info info = ATUNNER_ARTIFACT_INFO_INIT;
    Check(atunner_set_info(handle_, index, &info));
    return info;
  }

  Kernel Choose(const Problem& problem, int device = ATUNNER_CURRENT_CONTEXT) const {
    std::vector<atunner_dim> dims;
    for (const auto& [name, value] : problem.dims) dims.push_back({name.c_str(), value});
    std::vector<atunner_attribute> attributes;
    for (const auto& [name, value] : problem.attributes)
      attributes.push_back({name.c_str(), value.c_str()});
    atunner_problem raw = ATUNNER_PROBLEM_INIT;
    raw.name = problem.name.empty() ? nullptr : problem.name.c_str();
    raw.dtype = problem.dtype.empty() ? nullptr : problem.dtype.c_str();
    raw.dims = dims.data();
    raw.dim_count = dims.size();
    raw.attributes = attributes.data();
    raw.attribute_count = attributes.size();
    raw.least = problem.least;
    atunner_kernel* kernel = nullptr;
    Check(atunner_choose(handle_, &raw, device, &kernel));
    return Kernel(kernel);
  }

  atunner_set* handle() const { return handle_; }

 private:
  atunner_set* handle_ = nullptr;
};

/// A whole model: an execution plan, loaded on a device.
class Plan {
 public:
  /// `libcuda` "": $ATUNNER_LIBCUDA, else libcuda.so.1.
  explicit Plan(const std::string& folder, int device = ATUNNER_CURRENT_CONTEXT,
                const std::string& libcuda = {}) {
    Check(atunner_plan_load(folder.c_str(), libcuda.empty() ? nullptr : libcuda.c_str(), device,
                            &handle_));
  }
  ~Plan() { atunner_plan_free(handle_); }
  Plan(Plan&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Plan& operator=(Plan&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }

  std::uint64_t workspace_bytes() const { return atunner_plan_workspace_bytes(handle_); }

  /// Device addresses of inputs and of memory for the results. `workspace` 0: it comes from the
  /// driver's pool.
  void Run(void* stream, const std::vector<std::uint64_t>& inputs,
           const std::vector<std::uint64_t>& outputs, std::uint64_t workspace = 0,
           std::uint64_t workspace_bytes = 0) const {
    atunner_plan_run_info run = ATUNNER_PLAN_RUN_INIT;
    run.stream = stream;
    run.inputs = inputs.data();
    run.input_count = inputs.size();
    run.outputs = outputs.data();
    run.output_count = outputs.size();
    run.workspace = workspace;
    run.workspace_bytes = workspace_bytes;
    Check(atunner_plan_run(handle_, &run));
  }

  atunner_plan* handle() const { return handle_; }

 private:
  atunner_plan* handle_ = nullptr;
};

}  // namespace atunner::runtime
