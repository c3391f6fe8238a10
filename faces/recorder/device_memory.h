// The program's allocations by address, and their contents. Not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <utility>

#include "atunner/capture/recording.h"
#include "faces/recorder/driver.h"

namespace atunner::recorder {

class DeviceMemory : public capture::ProgramMemory {
 public:
  explicit DeviceMemory(const Driver& driver) : driver_(driver) {}

  /// `host`: memory of the host that kernels may use.
  void Add(uint64_t base, uint64_t bytes, bool host);
  void Remove(uint64_t base);
  /// All device memory is gone: the program has reset the device.
  void RemoveDeviceMemory();
  /// Adds the allocation around an address if the driver knows one that was not seen, e.g. of
  /// another process. It is forgotten by ForgetDiscovered, as its end is not seen either.
  void Discover(uint64_t address) override;
  void ForgetDiscovered();

  std::optional<Allocation> Find(uint64_t address) const override;
  std::pair<uint64_t, uint64_t> Bounds() const override;
  /// Waits for the device if it may be working.
  Status Read(uint64_t address, std::span<char> to) const override;
  Status Write(uint64_t address, std::span<const char> from) override;
  /// The device works again: the next access waits.
  void OnLaunch() { waited_ = false; }
  Status Wait() const;

 private:
  struct Known {
    uint64_t bytes = 0;
    bool host = false;
    bool discovered = false;
  };
  bool IsHost(uint64_t address) const;

  const Driver& driver_;
  std::map<uint64_t, Known> allocations_;
  uint64_t discovered_ = 0;
  mutable bool waited_ = false;
};

}  // namespace atunner::recorder
