// Reads a trace and prints megabytes a second of processor time and the memory that it took.
// Build with -DATUNNER_BENCH=ON, run build/…/bench/trace_reading FILE. bench/trace_reading.py
// writes a file in the form of PyTorch 2's profiler.
#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>

#include "atunner/trace/readers/open_trace.h"

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::clock_t start = std::clock();
    const auto timeline = atunner::trace::OpenTrace(argv[i]);
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    if (!timeline) {
      fmt::print("{}\n", timeline.error().ToString());
      return 1;
    }
    const double megabytes = static_cast<double>(std::filesystem::file_size(argv[i])) / 1e6;
    fmt::print("{}: {} events, {:.1f} MB in {:.3f} s: {:.0f} MB/s\n", argv[i], timeline->size(),
               megabytes, seconds, megabytes / seconds);
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("VmHWM")) fmt::print("{}\n", line);
  }
  return 0;
}
