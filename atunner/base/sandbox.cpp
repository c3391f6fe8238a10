#include "atunner/base/sandbox.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <set>
#include <span>

namespace atunner {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArchitecture = 0;
#endif

constexpr const char* kSystem[] = {"/usr",
                                   "/lib",
                                   "/lib64",
                                   "/lib32",
                                   "/bin",
                                   "/opt",
                                   "/etc/ld.so.cache",
                                   "/etc/localtime",
                                   "/dev/null",
                                   "/dev/urandom",
                                   "/sys/devices/system"};

std::unexpected<Error> Refused(const char* part) {
  return Fail(ErrorCode::kUnavailable,
              std::string("the sandbox cannot be entered: ") + part + ": " + std::strerror(errno));
}

// Landlock (Documentation/userspace-api/landlock.rst). glibc has no functions for it.

long CreateRuleset(const landlock_ruleset_attr* attributes, size_t size, uint32_t flags) {
  return ::syscall(SYS_landlock_create_ruleset, attributes, size, flags);
}

int LandlockVersion() {
  const long version = CreateRuleset(nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return version > 0 ? static_cast<int>(version) : 0;
}

constexpr uint64_t kReadFiles = LANDLOCK_ACCESS_FS_READ_FILE;
constexpr uint64_t kRead = kReadFiles | LANDLOCK_ACCESS_FS_READ_DIR;

/// Every kind of access that this version knows. Version 1 has 13 kinds, 2 adds moving between
/// folders, 3 truncation, 5 ioctl on devices.
uint64_t AllAccess(int version) {
  uint64_t all = (uint64_t{1} << 13) - 1;
  if (version >= 2) all |= uint64_t{1} << 13;
  if (version >= 3) all |= uint64_t{1} << 14;
  if (version >= 5) all |= uint64_t{1} << 15;
  return all;
}

void Allow(int rules, const Path& place) {
  const int fd = ::open(place.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0) return;
  landlock_path_beneath_attr beneath{};
  beneath.allowed_access = IsFolder(place) ? kRead : kReadFiles;
  beneath.parent_fd = fd;
  ::syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
  ::close(fd);
}

/// Libraries load others from their own folder later: NVRTC does.
std::set<Path> FoldersOfLibraries() {
  std::set<Path> folders;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t slash = line.find('/');
    if (slash == std::string::npos || line.find(".so", slash) == std::string::npos) continue;
    folders.insert(Path(line.substr(slash)).parent_path());
  }
  return folders;
}

Status RestrictFiles(const SandboxPlan& plan, int version) {
  const std::set<Path> libraries = FoldersOfLibraries();
  landlock_ruleset_attr attributes{};
  attributes.handled_access_fs = AllAccess(version);
  const int rules = static_cast<int>(
      CreateRuleset(&attributes, sizeof attributes.handled_access_fs, 0));
  if (rules < 0) return Refused("Landlock");
  for (const char* place : kSystem) Allow(rules, place);
  for (const Path& place : libraries) Allow(rules, place);
  for (const Path& place : plan.readable) Allow(rules, place);
  const long failed = ::syscall(SYS_landlock_restrict_self, rules, 0);
  ::close(rules);
  return failed == 0 ? Status{} : Status(Refused("Landlock"));
}

// seccomp (Documentation/userspace-api/seccomp_filter.rst): a program of the classic BPF.

class Filter {
 public:
  Filter() {
    Load(offsetof(seccomp_data, arch));
    Add(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0);
    Return(SECCOMP_RET_KILL_PROCESS);
    Load(offsetof(seccomp_data, nr));
#ifdef __X32_SYSCALL_BIT
    Add(BPF_JMP | BPF_JGE | BPF_K, __X32_SYSCALL_BIT, 0, 1);  // the calls of 32-bit programs
    Return(SECCOMP_RET_KILL_PROCESS);
#endif
  }
  void Refuse(long call, int error = EPERM) {
    Add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1);
    Return(SECCOMP_RET_ERRNO | static_cast<uint32_t>(error));
  }
  void Refuse(std::span<const long> calls) {
    for (const long call : calls) Refuse(call);
  }
  /// Refuses the call unless its argument is `value`.
  void RefuseUnlessEqual(long call, int argument, uint32_t value) {
    Conditional(call, argument, BPF_JMP | BPF_JEQ | BPF_K, value, true);
  }
  /// Refuses the call if its argument has one of `bits`.
  void RefuseBits(long call, int argument, uint32_t bits) {
    Conditional(call, argument, BPF_JMP | BPF_JSET | BPF_K, bits, false);
  }
  /// Refuses the call unless its argument has one of `bits`.
  void RefuseWithoutBits(long call, int argument, uint32_t bits) {
    Conditional(call, argument, BPF_JMP | BPF_JSET | BPF_K, bits, true);
  }
  Status Enter() {
    Return(SECCOMP_RET_ALLOW);
    const sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
    // TSYNC: threads that libraries have started are restricted, too.
    if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0)
      return {};
    return Refused("seccomp");
  }

 private:
  void Add(int code, uint32_t operand, uint8_t if_true = 0, uint8_t if_false = 0) {
    code_.push_back({static_cast<uint16_t>(code), if_true, if_false, operand});
  }
  void Load(size_t offset) { Add(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)); }
  void Return(uint32_t action) { Add(BPF_RET | BPF_K, action); }
  void Conditional(long call, int argument, int test, uint32_t operand, bool allowed) {
    Add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 4);
    // The lower half of the argument: both architectures are little-endian.
    Load(offsetof(seccomp_data, args) + sizeof(uint64_t) * static_cast<size_t>(argument));
    Add(test, operand, allowed ? 1 : 0, allowed ? 0 : 1);
    Return(SECCOMP_RET_ERRNO | EPERM);
    Load(offsetof(seccomp_data, nr));
  }
  std::vector<sock_filter> code_;
};

/// Calls that neither computing nor a GPU's driver needs.
constexpr auto kNever = std::to_array<long>({
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_io_uring_setup,
    SYS_userfaultfd,
    SYS_open_by_handle_at,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_sethostname,
    SYS_pidfd_open,
    SYS_pidfd_send_signal,
    SYS_tkill,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
#ifdef SYS_fork
    SYS_fork,
    SYS_vfork,
#endif
});

/// Calls that make, change or remove files, or open a connection.
constexpr auto kNotWhenPure = std::to_array<long>({
    SYS_socket,   SYS_socketpair, SYS_connect,   SYS_bind,      SYS_listen,
    SYS_accept,   SYS_accept4,    SYS_unlinkat,  SYS_renameat2, SYS_mkdirat,
    SYS_linkat,   SYS_symlinkat,  SYS_mknodat,   SYS_truncate,  SYS_fchmodat,
    SYS_fchownat, SYS_setxattr,   SYS_lsetxattr, SYS_utimensat,
#ifdef SYS_unlink
    SYS_unlink,   SYS_rmdir,      SYS_rename,    SYS_mkdir,     SYS_link,
    SYS_symlink,  SYS_mknod,      SYS_creat,     SYS_chmod,     SYS_chown,
    SYS_lchown,   SYS_utime,      SYS_utimes,
#endif
    SYS_renameat,
});

void RefuseWriting(Filter& filter) {
  constexpr uint32_t kWrites = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC;
  filter.RefuseBits(SYS_openat, 2, kWrites);
#ifdef SYS_open
  filter.RefuseBits(SYS_open, 1, kWrites);
#endif
  filter.Refuse(SYS_openat2, ENOSYS);  // its flags are in memory; callers fall back to openat
  filter.Refuse(kNotWhenPure);
}

Status RestrictCalls(const SandboxPlan& plan) {
  Filter filter;
  filter.Refuse(kNever);
  filter.Refuse(SYS_clone3, ENOSYS);  // its flags are in memory; callers fall back to clone
  filter.RefuseWithoutBits(SYS_clone, 0, CLONE_THREAD);
  const auto self = static_cast<uint32_t>(::getpid());
  filter.RefuseUnlessEqual(SYS_kill, 0, self);
  filter.RefuseUnlessEqual(SYS_tgkill, 0, self);
  if (plan.device)
    filter.RefuseUnlessEqual(SYS_socket, 0, AF_UNIX);
  else
    RefuseWriting(filter);
  return filter.Enter();
}

}  // namespace

std::string SandboxSupport::ToString() const {
  const std::string files = landlock > 0 ? "files (Landlock " + std::to_string(landlock) + ")" : "";
  const std::string calls = seccomp ? "system calls (seccomp)" : "";
  if (files.empty() && calls.empty()) return "nothing";
  return files + (files.empty() || calls.empty() ? "" : " and ") + calls;
}

SandboxSupport FindSandboxSupport() {
  const uint32_t action = SECCOMP_RET_ERRNO;
  const bool filters = kArchitecture != 0 &&
                       ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
  return {LandlockVersion(), filters};
}

Status EnterSandbox(const SandboxPlan& plan) {
  const SandboxSupport support = FindSandboxSupport();
  // Without it, programs with more rights could be started; both parts ask for it.
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Refused("no_new_privs");
  if (!plan.device && support.landlock > 0)
    ATUNNER_RETURN_IF_ERROR(RestrictFiles(plan, support.landlock));
  return support.seccomp ? RestrictCalls(plan) : Status{};
}

}  // namespace atunner
