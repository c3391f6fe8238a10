// The handbook.
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "atunner/knowledge/document_index.h"
#include "atunner/knowledge/handbook.h"
#include "faces/serve/routes.h"

namespace atunner::serve {
namespace {

/// The text of its first heading.
std::string TitleOf(const knowledge::Page& page) {
  std::string_view line = page.text.substr(0, page.text.find('\n'));
  while (line.starts_with('#') || line.starts_with(' ')) line.remove_prefix(1);
  return std::string(line.empty() ? page.name : line);
}

http::Response AllPages() {
  Json pages = Json::array();
  for (const knowledge::Page& page : knowledge::Handbook())
    pages.push_back({{"name", page.name}, {"title", TitleOf(page)}});
  return JsonResponse(200, {{"pages", std::move(pages)}});
}

http::Response Found(Call& call, const std::string& query) {
  const auto most = call.Integer("limit", 20, 1, 100);
  if (!most) return ProblemOf(most.error(), call.request_id);
  const std::scoped_lock lock(call.context.handbook_lock);
  const auto found = call.context.handbook.Search(query, static_cast<size_t>(*most));
  if (!found) return ProblemOf(found.error(), call.request_id);
  constexpr std::string_view kFolder = "handbook/";
  Json pages = Json::array();
  for (const knowledge::Found& one : *found) {
    const bool own = one.document.starts_with(kFolder);
    pages.push_back({{"name", own ? one.document.substr(kFolder.size()) : one.document},
                     {"title", one.heading},
                     {"text", one.text},
                     {"score", one.score}});
  }
  return JsonResponse(200, {{"pages", std::move(pages)}});
}

http::Response GetKnowledge(Call& call) {
  const std::string query = call.Text("q");
  return query.empty() ? AllPages() : Found(call, query);
}

http::Response GetPage(Call& call) {
  const knowledge::Page* const page = knowledge::FindPage(call.Segment(0));
  if (page == nullptr)
    return Problem(404, "the handbook has no page '" + call.Segment(0) + "'", call.request_id);
  return JsonResponse(200, {{"name", page->name}, {"title", TitleOf(*page)}, {"text", page->text}});
}

}  // namespace

std::vector<Route> KnowledgeRoutes() {
  using platform::kRead;
  return {{"GET", "/api/v1/knowledge", kRead, BodyKind::kNone, GetKnowledge},
          {"GET", "/api/v1/knowledge/{id}", kRead, BodyKind::kNone, GetPage}};
}

}  // namespace atunner::serve
