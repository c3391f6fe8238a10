// The properties of a GPU, in numbers. The table `device_profile.def` lists the fields with unit
// and meaning.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "atunner/model/value/dtype.h"

namespace atunner {

struct DeviceProfile {
#define ATUNNER_PROFILE_FIELD(type, name, unit, meaning) type name{};
#include "atunner/model/value/device_profile.def"
#undef ATUNNER_PROFILE_FIELD

  /// "sm_90a" where the architecture has accelerated features, else "sm_80"; V100 compiles as
  /// "compute_75" PTX only.
  std::string Arch() const;
  /// Peak rate in FLOP/s (2 per FMA) for arithmetic in `dtype`; with `tensor_cores` the dense
  /// tensor rate. float32 with tensor cores is the TF32 rate.
  double PeakFlops(DType dtype, bool tensor_cores) const;
};

}  // namespace atunner
