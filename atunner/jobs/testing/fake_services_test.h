// The four doors of jobs as fakes: a compiler that answers with prepared PTX, a store in a
// temporary folder, a device with a judge that knows the answers, and a clock moved by hand.
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/device/profiles.h"
#include "atunner/jobs/requests/services.h"

namespace atunner::jobs {

/// PTX in which every kernel of the request takes one pointer, and each thread writes one float
/// there: thread i writes element i + `beyond`.
inline std::string WritingKernels(const std::vector<std::string>& entries, int beyond) {
  std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n";
  for (const std::string& entry : entries) {
    text += fmt::format(
        ".visible .entry {}(.param .u64 out)\n{{\n.reg .u64 %a<5>;\n.reg .u32 %r<2>;\n"
        "ld.param.u64 %a1, [out];\ncvta.to.global.u64 %a2, %a1;\nmov.u32 %r1, %tid.x;\n"
        "mul.wide.u32 %a3, %r1, 4;\nadd.s64 %a4, %a2, %a3;\nst.global.u32 [%a4+{}], %r1;\n"
        "ret;\n}}\n",
        entry, 4 * beyond);
  }
  return text;
}

/// Compiles nothing: every source becomes WritingKernels.
class PreparedCompiler : public Compiler {
 public:
  explicit PreparedCompiler(int beyond) : beyond_(beyond) {}
  Result<CompileOutcome> Compile(const CompileRequest& request, const std::stop_token&) override {
    CompileOutcome outcome;
    outcome.module.emplace();
    outcome.module->arch = request.arch;
    outcome.module->compiler = Version();
    std::vector<std::string> names;
    for (const std::string& entry : request.entries) {
      KernelResources kernel;
      kernel.entry = entry;
      kernel.mangled = fmt::format("kernel_{}", names.size());
      kernel.registers = 16;
      names.push_back(kernel.mangled);
      outcome.module->kernels.push_back(kernel);
    }
    outcome.module->ptx = WritingKernels(names, beyond_);
    outcome.module->binary = DigestOf(
        std::vector<std::string>{request.source.text, OptionsOf(request)});
    return outcome;
  }
  std::string Version() const override { return "prepared"; }

 private:
  static std::string OptionsOf(const CompileRequest& request) {
    std::string text;
    for (const auto& [name, value] : request.source.defines) text += name + "=" + value + " ";
    return text;
  }
  int beyond_;
};

/// Finds every candidate correct but the first ones, `wrong` of them, and each one faster than the
/// one before.
class AgreeingJudge : public Judge {
 public:
  AgreeingJudge(ManualClock& clock, int& wrong) : clock_(clock), wrong_(wrong) {}
  Status Begin(const JudgeTask&) override { return {}; }
  Result<JudgeAnswer> Examine(const CandidateKernel&, const JudgeOrder& order) override {
    clock_.Advance(1);
    JudgeAnswer answer;
    if (wrong_ > 0 && !order.plain) {
      --wrong_;
      answer.verdict.kind = VerdictKind::kWrongResult;
      answer.verdict.reason = "off by 3";
      return answer;
    }
    answer.verdict.kind = VerdictKind::kCorrect;
    if (!order.time) return answer;
    answer.estimate.emplace();
    answer.estimate->time_ns = 1e6 / ++examined_;
    return answer;
  }
  Result<Comparison> Compare(const CandidateKernel&, const CandidateKernel&, int,
                             uint64_t) override {
    return Fail(ErrorCode::kUnsupported, "only predicts");
  }
  Result<Baseline> CompareVendor(const std::string&, const CandidateKernel&, int,
                                 uint64_t) override {
    return Fail(ErrorCode::kUnsupported, "only predicts");
  }

 private:
  ManualClock& clock_;
  int& wrong_;
  int examined_ = 0;
};

class FakeDevices : public Devices {
 public:
  explicit FakeDevices(ManualClock& clock) : clock_(clock) {}
  bool HasGpu() const override { return false; }
  Result<Target> Choose(const TargetChoice& choice) override {
    ATUNNER_TRY(const DeviceProfile profile, FindProfile(choice.gpu));
    return Target{profile, gpu ? std::optional(0) : std::nullopt, Calibration::Expected(profile)};
  }
  Result<std::vector<Target>> Select(const Target& target, const DeviceSelection&) override {
    return std::vector{target};
  }
  std::unique_ptr<Judge> MakeJudge(const Target&, double, bool) override {
    return std::make_unique<AgreeingJudge>(clock_, wrong);
  }
  int wrong = 0;     ///< candidates that judges refuse before they agree
  bool gpu = false;  ///< as if the target were a GPU that is there

 private:
  ManualClock& clock_;
};

class FakeCompilers : public Compilers {
 public:
  Result<std::unique_ptr<Compiler>> Open(double) override {
    return std::make_unique<PreparedCompiler>(beyond);
  }
  int beyond = 0;  ///< elements by which kernels write behind their memory
};

class FolderStores : public Stores {
 public:
  explicit FolderStores(Path folder) : file_(folder / "runs.db") {}
  Result<std::unique_ptr<Store>> Open() override { return Store::Open(file_); }
  Result<std::unique_ptr<Store>> OpenExisting() override { return Open(); }

 private:
  Path file_;
};

struct FakeServices {
  TemporaryDirectory folder;
  ManualClock clock;
  FakeCompilers compilers;
  FolderStores stores{folder.path()};
  FakeDevices devices{clock};
  Services services{compilers, stores, devices, clock, folder.path() / "runs"};
};

}  // namespace atunner::jobs
