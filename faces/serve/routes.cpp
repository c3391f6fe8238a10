#include "faces/serve/routes.h"

#include <algorithm>
#include <optional>

namespace atunner::serve {
namespace {

/// True if `url` has the pattern; its variable segments are put into `segments`.
bool Fits(std::string_view pattern, const http::Url& url, std::vector<std::string>& segments) {
  segments.clear();
  size_t at = 0;
  while (!pattern.empty()) {
    pattern.remove_prefix(1);  // the slash
    const size_t end = std::min(pattern.find('/'), pattern.size());
    const std::string_view wanted = pattern.substr(0, end);
    pattern.remove_prefix(end);
    if (wanted.empty()) break;
    if (at >= url.path.size()) return false;
    if (wanted == "{path}") {
      std::string rest = url.path[at];
      for (size_t i = at + 1; i < url.path.size(); ++i) rest += "/" + url.path[i];
      segments.push_back(std::move(rest));
      return true;
    }
    if (wanted.starts_with('{'))
      segments.push_back(url.path[at]);
    else if (wanted != url.path[at])
      return false;
    ++at;
  }
  return at == url.path.size();
}

std::vector<Route> Joined() {
  std::vector<Route> all;
  for (const auto& group : {JobRoutes(), FileRoutes(), RunRoutes(), WorkRoutes(), AdminRoutes(),
                            MachineRoutes(), McpRoutes(), KnowledgeRoutes()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace

const std::vector<Route>& AllRoutes() {
  static const std::vector<Route> all = Joined();
  return all;
}

Match FindRoute(std::string_view method, const http::Url& url) {
  if (method == "HEAD") method = "GET";
  Match match;
  for (const Route& route : AllRoutes()) {
    std::vector<std::string> segments;
    if (!Fits(route.pattern, url, segments)) continue;
    if (route.method == method) return {&route, std::move(segments), false};
    match.other_method = true;
  }
  return match;
}

}  // namespace atunner::serve
