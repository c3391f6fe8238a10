// Small traces for tests, written down event by event. Times are microseconds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "atunner/trace/analysis/analysis.h"
#include "atunner/trace/findings/finding.h"
#include "atunner/trace/timeline/timeline.h"

namespace atunner::trace {

class TimelineBuilder {
 public:
  TimelineBuilder() {
    timeline_.tracks.push_back({false, -1, 1, 0, "main"});
    timeline_.devices.push_back({0, "H200", 100'000'000'000, 100});
  }

  uint32_t Stream(int64_t stream, int32_t device = 0) {
    for (uint32_t i = 1; i < timeline_.tracks.size(); ++i)
      if (timeline_.tracks[i].id == stream && timeline_.tracks[i].device == device) return i;
    timeline_.tracks.push_back({true, device, stream, 0, ""});
    return static_cast<uint32_t>(timeline_.tracks.size() - 1);
  }

  TimelineBuilder& Host(EventKind kind, std::string_view name, int64_t at, int64_t length) {
    Add(kind, name, 0, at, length, 0, 0);
    return *this;
  }
  TimelineBuilder& Operator(std::string_view name, int64_t at, int64_t length) {
    return Host(EventKind::kOperator, name, at, length);
  }
  TimelineBuilder& Call(std::string_view name, int64_t at, int64_t length) {
    return Host(EventKind::kCall, name, at, length);
  }
  TimelineBuilder& Step(int number, int64_t at, int64_t length) {
    return Host(EventKind::kAnnotation, "ProfilerStep#" + std::to_string(number), at, length);
  }
  /// A kernel and its launch, which takes 1 us and begins at `launched`.
  TimelineBuilder& Kernel(std::string_view name, int64_t launched, int64_t at, int64_t length,
                          KernelDetail detail = {}, int64_t stream = 7) {
    timeline_.kernels.push_back(detail);
    Add(EventKind::kCall, "cudaLaunchKernel", 0, launched, 1, ++correlation_, 0);
    Add(EventKind::kKernel, name, Stream(stream), at, length, correlation_,
        static_cast<uint32_t>(timeline_.kernels.size()));
    return *this;
  }
  /// A kernel right after its launch.
  TimelineBuilder& Run(std::string_view name, int64_t at, int64_t length,
                       KernelDetail detail = {}) {
    return Kernel(name, at - 1, at, length, detail);
  }
  TimelineBuilder& Copy(CopyDetail detail, int64_t at, int64_t length,
                        std::string_view call = "cudaMemcpyAsync",
                        std::string_view name = "Memcpy") {
    timeline_.copies.push_back(detail);
    Add(EventKind::kCall, call, 0, at - 1, 1, ++correlation_, 0);
    Add(name == "Memset" ? EventKind::kMemset : EventKind::kMemcpy, name, Stream(7), at, length,
        correlation_, static_cast<uint32_t>(timeline_.copies.size()));
    return *this;
  }
  TimelineBuilder& Memory(int64_t allocated, int64_t reserved) {
    timeline_.memory.push_back({0, 1, allocated, 0, allocated, reserved});
    return *this;
  }
  /// Work without the call that submitted it.
  TimelineBuilder& Unlinked(std::string_view name, int64_t at, int64_t length) {
    Add(EventKind::kKernel, name, Stream(7), at, length, 0, 0);
    return *this;
  }
  TimelineBuilder& Graph(int kernels, int64_t at) {
    Add(EventKind::kCall, "cudaGraphLaunch", 0, at - 1, 1, ++correlation_, 0);
    for (int i = 0; i < kernels; ++i)
      Add(EventKind::kKernel, "node", Stream(7), at + i, 1, correlation_, 0);
    return *this;
  }

  Timeline& raw() { return timeline_; }
  Timeline Build() {
    timeline_.Finish();
    return std::move(timeline_);
  }

 private:
  void Add(EventKind kind, std::string_view name, uint32_t track, int64_t at, int64_t length,
           uint32_t correlation, uint32_t detail) {
    timeline_.Append(at * 1000, length * 1000, timeline_.strings.Intern(name), track, kind,
                     correlation, detail);
  }

  Timeline timeline_;
  uint32_t correlation_ = 0;
};

}  // namespace atunner::trace
