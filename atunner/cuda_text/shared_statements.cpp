#include "atunner/cuda_text/shared_statements.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <string_view>
#include <vector>

namespace atunner::graph {

std::pair<std::string, std::string> WithShared(const std::string& text, size_t outer) {
  std::vector<std::string> names = {"[item]"};  // of values that differ between items
  for (size_t axis = 0; axis < outer; ++axis) names.push_back("c" + std::to_string(axis));
  constexpr std::string_view kLane = "        ", kConst = "        const ";
  std::string arrays, shared, rest;
  for (const auto& range : std::views::split(text, '\n')) {
    const std::string line(range.begin(), range.end());
    const size_t equals = std::min(line.find(" = "), line.size());
    const size_t begin = line.substr(0, equals).rfind(' ') + 1;
    const std::string name = line.substr(begin, equals - begin);
    if (!line.starts_with(kConst) ||
        std::ranges::any_of(names, [&](auto& each) { return line.contains(each); })) {
      if (equals < line.size() && line.starts_with(kLane)) names.push_back(name);
      rest += line + "\n";
      continue;
    }
    arrays += fmt::format("    {}of_{}[VEC];\n", line.substr(kConst.size(), begin - kConst.size()),
                          name);
    shared += fmt::format("{0}\n        of_{1}[lane] = {1};\n", line, name);
    rest += fmt::format("{} = of_{}[lane];\n", line.substr(0, equals), name);
  }
  return {arrays + "#pragma unroll\n    for (int lane = 0; lane < VEC; ++lane) {\n" + shared +
              "    }\n",
          rest};
}

}  // namespace atunner::graph
