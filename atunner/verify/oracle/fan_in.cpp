#include "atunner/verify/oracle/fan_in.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "atunner/base/random.h"

namespace atunner {
namespace {

/// Elements of each input that are replaced. One may change nothing (a maximum that is not the
/// largest), so the most of three count.
constexpr int kProbes = 3;
constexpr uint64_t kMostBytes = uint64_t{64} << 20;
/// Results that differ by less are the same: kernels that add by atomics never repeat their bits.
constexpr double kChange = 1e-6;

using Results = std::map<std::string, std::vector<double>>;

class FanIn {
 public:
  FanIn(const OracleContext& context, const TaskBuffers& buffers,
        const std::function<Status()>& run)
      : context_(context), buffers_(buffers), run_(run) {}

  Result<std::map<std::string, double>> Measure() {
    ATUNNER_RETURN_IF_ERROR(KeepInOuts());
    ATUNNER_TRY(const Results before, RunOnce());
    for (const auto& [name, values] : before) most_[name] = 1;
    if (before.empty()) return most_;
    for (const TaskBuffers::Tensor& tensor : buffers_.tensors()) {
      if (tensor.spec->role != Role::kInput || !IsFloat(tensor.spec->dtype)) continue;
      for (int probe = 0; probe < kProbes; ++probe)
        ATUNNER_RETURN_IF_ERROR(Probe(tensor, before, static_cast<uint64_t>(probe)));
    }
    return most_;
  }

 private:
  Status KeepInOuts() {
    for (const TaskBuffers::Tensor& tensor : buffers_.tensors()) {
      if (tensor.spec->role != Role::kInOut) continue;
      std::vector<std::byte>& bytes = in_outs_[tensor.spec->name];
      bytes.resize(static_cast<size_t>(tensor.shape.bytes));
      ATUNNER_RETURN_IF_ERROR(context_.device.CopyOut(bytes, tensor.address));
    }
    return {};
  }

  Result<Results> RunOnce() {
    for (const auto& [name, bytes] : in_outs_)
      ATUNNER_RETURN_IF_ERROR(context_.device.CopyIn(buffers_.Find(name)->address, bytes));
    for (const TaskBuffers::Tensor& tensor : buffers_.tensors()) {
      if (tensor.spec->role == Role::kOutput)  // what is left unwritten must not differ
        ATUNNER_RETURN_IF_ERROR(
            context_.device.Fill(tensor.address, 0, static_cast<uint64_t>(tensor.shape.bytes)));
    }
    ATUNNER_RETURN_IF_ERROR(run_());
    Results results;
    for (const TaskBuffers::Tensor& tensor : buffers_.tensors()) {
      const auto bytes = static_cast<uint64_t>(tensor.shape.bytes);
      if (!tensor.is_output() || !IsFloat(tensor.spec->dtype) || bytes > kMostBytes) continue;
      std::vector<std::byte> raw(bytes);
      ATUNNER_RETURN_IF_ERROR(context_.device.CopyOut(raw, tensor.address));
      std::vector<double>& values = results[tensor.spec->name];
      values.resize(static_cast<size_t>(tensor.shape.elements));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = LoadElement(tensor.spec->dtype, raw.data(), i);
    }
    return results;
  }

  Status Probe(const TaskBuffers::Tensor& input, const Results& before, uint64_t probe) {
    Random random(Mix64(input.position * 16 + probe));
    const size_t size = SizeOf(input.spec->dtype);
    const auto elements = static_cast<uint64_t>(input.shape.elements);
    const DeviceAddress at = input.address + random.Below(elements) * size;
    std::vector<std::byte> old(size), other(size);
    ATUNNER_RETURN_IF_ERROR(context_.device.CopyOut(old, at));
    for (int tries = 0; tries < 8 && (tries == 0 || other == old); ++tries)
      ATUNNER_RETURN_IF_ERROR(
          context_.device.CopyOut(other, input.address + random.Below(elements) * size));
    if (other == old) return {};
    ATUNNER_RETURN_IF_ERROR(context_.device.CopyIn(at, other));
    ATUNNER_TRY(const Results after, RunOnce());
    ATUNNER_RETURN_IF_ERROR(context_.device.CopyIn(at, old));
    for (const auto& [name, values] : after)
      Count(name, before.at(name), values, static_cast<double>(elements));
    return {};
  }

  void Count(const std::string& name, const std::vector<double>& before,
             const std::vector<double>& after, double inputs) {
    double changed = 0;
    for (size_t i = 0; i < before.size(); ++i)
      changed += std::fabs(after[i] - before[i]) > kChange * std::fabs(before[i]);
    most_[name] = std::max(most_[name], changed * inputs / static_cast<double>(before.size()));
  }

  const OracleContext& context_;
  const TaskBuffers& buffers_;
  const std::function<Status()>& run_;
  std::map<std::string, std::vector<std::byte>> in_outs_;
  std::map<std::string, double> most_;
};

}  // namespace

Result<std::map<std::string, double>> MeasureFanIn(const OracleContext& context,
                                                   const TaskBuffers& buffers,
                                                   const std::function<Status()>& run) {
  return FanIn(context, buffers, run).Measure();
}

}  // namespace atunner
