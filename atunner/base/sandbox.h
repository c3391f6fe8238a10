// What a process gives up before it works on what strangers sent: files (Landlock), and system
// calls (seccomp). Neither needs privileges, namespaces or a container; both hold for the rest of
// the process's life and for its threads.
#pragma once

#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/base/result.h"

namespace atunner {

/// If this variable of the environment is set, processes that compile and run candidates enter a
/// sandbox first. Its value is the folder that they may read besides the system's.
inline constexpr const char* kSandboxVariable = "ATUNNER_SANDBOX";

/// What the kernel gives.
struct SandboxSupport {
  int landlock = 0;      ///< version of the interface (Linux 5.13 has 1); 0: none
  bool seccomp = false;  ///< filters of system calls, on x86-64 and 64-bit ARM
  bool Full() const { return landlock > 0 && seccomp; }
  /// "files (Landlock 3) and system calls (seccomp)".
  std::string ToString() const;
};
SandboxSupport FindSandboxSupport();

/// What is left to the process.
struct SandboxPlan {
  /// Files and folders with all below, besides the system's own (/usr, /lib, /etc/ld.so.cache …)
  /// and the folders of loaded libraries. Missing ones are ignored.
  std::vector<Path> readable;
  /// True for a process with an open GPU, whose driver opens device files and local sockets: files
  /// are as before, and only other sockets, programs and processes are refused.
  bool device = false;
};

/// Enters the sandbox as far as the kernel gives it. Then no file can be written, removed or made,
/// only `plan` can be read, and sockets, programs, processes, traces of and signals to others are
/// refused with EPERM or EACCES; memory, threads and open file descriptors stay. kUnavailable if
/// the kernel has a part and refuses it.
Status EnterSandbox(const SandboxPlan& plan);

}  // namespace atunner
