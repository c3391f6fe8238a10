#include "tests/cli/process.h"

#include <sys/wait.h>
#include <unistd.h>

#include "atunner/base/files.h"

namespace atunner {

Outcome RunShell(const std::string& home, const std::string& shell) {
  const std::string out = home + "/.out";
  const std::string err = home + "/.err";
  const std::string script = "export A=" ATUNNER_EXECUTABLE " XDG_DATA_HOME=" + home +
                             "/data XDG_CONFIG_HOME=" + home + "/config XDG_CACHE_HOME=" + home +
                             "/cache; cd " + home + "; (" + shell + ") >" + out + " 2>" + err +
                             " </dev/null";
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::execl("/bin/bash", "bash", "-c", script.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  Outcome outcome;
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  outcome.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  outcome.out = ReadFile(out).value_or("");
  outcome.err = ReadFile(err).value_or("");
  return outcome;
}

}  // namespace atunner
